//! Clock jumps under a server on MongoDB, in both directions and under load, and their display in
//! `store status`.

use std::sync::Arc;
use std::time::Duration;

use conformance::StoreFactory;
use polynym_layers::coalesce::Coalesced;
use serde_json::Value;
use tokio::time::sleep;

use crate::server::polynym;
use crate::servers::{self, Databases, InDatabase};
use crate::support::calls::handle;
use crate::support::scenarios::clocks::{self, DAY, Scene};

async fn factory() -> InDatabase {
    Databases::of_set(servers::one_member().await, "").factory()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_clock_ahead_expires_nothing() {
    clocks::ahead(factory().await.open().await.unwrap()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_clock_behind_keeps_deadlines() {
    clocks::behind(factory().await.open().await.unwrap()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn clock_jumps_under_load_harm_no_user() {
    let store = factory().await.open().await.unwrap();
    clocks::jumping(store.layered(|inner| Coalesced::new(inner, Default::default()))).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn clock_jumps_lose_no_event() {
    let store = factory().await.mongo().await.unwrap();
    clocks::histories(Scene::new(Arc::new(store).backend()).await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn clock_jumps_count_each_call_once() {
    let store = Arc::new(factory().await.mongo().await.unwrap());
    clocks::usage(Scene::new(store.backend()).await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn status_shows_a_differing_clock_until_corrected() {
    let factory = factory().await;
    let mut scene = Scene::new(factory.open().await.unwrap()).await;
    scene.create(handle("joe")).await;
    let uri = factory.uri().await;
    for (ahead, shown) in
        [(-2 * DAY, Some("48.0 h behind")), (DAY, Some("24.0 h ahead of")), (0, None)]
    {
        scene.clock.set_ahead(ahead);
        until_status_shows(&uri, shown).await;
    }
}

/// Waits until `store status` shows this clock difference of a server.
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
    let output = polynym(&["store", "status", "--json", "--store", uri]).output().unwrap();
    let status: Value = serde_json::from_slice(&output.stdout).unwrap();
    panic!("{shown:?} is not shown: {}", status["clocks_ahead"]);
}
