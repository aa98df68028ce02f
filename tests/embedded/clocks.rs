//! A clock that jumps under a server on the embedded store, in both directions and under load.

use std::time::Duration;

use conformance::StoreFactory;
use polynym::directory::{Store, Timestamp};
use polynym::store::embedded::Options;
use redb::{ReadableDatabase, TableDefinition};

use super::{Folder, database, open};
use crate::support::clocks;

#[tokio::test(flavor = "multi_thread")]
async fn nothing_ends_by_a_clock_that_is_ahead() {
    clocks::ahead(Folder::new(Options::default()).open().await.unwrap()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn deadlines_of_a_clock_that_is_behind_are_kept() {
    clocks::behind(Folder::new(Options::default()).open().await.unwrap()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_clock_that_jumps_under_load_harms_nobody() {
    clocks::jumping(Folder::new(Options::default()).open().await.unwrap()).await;
}

#[test]
fn the_time_at_which_a_store_is_closed_is_kept() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path()).unwrap();
    let seen = Timestamp::now();
    assert_eq!(store.time(seen), Some(seen));
    std::thread::sleep(Duration::from_millis(20));
    drop(store);
    let meta = TableDefinition::<&str, u64>::new("meta");
    let database = database(folder.path());
    let kept = database
        .begin_read()
        .unwrap()
        .open_table(meta)
        .unwrap()
        .get("last_seen")
        .unwrap()
        .unwrap()
        .value();
    assert!(kept >= seen.as_millis() as u64 + 20, "{kept}");
    assert!(kept <= Timestamp::now().as_millis() as u64 + 1_000, "{kept}");
}
