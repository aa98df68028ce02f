//! A watch of all users, which misses no event.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use polynym_client::{Client, Watch, v1};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, timeout};

use super::tally::Tally;

/// The id of the request that creates the last user.
const LAST: &str = "0a15e5d0-7c0f-4f5f-9c59-6d1f7f3c2a11";
/// The time until the event of that request is there.
const LIMIT: Duration = Duration::from_secs(60);

/// A watch in a task of its own.
pub struct Watching {
    task: JoinHandle<()>,
    tally: Arc<Tally>,
}

impl Watching {
    /// Begins to watch, and waits until no later change can be missed.
    pub async fn start(client: &Client, tally: &Arc<Tally>) -> Self {
        let mut watch = client.watch(v1::WatchRequest::default());
        watch.message().await.expect("a watch begins");
        let task = tokio::spawn(follow(watch, tally.clone()));
        Self { task, tally: tally.clone() }
    }

    /// Ends once the event of a last request has come.
    pub async fn end(self, client: &Client) {
        let (user, request_id) = (Some(v1::User::default()), LAST.to_owned());
        let request = v1::CreateUserRequest { user, request_id, ..Default::default() };
        let start = Instant::now();
        while let Err(error) = client.registry().create_user(request.clone()).await {
            assert!(start.elapsed() < LIMIT, "no server answers at the end: {error}");
            sleep(Duration::from_millis(100)).await;
        }
        if timeout(LIMIT, self.task).await.is_err() {
            self.tally.wrong("the watch does not have the last event".to_owned());
        }
    }
}

/// Compares the numbers of each user's events. Some may come again after an interruption.
async fn follow(mut watch: Watch, tally: Arc<Tally>) {
    let mut last: HashMap<String, i64> = HashMap::new();
    loop {
        let event = match watch.next().await {
            Ok(event) => event,
            Err(error) => return tally.wrong(format!("the watch ends: {error}")),
        };
        let seen = last.entry(event.user_id.clone()).or_default();
        if event.sequence > *seen + 1 {
            tally.wrong(format!("the watch has {} after {seen}", event.event_id));
        }
        if event.sequence > *seen {
            tally.saw_event();
            *seen = event.sequence;
        }
        if event.request_id == LAST {
            return;
        }
    }
}
