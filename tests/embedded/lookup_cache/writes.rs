//! Own writes: they remove entries, and invalidate reads that began before they ended.

use std::time::Duration;

use polynym_directory::UserChange;
use polynym_identifier::{Identifier, RawIdentifier};

use super::DAY;
use super::scene::{Scene, encoded};
use crate::support::users;

fn unlink_handle(n: usize) -> UserChange {
    let handle = format!("user{n}");
    UserChange::Unlink(Identifier::parse(RawIdentifier::Handle(&handle)).unwrap())
}

#[tokio::test]
async fn a_write_removes_its_user_under_all_keys() {
    let scene = Scene::new().await;
    let [email, handle] = users::keys(3);
    let [other, _] = users::keys(4);
    for key in [&email, &handle, &other] {
        scene.resolve(key, DAY).await;
    }
    scene.mutate(3, users::mutation(users::id(3), UserChange::Disable)).await;
    let (found, reads) = scene.resolve(&email, DAY).await;
    assert_eq!(reads, 2);
    assert!(found.is_some_and(|found| found != encoded(3)));
    assert_eq!(scene.resolve(&other, DAY).await.1, 0, "another user");

    scene.mutate(3, users::mutation(users::id(3), unlink_handle(3))).await;
    assert_eq!(scene.resolve(&handle, DAY).await, (None, 1));
    assert!(scene.resolve(&email, DAY).await.0.is_some());
}

#[tokio::test]
async fn a_write_drops_the_absence_of_its_keys() {
    let scene = Scene::new().await;
    let [email, handle] = users::keys(9);
    for key in [&email, &handle] {
        assert_eq!(scene.resolve(key, DAY).await.0, None);
    }
    scene.mutate(9, users::creation(9)).await;
    for key in [&email, &handle] {
        assert_eq!(scene.resolve(key, DAY).await, (Some(encoded(9)), 2));
    }
}

/// The read sees the former user, and its answer arrives after the write has ended.
#[tokio::test]
async fn a_read_begun_before_a_write_is_not_cached() {
    for (n, change) in
        [(3, users::mutation(users::id(3), unlink_handle(3))), (9, users::creation(9))]
    {
        let scene = Scene::new().await;
        let [_, key] = users::keys(n);
        scene.below.hold();
        let reading = scene.resolve(&key, DAY);
        let writing = async {
            scene.below.asked_for(1).await;
            scene.mutate(n, change).await;
            scene.below.release();
        };
        let (read, ()) = tokio::join!(reading, writing);
        assert_eq!(read.0.is_some(), n == 3, "the answer of its caller is the earlier one");
        let (found, reads) = scene.resolve(&key, DAY).await;
        assert!(reads > 0, "the earlier read was kept");
        assert_eq!(found.is_some(), n == 9);
    }
}

/// The read begins and ends during the commit.
#[tokio::test]
async fn a_read_during_a_commit_is_not_cached() {
    let scene = Scene::new().await;
    let [_, key] = users::keys(3);
    let pending = scene.cache.pending_user(&users::user(3), Duration::ZERO);
    assert_eq!(scene.resolve(&key, DAY).await.1, 2);
    assert_eq!(scene.resolve(&key, DAY).await.1, 0, "kept until the end of the commit");
    drop(pending);
    assert_eq!(scene.resolve(&key, DAY).await.1, 2);
    assert_eq!(scene.resolve(&key, DAY).await.1, 0);
}

/// As on a sharded cluster, where a commit is acknowledged before all shards show it.
#[tokio::test]
async fn reads_are_not_cached_while_a_commit_is_unresolved() {
    let [long, short] = [DAY, Duration::from_millis(50)];
    for settling in [long, short] {
        let scene = Scene::new().await;
        let [_, key] = users::keys(3);
        drop(scene.cache.pending_user(&users::user(3), settling));
        tokio::time::sleep(2 * short).await;
        scene.resolve(&key, DAY).await;
        let reads = scene.resolve(&key, DAY).await.1;
        assert_eq!(reads, if settling == long { 2 } else { 0 }, "{settling:?}");
    }
}
