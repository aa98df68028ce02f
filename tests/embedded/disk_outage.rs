//! A disk that fails under an open store: unavailable for a while, or with lost pages.

use std::fs;
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use polynym_directory::{Backend, Error, UserChange};
use tempfile::TempDir;

use super::support::users;
use super::{FILE, open};

/// More users than the cache holds, so that some look-ups read the disk.
const USERS: usize = 6_000;

async fn write(store: &Backend) {
    let write = |n| {
        let store = store.clone();
        tokio::spawn(async move { store.mutations.mutate(users::creation(n)).await })
    };
    let tasks: Vec<_> = (0..USERS).map(write).collect();
    for task in tasks {
        task.await.unwrap().unwrap();
    }
}

/// Looks up all users and returns the first error.
async fn first_error(store: &Backend) -> Option<Error> {
    for n in 0..USERS {
        if let Err(error) = users::look_up(&*store.lookups, n).await {
            return Some(error);
        }
    }
    None
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_recovers_completely_after_a_disk_outage() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join(FILE);
    let store = Arc::new(open(folder.path()).unwrap()).backend();
    write(&store).await;

    let (copy, gone) = (folder.path().join("copy"), folder.path().join("gone"));
    fs::copy(&file, &copy).unwrap();
    fs::rename(&file, &gone).unwrap();
    fs::File::options().write(true).open(&gone).unwrap().set_len(0).unwrap();
    let error = first_error(&store).await.expect("all look-ups were answered without the file");
    assert!(matches!(error, Error::Unavailable(_)), "{error:?}");

    let refused = store.mutations.mutate(users::creation(USERS)).await;
    assert!(matches!(refused, Err(Error::Unavailable(_))), "{refused:?}");
    tokio::time::sleep(Duration::from_millis(1_200)).await;
    assert!(
        matches!(store.reads.check().await, Err(Error::Unavailable(_))),
        "a store without its file reports itself healthy"
    );
    assert!(!file.exists(), "an empty store replaced the missing one");

    fs::rename(&copy, &file).unwrap();
    let start = Instant::now();
    while store.reads.check().await.is_err() {
        assert!(start.elapsed() < Duration::from_secs(60), "the store does not recover");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    for n in (0..USERS).step_by(7) {
        assert!(users::look_up(&*store.lookups, n).await.unwrap(), "user {n} is lost");
    }
    assert!(
        !users::look_up(&*store.lookups, USERS).await.unwrap(),
        "a refused mutation took effect"
    );

    store.mutations.mutate(users::creation(USERS)).await.unwrap();
    assert!(users::look_up(&*store.lookups, USERS).await.unwrap());
}

/// Returns an open store whose pages have all been zeroed.
async fn open_with_lost_pages() -> (Backend, TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let store = Arc::new(open(folder.path()).unwrap()).backend();
    write(&store).await;
    let file = fs::File::options().write(true).open(folder.path().join(FILE)).unwrap();
    let length = file.metadata().unwrap().len();
    file.write_all_at(&vec![0; length as usize - 4_096], 4_096).unwrap();
    (store, folder)
}

/// Asserts that the store refuses every operation: no answer from this file can be trusted, and
/// reopening does not help.
async fn assert_failed(store: &Backend) {
    for _ in 0..3 {
        let check = store.reads.check().await;
        assert!(
            matches!(check, Err(Error::Internal(_))),
            "a damaged store reports itself healthy: {check:?}"
        );
        let read = users::look_up(&*store.lookups, 0).await;
        assert!(matches!(read, Err(Error::Internal(_))), "{read:?}");
        let refused = store.mutations.mutate(users::creation(USERS)).await;
        assert!(matches!(refused, Err(Error::Internal(_))), "{refused:?}");
        tokio::time::sleep(Duration::from_millis(600)).await;
    }
}

/// Look-ups that need a lost page fail, each with an error.
#[tokio::test(flavor = "multi_thread")]
async fn lost_pages_under_an_open_store_return_errors() {
    let (store, _folder) = open_with_lost_pages().await;
    let (mut found, mut failed) = (0, 0);
    for n in 0..USERS {
        match users::look_up(&*store.lookups, n).await {
            Ok(true) => found += 1,
            Ok(false) => panic!("user {n} is reported absent although its page is lost"),
            Err(Error::Unavailable(_) | Error::Internal(_)) => failed += 1,
            Err(error) => panic!("{error:?}"),
        }
    }

    println!("{found} users were read from memory, {failed} look-ups failed");
    assert!(failed > 0);
    assert_failed(&store).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_mutation_on_a_lost_page_fails_and_so_do_all_later_ones() {
    let (store, _folder) = open_with_lost_pages().await;
    let mut changed = 0;
    let error = loop {
        assert!(changed < USERS, "all users were changed without their pages");
        match store
            .mutations
            .mutate(users::mutation(users::id(changed), UserChange::Unlink(users::email(changed))))
            .await
        {
            Ok(_) => changed += 1,
            Err(error) => break error,
        }
    };
    assert!(matches!(error, Error::Internal(_) | Error::OutcomeUnknown(_)), "{error:?}");
    assert_failed(&store).await;
}
