//! A clock that jumps under a server on MongoDB, in both directions and under load; and how `store
//! status` shows it.

use std::sync::Arc;
use std::time::Duration;

use conformance::StoreFactory;
use polynym_layers::coalesce::Coalesced;
use serde_json::Value;
use tokio::time::sleep;

use crate::server::polynym;
use crate::servers::{self, Databases, InDatabase};
use crate::support::calls::handle;
use crate::support::clocks::{self, DAY, Scene};

async fn place() -> InDatabase {
    Databases::of_set(servers::one_member().await, "").place()
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_ends_by_a_clock_that_is_ahead() {
    clocks::ahead(place().await.open().await.unwrap()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn deadlines_of_a_clock_that_is_behind_are_kept() {
    clocks::behind(place().await.open().await.unwrap()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_clock_that_jumps_under_load_harms_nobody() {
    let store = place().await.open().await.unwrap();
    clocks::jumping(store.layered(|inner| Coalesced::new(inner, Default::default()))).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn no_event_is_lost_by_a_clock_that_jumps() {
    let store = place().await.mongo().await.unwrap();
    clocks::histories(Scene::new(Arc::new(store).backend()).await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn each_call_is_counted_once_by_a_clock_that_jumps() {
    let store = Arc::new(place().await.mongo().await.unwrap());
    clocks::usage(Scene::new(store.backend()).await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn status_shows_a_clock_that_differs_until_it_is_set_right() {
    let place = place().await;
    let mut scene = Scene::new(place.open().await.unwrap()).await;
    scene.create(handle("joe")).await;
    let uri = place.uri().await;
    for (ahead, shown) in
        [(-2 * DAY, Some("48.0 h behind")), (DAY, Some("24.0 h ahead of")), (0, None)]
    {
        scene.clock.set_ahead(ahead);
        until_status_shows(&uri, shown).await;
    }
}

/// Waits until `store status` shows the clock of a server so.
async fn until_status_shows(uri: &str, shown: Option<&str>) {
    for _ in 0..600 {
        let status = polynym(&["store", "status", "--store", uri]).output().unwrap();
        assert!(status.status.success(), "{status:?}");
        let text = String::from_utf8(status.stdout).unwrap();
        if shown.map_or(!text.contains("clock"), |shown| text.contains(shown)) {
            return;
        }
        sleep(Duration::from_millis(100)).await;
    }
    let status = polynym(&["store", "status", "--json", "--store", uri]).output().unwrap();
    let status: Value = serde_json::from_slice(&status.stdout).unwrap();
    panic!("{shown:?} is not shown: {}", status["clocks_ahead"]);
}
