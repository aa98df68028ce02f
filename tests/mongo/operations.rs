//! Metrics of the store's operations on MongoDB.

use std::sync::Arc;

use polynym_mongodb::{self as mongo, InitOptions, Mongo, init};

use crate::servers;
use crate::support::scenarios::operations::{every_call_is_an_operation, is_alone, run_alone};

/// The child process.
#[tokio::test(flavor = "multi_thread")]
async fn child() {
    if !is_alone() {
        return;
    }
    let uri = servers::one_member().await.uri("operations", "");
    init(&uri, &InitOptions::default(), &|_| {}).await.unwrap();
    let store = Arc::new(Mongo::open(&uri, mongo::Options::default()).await.unwrap());
    every_call_is_an_operation(store.backend()).await;
    store.close().await;
}

#[test]
fn every_call_of_the_store_is_an_operation() {
    run_alone("operations::child");
}
