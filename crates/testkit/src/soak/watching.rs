//! A watch of all users, which misses no event.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::StreamExt;
use polynym_client::v1::list_history_request::User;
use polynym_client::{Client, Watch, v1};
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::{Instant, sleep};

use super::tally::Tally;

/// The time until the last events are there.
const LIMIT: Duration = Duration::from_secs(60);
/// The pause between two looks for one.
const PAUSE: Duration = Duration::from_millis(100);

/// The numbers of the last events that the watch has, by the ids of their users.
type Seen = Arc<Mutex<HashMap<String, i64>>>;

/// A watch in a task of its own.
pub struct Watching {
    task: JoinHandle<()>,
    seen: Seen,
    tally: Arc<Tally>,
}

impl Watching {
    /// Begins to watch, and waits until no later change can be missed.
    pub async fn start(client: &Client, tally: &Arc<Tally>) -> Self {
        let mut watch = client.watch(v1::WatchRequest::default());
        watch.message().await.expect("a watch begins");
        let seen = Seen::default();
        let task = tokio::spawn(follow(watch, seen.clone(), tally.clone()));
        Self { task, seen, tally: tally.clone() }
    }

    /// Ends once the last events of these users have come.
    pub async fn end(self, client: &Client, users: &[String]) {
        let start = Instant::now();
        for user in users {
            let last = last_event(client, user, start).await;
            while self.seen(user) < last && start.elapsed() < LIMIT {
                sleep(PAUSE).await;
            }
            let seen = self.seen(user);
            if seen != last {
                self.tally.wrong(format!("the watch has {seen} events of {user}, not {last}"));
            }
        }
        self.task.abort();
    }

    fn seen(&self, user: &str) -> i64 {
        self.seen.lock().unwrap().get(user).copied().unwrap_or_default()
    }
}

/// Keeps a watch open on each server, so that each has the memory of watches at any time.
pub fn watch_each(servers: impl IntoIterator<Item = Client>) -> JoinSet<()> {
    let watch = |client: Client| async move {
        loop {
            let mut watch = client.watch(v1::WatchRequest::default());
            while watch.next().await.is_ok() {}
            sleep(PAUSE).await;
        }
    };
    servers.into_iter().map(watch).collect()
}

/// The number of the last event in a user's history.
async fn last_event(client: &Client, user: &str, start: Instant) -> i64 {
    let request = v1::ListHistoryRequest {
        user: Some(User::UserId(user.to_owned())),
        page_size: 1,
        ..Default::default()
    };
    loop {
        match client.history(request.clone()).next().await {
            Some(Ok(event)) => return event.sequence,
            None => return 0,
            Some(Err(error)) => {
                assert!(start.elapsed() < LIMIT, "no server answers at the end: {error}");
                sleep(PAUSE).await;
            }
        }
    }
}

/// Compares the numbers of each user's events. Some may come again after an interruption.
async fn follow(mut watch: Watch, seen: Seen, tally: Arc<Tally>) {
    loop {
        let event = match watch.next().await {
            Ok(event) => event,
            Err(error) => return tally.wrong(format!("the watch ends: {error}")),
        };
        let mut seen = seen.lock().unwrap();
        let last = seen.entry(event.user_id).or_default();
        if event.sequence > *last + 1 {
            tally.wrong(format!("the watch has {} after {last}", event.event_id));
        }
        if event.sequence > *last {
            tally.saw_event();
            *last = event.sequence;
        }
    }
}
