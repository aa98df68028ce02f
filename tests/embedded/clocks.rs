//! Clock jumps under a server on the embedded store, in both directions and under load.

use std::sync::Arc;
use std::time::Duration;

use conformance::StoreFactory;
use polynym_directory::{StoreClock, Timestamp};
use polynym_embedded::{Embedded, Options};
use redb::{ReadableDatabase, TableDefinition};

use super::{Folder, database, open};
use crate::support::scenarios::clocks;

#[tokio::test(flavor = "multi_thread")]
async fn a_clock_ahead_expires_nothing() {
    clocks::ahead(Folder::new(Options::default()).open().await.unwrap()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_clock_behind_keeps_deadlines() {
    clocks::behind(Folder::new(Options::default()).open().await.unwrap()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn clock_jumps_under_load_harm_no_user() {
    clocks::jumping(Folder::new(Options::default()).open().await.unwrap()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn clock_jumps_lose_no_event() {
    let folder = tempfile::tempdir().unwrap();
    let store = Arc::new(Embedded::open(folder.path(), Options::default()).unwrap());
    clocks::histories(clocks::Scene::new(store.backend()).await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn clock_jumps_count_each_call_once() {
    let folder = tempfile::tempdir().unwrap();
    let store = Arc::new(Embedded::open(folder.path(), Options::default()).unwrap());
    clocks::usage(clocks::Scene::new(store.backend()).await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_token_expires_after_a_day() {
    clocks::page_tokens(Folder::new(Options::default()).open().await.unwrap()).await;
}

#[test]
fn the_closing_time_of_a_store_is_stored() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path()).unwrap();
    let opened = Timestamp::now();
    assert_eq!(store.time(opened), Some(opened));

    std::thread::sleep(Duration::from_millis(20));
    drop(store);
    let meta = TableDefinition::<&str, u64>::new("meta");
    let database = database(folder.path());
    let last_seen = database
        .begin_read()
        .unwrap()
        .open_table(meta)
        .unwrap()
        .get("last_seen")
        .unwrap()
        .unwrap()
        .value();
    assert!(last_seen >= opened.as_millis() as u64 + 20, "{last_seen}");
    assert!(last_seen <= Timestamp::now().as_millis() as u64 + 1_000, "{last_seen}");
}
