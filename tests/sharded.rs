//! The store on a sharded cluster of MongoDB: the conformance suite, and what its calls cost on which shard.

#![allow(clippy::unwrap_used, reason = "where a test cannot go on, it has failed")]

#[path = "sharded/costs.rs"]
mod costs;
#[path = "support/mongo/mod.rs"]
mod servers;
mod support;

use std::sync::{Arc, OnceLock};

use servers::Databases;
use tokio::sync::RwLock;

/// Random runs held against the model.
const RUNS: u32 = 8;

/// Whoever counts what the servers do has them alone.
static ALONE: RwLock<()> = RwLock::const_new(());

/// The databases that the tests of this file share.
async fn databases() -> Arc<Databases> {
    static SHARED: OnceLock<Arc<Databases>> = OnceLock::new();
    let cluster = servers::three_shards().await;
    SHARED.get_or_init(|| Databases::of_cluster(cluster)).clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn conformance() {
    let _among_others = ALONE.read().await;
    let databases = databases().await;
    support::conformance(|| Arc::new(databases.place())).await;
}

#[test]
fn random_operations_agree_with_the_model() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let _among_others = runtime.block_on(ALONE.read());
    let databases = runtime.block_on(databases());
    support::steps::against_the_model(RUNS, || databases.place());
}
