//! The store on a sharded cluster of MongoDB: the conformance suite, and what its calls cost on
//! which shard.

mod costs;

use std::sync::{Arc, OnceLock};

use crate::servers::{self, Databases};
use crate::support;

/// Random runs held against the model.
const RUNS: u32 = 8;

/// The databases that the tests of this file share.
async fn databases() -> Arc<Databases> {
    static SHARED: OnceLock<Arc<Databases>> = OnceLock::new();
    let cluster = servers::three_shards().await;
    SHARED.get_or_init(|| Databases::of_cluster(cluster)).clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn conformance() {
    let databases = databases().await;
    support::conformance(|| Arc::new(databases.place())).await;
}

#[test]
fn random_operations_agree_with_the_model() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let databases = runtime.block_on(databases());
    support::steps::against_the_model(RUNS, || databases.place());
}
