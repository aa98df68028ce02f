//! Metrics of the store's operations.

use std::sync::Arc;

use polynym_embedded::{Embedded, Options};

use crate::support::scenarios::operations::{every_call_is_an_operation, is_alone, run_alone};

/// The child process.
#[tokio::test(flavor = "multi_thread")]
async fn child() {
    if !is_alone() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let store = Arc::new(Embedded::open(folder.path(), Options::default()).unwrap());
    every_call_is_an_operation(store.backend()).await;
}

#[test]
fn every_call_of_the_store_is_an_operation() {
    run_alone("operations::child");
}
