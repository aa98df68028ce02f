//! The store on MongoDB, on replica sets: the conformance suite, and tests of this store alone.

#![allow(clippy::unwrap_used, reason = "a test that cannot continue has failed")]
#![allow(
    clippy::too_many_lines,
    clippy::cognitive_complexity,
    reason = "a test follows one scenario from beginning to end"
)]

mod abandoned_calls;
mod changes;
mod clocks;
mod credentials;
mod damaged_records;
mod deletion;
mod delivering;
mod feed;
mod fence;
mod golden;
mod harness;
mod heartbeat;
#[path = "../transport/http2/mod.rs"]
mod http2;
mod inbox;
mod large_batches;
mod lookup_cache;
mod lost_messages;
mod opening;
mod operations;
mod preference;
mod rules;
mod sharded;
mod store;
mod transfer;
mod usage;
mod versions;
mod walkthrough;
mod watch;
mod write_concerns;

use std::sync::Arc;

use async_trait::async_trait;
use conformance::{Failure, StoreFactory};
use polynym_directory::Backend;
use polynym_layers::coalesce::Coalesced;
use servers::{Databases, InDatabase};
use testkit::{self as support, calls, mongo as servers, scrape, server, status, users};

/// The store of the tests of the transport: calls run on the task of their connection.
fn test_store() -> http2::store::TestStore {
    let store = http2::block_on(async {
        let databases = Databases::of_set(servers::one_member().await, "");
        databases.uri(databases.factory().name().await)
    });
    http2::store::TestStore::new(store, None)
}

/// Random runs compared with the model.
const RUNS: u32 = 8;

/// Opens stores that coalesce look-ups.
struct CoalescedFactory(InDatabase);

#[async_trait]
impl StoreFactory for CoalescedFactory {
    async fn open(&self) -> Result<Backend, Failure> {
        let backend = self.0.open().await?;
        Ok(backend.layered(|inner| Coalesced::new(inner, Default::default())))
    }
}

/// The rooms of the suite whose cases look up most: a sample for layers over look-ups.
const LOOKING_UP: [&str; 6] =
    ["isolation::", "reading::", "quantity::", "survival::", "concurrency::", "merging::"];

#[tokio::test(flavor = "multi_thread")]
async fn conformance_with_coalesced_look_ups() {
    let databases = Databases::of_set(servers::one_member().await, "retryWrites=false");
    let factory = || -> Arc<dyn StoreFactory> { Arc::new(CoalescedFactory(databases.factory())) };
    support::conformance_of(&LOOKING_UP, factory).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes minutes"]
async fn long_conformance_with_coalesced_look_ups() {
    let databases = Databases::of_set(servers::one_member().await, "retryWrites=false");
    support::conformance(|| Arc::new(CoalescedFactory(databases.factory()))).await;
}

/// The cases that [`sharded::conformance`] does not run: each runs once.
#[tokio::test(flavor = "multi_thread")]
async fn conformance() {
    let databases = Databases::of_set(servers::one_member().await, "retryWrites=true");
    let factory = || -> Arc<dyn StoreFactory> { Arc::new(databases.factory()) };
    support::conformance_without(&sharded::ACROSS_SHARDS, factory).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes minutes"]
async fn long_conformance() {
    let databases = Databases::of_set(servers::one_member().await, "retryWrites=true");
    support::conformance(|| Arc::new(databases.factory())).await;
}

/// The rooms of the suite that members of a set could answer differently.
const REPLICATED: [&str; 3] = ["isolation::", "survival::", "concurrency::"];

#[tokio::test(flavor = "multi_thread")]
async fn conformance_on_three_members() {
    let databases = Databases::of_set(servers::three_members().await, "retryWrites=true");
    let factory = || -> Arc<dyn StoreFactory> { Arc::new(databases.factory()) };
    support::conformance_of(&REPLICATED, factory).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes minutes"]
async fn long_conformance_on_three_members() {
    let databases = Databases::of_set(servers::three_members().await, "retryWrites=true");
    support::conformance(|| Arc::new(databases.factory())).await;
}

#[test]
fn random_operations_agree_with_the_model() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let databases = Databases::of_set(runtime.block_on(servers::one_member()), "");
    support::steps::against_the_model(RUNS, || databases.factory());
}
