//! Coalesced look-ups: the conformance suite over the embedded store, and tests of the sharing.

mod cancellation;
mod failures;
mod gate;
mod large_users;
mod load;
mod lone_look_ups;
mod queues;
mod separate_calls;
mod sharing;
mod slow_store;

use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use conformance::{Failure, StoreFactory};
use polynym_directory::Backend;
use polynym_embedded::{self as embedded, Embedded};
use polynym_layers::coalesce::{Coalesced, Options};
use tempfile::TempDir;

use crate::support;

/// A temporary folder with one store, whose look-ups are coalesced.
struct Folder(TempDir);

impl Folder {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }
}

#[async_trait]
impl StoreFactory for Folder {
    async fn open(&self) -> Result<Backend, Failure> {
        let path = self.0.path().to_owned();
        let store = tokio::task::spawn_blocking(move || embedded(&path)).await?;
        let backend = Arc::new(store).backend();
        Ok(backend.layered(|inner| Coalesced::new(inner, Options::default())))
    }
}

fn embedded(folder: &Path) -> Embedded {
    Embedded::open(folder, embedded::Options::default()).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn conformance() {
    support::conformance(|| Arc::new(Folder::new())).await;
}

#[test]
fn random_operations_agree_with_the_model() {
    support::steps::against_the_model(48, Folder::new);
}
