//! The file with the URI of MongoDB: a changed one connects the server anew, as with another
//! password.

use std::convert::Infallible;
use std::future::pending;
use std::path::Path;
use std::time::Duration;

use metrics::gauge;
use polynym::settings::MongoUri;
use polynym::telemetry::Metric;
use polynym_access::reload;
use tokio::sync::watch;
use tokio::time::timeout;

use super::open_store::OpenStore;

/// The gauge of a URI that cannot be used.
pub const URI_BROKEN: Metric = (
    "polynym_mongodb_uri_broken",
    "1 while the file with MongoDB's URI has changed and the server cannot use the new one",
);

/// The pause before a URI is tried again: the database may get the password after the file.
const RETRY_DELAY: Duration = Duration::from_secs(5);

/// The URI in a file, or why there is none.
type Content = Result<MongoUri, String>;

/// Reads the file in a loop, if there is one, and connects the store by a changed URI, at first
/// other than `used`. A URI that cannot be used changes nothing and is tried again.
pub async fn follow(file: Option<&Path>, used: Option<&MongoUri>, store: &OpenStore) -> Infallible {
    let Some((file, used)) = file.zip(used) else { return pending().await };
    let (latest, mut changes) = watch::channel::<Content>(Ok(used.clone()));
    let path = file.to_owned();
    let read = move || MongoUri::read(&path);
    let reading = reload::watch(Ok(used.clone()), read, |content| {
        drop(latest.send_replace(content.clone()));
    });
    let connecting = async {
        loop {
            // The sender lives as long as this.
            let _ = changes.changed().await;
            let mut content = changes.borrow_and_update().clone();
            let mut has_failed = false;
            while !connect(store, &content, has_failed).await {
                has_failed = true;
                if let Ok(Ok(())) = timeout(RETRY_DELAY, changes.changed()).await {
                    (content, has_failed) = (changes.borrow_and_update().clone(), false);
                }
            }
        }
    };
    tokio::select! {
        never = reading => never,
        never = connecting => never,
    }
}

/// Connects the store. Returns whether it did. Logs the first failure of several in a row.
async fn connect(store: &OpenStore, content: &Content, has_failed: bool) -> bool {
    let connected = match content {
        Ok(uri) => store.reconnect(uri).await.map_err(|error| error.to_string()),
        Err(fault) => Err(fault.clone()),
    };
    gauge!(URI_BROKEN.0).set(u8::from(connected.is_err()));
    match connected {
        Ok(()) => tracing::info!("connected to MongoDB by the changed URI"),
        Err(_) if has_failed => {}
        Err(ref fault) => tracing::error!(
            fault,
            "the changed URI of MongoDB cannot be used: the connections stay as they were, and it \
             is tried again"
        ),
    }
    connected.is_ok()
}
