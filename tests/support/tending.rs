//! What is due is done, though for many users that have waited longer it fails.

use std::sync::Arc;
use std::time::{Duration, Instant};

use locality_uuid::{Generator, LocalityId, Mode};
use polynym::directory::{Directory, Limits, Mutation, Policies, Store, Timestamp, UserChange};
use tokio::time::sleep;

use super::users;

/// How many users fail: more than one page of those that are due has.
pub const FAILING: usize = 120;
/// A time that users who fail are due at, in milliseconds.
pub const LONG_AGO: i64 = 1_000;

/// The id of a user that fails.
pub fn failing(n: usize) -> LocalityId {
    users::id(1_000 + n)
}

/// Creates user 1, who is due at a time that is over.
pub async fn prepare(store: &dyn Store) {
    let policies =
        Arc::new(Policies { restore_window: Duration::from_secs(1), ..Policies::default() });
    store.mutate(users::creation(1)).await.unwrap();
    store
        .mutate(Mutation { policies, ..users::mutation(users::id(1), UserChange::Delete) })
        .await
        .unwrap();
}

async fn expired(store: &dyn Store) -> Vec<LocalityId> {
    let due = store.expired_users(Timestamp::now(), None, 2 * FAILING).await.unwrap();
    due.into_iter().map(|user| user.id).collect()
}

/// Fails unless user 1 is purged, though the others cannot be.
pub async fn user_1_is_purged(store: Arc<dyn Store>) {
    let mut wanted: Vec<_> = (0..FAILING).map(failing).collect();
    wanted.push(users::id(1));
    assert_eq!(expired(&*store).await, wanted, "who is due");
    let directory =
        Directory::new(store.clone(), Generator::new(Mode::Variable), Limits::default());
    let tending = tokio::spawn(async move { directory.run_expiry().await });
    let since = Instant::now();
    while expired(&*store).await.contains(&users::id(1)) {
        assert!(since.elapsed() < Duration::from_secs(60), "user 1 is not purged");
        sleep(Duration::from_millis(50)).await;
    }
    tending.abort();
    assert!(!users::look_up(&*store, 1).await.unwrap());
    assert_eq!(expired(&*store).await, wanted[..FAILING], "who is still due");
}
