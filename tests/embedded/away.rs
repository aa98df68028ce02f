//! A disk that fails under an open store: one that goes away and comes back, and one that loses
//! what it had.

use std::fs;
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use polynym::directory::{Error, Store, UserChange};
use tempfile::TempDir;

use super::support::users;
use super::{FILE, open};

/// More than the cache holds, so that some look-ups go to the disk.
const USERS: usize = 6_000;

async fn write(store: &Arc<dyn Store>) {
    let write = |n| {
        let store = store.clone();
        tokio::spawn(async move { store.mutate(users::creation(n)).await })
    };
    let tasks: Vec<_> = (0..USERS).map(write).collect();
    for task in tasks {
        task.await.unwrap().unwrap();
    }
}

/// Looks users up until a look-up fails.
async fn first_error(store: &dyn Store) -> Option<Error> {
    for n in 0..USERS {
        if let Err(error) = users::look_up(store, n).await {
            return Some(error);
        }
    }
    None
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_whose_disk_was_away_comes_back_with_everything() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join(FILE);
    let store: Arc<dyn Store> = Arc::new(open(folder.path()).unwrap());
    write(&store).await;

    let (copy, gone) = (folder.path().join("copy"), folder.path().join("gone"));
    fs::copy(&file, &copy).unwrap();
    fs::rename(&file, &gone).unwrap();
    fs::File::options().write(true).open(&gone).unwrap().set_len(0).unwrap();
    let error = first_error(&*store).await.expect("all look-ups were answered without the file");
    assert!(matches!(error, Error::Unavailable(_)), "{error:?}");
    let refused = store.mutate(users::creation(USERS)).await;
    assert!(matches!(refused, Err(Error::Unavailable(_))), "{refused:?}");
    tokio::time::sleep(Duration::from_millis(1_200)).await;
    assert!(
        matches!(store.check().await, Err(Error::Unavailable(_))),
        "a store without its file says that it is well"
    );
    assert!(!file.exists(), "an empty store was put in the place of the one that went away");

    fs::rename(&copy, &file).unwrap();
    let start = Instant::now();
    while store.check().await.is_err() {
        assert!(start.elapsed() < Duration::from_secs(60), "the store does not come back");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    for n in (0..USERS).step_by(7) {
        assert!(users::look_up(&*store, n).await.unwrap(), "user {n} is lost");
    }
    assert!(!users::look_up(&*store, USERS).await.unwrap(), "what was refused happened");
    store.mutate(users::creation(USERS)).await.unwrap();
    assert!(users::look_up(&*store, USERS).await.unwrap());
}

/// A store of which all pages have become zeros after it was opened.
async fn lost() -> (Arc<dyn Store>, TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let store: Arc<dyn Store> = Arc::new(open(folder.path()).unwrap());
    write(&store).await;
    let file = fs::File::options().write(true).open(folder.path().join(FILE)).unwrap();
    let length = file.metadata().unwrap().len();
    file.write_all_at(&vec![0; length as usize - 4_096], 4_096).unwrap();
    (store, folder)
}

/// No answer from this file can be relied upon any more, and opening it again makes it no better.
async fn is_given_up(store: &dyn Store) {
    for _ in 0..3 {
        let check = store.check().await;
        assert!(
            matches!(check, Err(Error::Internal(_))),
            "a damaged store says that it is well: {check:?}"
        );
        let read = users::look_up(store, 0).await;
        assert!(matches!(read, Err(Error::Internal(_))), "{read:?}");
        let refused = store.mutate(users::creation(USERS)).await;
        assert!(matches!(refused, Err(Error::Internal(_))), "{refused:?}");
        tokio::time::sleep(Duration::from_millis(600)).await;
    }
}

/// The disk loses pages while the store is open: look-ups that need them fail, each with an answer.
#[tokio::test(flavor = "multi_thread")]
async fn pages_that_are_lost_under_an_open_store_give_errors() {
    let (store, _folder) = lost().await;
    let (mut there, mut failed) = (0, 0);
    for n in 0..USERS {
        match users::look_up(&*store, n).await {
            Ok(true) => there += 1,
            Ok(false) => panic!("user {n} is not there, says a store that cannot know"),
            Err(Error::Unavailable(_) | Error::Internal(_)) => failed += 1,
            Err(error) => panic!("{error:?}"),
        }
    }
    println!("{there} users were read from memory, {failed} look-ups failed");
    assert!(failed > 0);
    is_given_up(&*store).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_mutation_that_needs_a_page_that_is_lost_fails_and_so_do_all_after_it() {
    let (store, _folder) = lost().await;
    let mut changed = 0;
    let error = loop {
        assert!(changed < USERS, "all users were changed without their pages");
        match store
            .mutate(users::mutation(users::id(changed), UserChange::Unlink(users::email(changed))))
            .await
        {
            Ok(_) => changed += 1,
            Err(error) => break error,
        }
    };
    assert!(matches!(error, Error::Internal(_) | Error::OutcomeUnknown(_)), "{error:?}");
    is_given_up(&*store).await;
}
