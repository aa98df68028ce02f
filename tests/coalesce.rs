//! Look-ups sent together: the conformance suite over the embedded store, and what is particular to sharing.

#![allow(clippy::unwrap_used, reason = "where a test cannot go on, it has failed")]

#[path = "coalesce/alone.rs"]
mod alone;
#[path = "coalesce/apart.rs"]
mod apart;
#[path = "coalesce/crowd.rs"]
mod crowd;
#[path = "coalesce/failing.rs"]
mod failing;
#[path = "coalesce/gate.rs"]
mod gate;
#[path = "coalesce/leaving.rs"]
mod leaving;
#[path = "coalesce/queueing.rs"]
mod queueing;
#[path = "coalesce/sharing.rs"]
mod sharing;
mod support;

use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use polynym::directory::Store;
use polynym::store::coalesce::{Coalesced, Options};
use polynym::store::conformance::{Failure, Place};
use polynym::store::embedded::{self, Embedded};
use tempfile::TempDir;

/// A folder of its own for one store, whose look-ups are sent together.
struct Folder(TempDir);

impl Folder {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }
}

#[async_trait]
impl Place for Folder {
    async fn open(&self) -> Result<Arc<dyn Store>, Failure> {
        let path = self.0.path().to_owned();
        let store = tokio::task::spawn_blocking(move || embedded(&path)).await?;
        Ok(Arc::new(Coalesced::new(Arc::new(store), Options::default())))
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
