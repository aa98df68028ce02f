//! The store on a sharded cluster of MongoDB: the conformance suite, and the cost of calls on each
//! shard.

mod costs;

use std::sync::{Arc, OnceLock};

use crate::servers::{self, Databases};
use crate::support;

/// Random runs compared with the model.
const RUNS: u32 = 8;

/// The shared databases of this file.
async fn databases() -> Arc<Databases> {
    static SHARED: OnceLock<Arc<Databases>> = OnceLock::new();
    let cluster = servers::three_shards().await;
    SHARED.get_or_init(|| Databases::of_cluster(cluster)).clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn conformance() {
    let databases = databases().await;
    support::conformance(|| Arc::new(databases.factory())).await;
}

#[test]
fn random_operations_agree_with_the_model() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let databases = runtime.block_on(databases());
    support::steps::against_the_model(RUNS, || databases.factory());
}
