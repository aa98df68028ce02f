//! Exports that are read slowly while users change.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::{creation, file_id, id, wait_for_recovery};
use crate::file::opener::FILE;
use crate::file::tests::faults::Failing;
use crate::options::Options;
use crate::store::Embedded;
use polynym_directory::{
    ExportSnapshot, Mutation, Mutations, Search, Tenant, Timestamp, UserChange,
};

const USERS: u32 = 200;
const MAX_WRITES: u64 = 2 << 20;

/// A store with users, and a snapshot of it.
async fn exported(folder: &Path) -> (Arc<Embedded>, Box<dyn ExportSnapshot>) {
    let options = Options { max_snapshot_writes: Some(MAX_WRITES), ..Options::default() };
    let store = Arc::new(Embedded::open(folder, options).unwrap());
    let created = store.mutate_all((0..USERS).map(creation).collect()).await;
    created.into_iter().for_each(|outcome| drop(outcome.unwrap()));
    let snapshot = store.snapshot().await.unwrap().unwrap();
    (store, snapshot)
}

/// Writes all users again, which changes neither them nor their histories.
async fn rewrite(store: &Embedded) {
    let time = Timestamp::from_millis(1_767_225_600_000);
    let again = |n| Mutation::of_user(Tenant::DEFAULT, id(n), time, UserChange::Reindex);
    let written = store.mutate_all((0..USERS).map(again).collect()).await;
    written.into_iter().for_each(|outcome| drop(outcome.unwrap()));
}

async fn first(snapshot: &dyn ExportSnapshot) -> Option<usize> {
    snapshot.scan(&Tenant::DEFAULT, None, 10).await.unwrap().map(|page| page.users.len())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_snapshot_ends_before_it_makes_the_file_grow_too_far() {
    let folder = tempfile::tempdir().unwrap();
    let (store, snapshot) = exported(folder.path()).await;
    let size = || fs::metadata(folder.path().join(FILE)).unwrap().len();
    let before = size();
    let mut rounds = 0;
    while first(&*snapshot).await == Some(10) {
        rewrite(&store).await;
        rounds += 1;
        assert!(rounds < 1_000, "the snapshot stays, and the file has {} bytes", size());
    }
    assert_eq!(first(&*snapshot).await, None);
    let after = size();
    assert!(after < before + 3 * MAX_WRITES, "{before} to {after}");

    // The pages that the snapshot has kept are used again.
    for _ in 0..rounds {
        rewrite(&store).await;
    }
    assert_eq!(size(), after, "after {rounds} rounds, and as many more");
}

#[tokio::test(flavor = "multi_thread")]
async fn exports_that_are_not_read_keep_no_more_than_one() {
    let folder = tempfile::tempdir().unwrap();
    let (store, snapshot) = exported(folder.path()).await;
    let size = || fs::metadata(folder.path().join(FILE)).unwrap().len();
    let before = size();
    let mut begun = vec![snapshot];
    for n in 0..12 {
        while first(&*begun[n]).await == Some(10) {
            rewrite(&store).await;
            begun.push(store.snapshot().await.unwrap().unwrap());
            let after = size();
            assert!(
                after < before + 3 * MAX_WRITES,
                "{} exports: {before} to {after}",
                begun.len()
            );
        }
        begun.truncate(n + 1);
        begun.push(store.snapshot().await.unwrap().unwrap());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_snapshot_ends_once_its_file_is_opened_again() {
    let folder = tempfile::tempdir().unwrap();
    let (store, snapshot) = exported(folder.path()).await;
    rewrite(&store).await;
    let failing = Failing::new(file_id(folder.path()), 0..u64::MAX);
    store.mutate(creation(USERS)).await.expect_err("the disk fails");
    assert_eq!(first(&*snapshot).await, Some(10));
    drop(failing);
    wait_for_recovery(&store).await;
    assert_eq!(first(&*snapshot).await, None, "its pages may be written");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_snapshot_ends_by_its_age() {
    let folder = tempfile::tempdir().unwrap();
    let (store, snapshot) = exported(folder.path()).await;
    store.exports.drop_costly(Instant::now() + Duration::from_secs(299), 0);
    assert_eq!(first(&*snapshot).await, Some(10));
    store.exports.drop_costly(Instant::now() + Duration::from_secs(301), 0);
    assert_eq!(first(&*snapshot).await, None);
    assert_eq!(snapshot.ownerless_holds(&Tenant::DEFAULT, None, 10).await.unwrap(), None);
}
