//! Files that are read again when they change.

use std::convert::Infallible;
use std::io;
use std::path::Path;
use std::time::Duration;

/// The pause between two reads.
const PERIOD: Duration = Duration::from_secs(2);

/// The content of a file, or why it could not be read.
pub type Content = Result<Vec<u8>, String>;

/// Reads a file, through links.
pub fn content(path: &Path) -> Content {
    std::fs::read(path).map_err(|error: io::Error| error.to_string())
}

/// Reads in a loop, and applies what differs from `used` and from then on from what was applied,
/// once two reads agree on it: a file that is being written is not used.
pub async fn watch<T: Clone + PartialEq + Send + 'static>(
    mut used: T,
    read: impl Fn() -> T + Clone + Send + 'static,
    apply: impl Fn(&T),
) -> Infallible {
    let mut before = used.clone();
    loop {
        tokio::time::sleep(PERIOD).await;
        let Ok(now) = tokio::task::spawn_blocking(read.clone()).await else { continue };
        if now == before && now != used {
            apply(&now);
            used = now.clone();
        }
        before = now;
    }
}
