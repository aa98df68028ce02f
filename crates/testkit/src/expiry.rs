//! Expiry continues although it fails for many users that expired earlier.

use std::sync::Arc;
use std::time::{Duration, Instant};

use locality_uuid::{Generator, LocalityId, Mode};
use polynym_directory::{
    Backend, Directory, Limits, Mutation, Mutations, Policies, Timestamp, UserChange,
};
use tokio::time::sleep;

use super::users;

/// The number of users whose expiry fails: more than one page of expired users.
pub const FAILING: usize = 120;
/// The expiry of the failing users, in milliseconds.
pub const LONG_AGO: i64 = 1_000;

/// The id of failing user `n`.
pub fn failing(n: usize) -> LocalityId {
    users::id(1_000 + n)
}

/// Creates user 1, whose restore window has passed.
pub async fn prepare(store: &impl Mutations) {
    let policies =
        Arc::new(Policies { restore_window: Duration::from_secs(1), ..Policies::default() });
    store.mutate(users::creation(1)).await.unwrap();
    store
        .mutate(Mutation { policies, ..users::mutation(users::id(1), UserChange::Delete) })
        .await
        .unwrap();
}

async fn expired(store: &Backend) -> Vec<LocalityId> {
    let users = store.histories.expired_users(Timestamp::now(), None, 2 * FAILING).await.unwrap();
    users.into_iter().map(|user| user.id).collect()
}

/// Asserts that user 1 is purged although the purge of others fails.
pub async fn user_1_is_purged(store: Backend) {
    let mut expected: Vec<_> = (0..FAILING).map(failing).collect();
    expected.push(users::id(1));
    assert_eq!(expired(&store).await, expected, "expired users before");

    let directory =
        Directory::new(store.clone(), Generator::new(Mode::Variable), Limits::default());
    let expiry = tokio::spawn(async move { directory.run_expiry().await });
    let since = Instant::now();

    while expired(&store).await.contains(&users::id(1)) {
        assert!(since.elapsed() < Duration::from_secs(60), "user 1 is not purged");
        sleep(Duration::from_millis(50)).await;
    }

    expiry.abort();
    assert!(!users::look_up(&*store.lookups, 1).await.unwrap());
    assert_eq!(expired(&store).await, expected[..FAILING], "expired users after");
}
