//! The embedded store: the conformance suite, and tests particular to a store in a folder.

#![allow(clippy::unwrap_used, reason = "a test that cannot continue has failed")]
#![allow(
    clippy::too_many_lines,
    clippy::cognitive_complexity,
    reason = "a test follows one scenario from beginning to end"
)]

mod backups;
mod batches;
mod bulk;
mod bulk_records;
mod calls;
mod clocks;
mod coalesce;
mod compacting;
mod crash;
mod damage;
mod damaged_records;
mod deliveries;
mod disk_outage;
mod events;
mod expiry;
mod foreign_files;
mod full_disk;
mod golden;
mod groups;
mod inbox;
mod journal;
mod lookup_cache;
mod merge_redirects;
mod moved_files;
mod operations;
mod owners;
mod server_kills;
mod soak;
mod undoing;
mod usage;
mod versions;

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use conformance::step::{Action, Etag, Step};
use conformance::{Failure, StoreFactory, model};
use polynym_directory::{Backend, ConflictPolicy};
use polynym_embedded::{Embedded, OpenError, Options};
use tempfile::TempDir;

use support::database;
use support::mongo::wrong_hints::WrongHints;
use testkit::{self as support, server, users};

/// The name of a store's file in its folder.
const FILE: &str = "directory.redb";

/// A temporary folder with one store.
struct Folder {
    folder: TempDir,
    options: Options,
}

impl Folder {
    fn new(options: Options) -> Self {
        Self { folder: tempfile::tempdir().unwrap(), options }
    }
}

#[async_trait]
impl StoreFactory for Folder {
    async fn open(&self) -> Result<Backend, Failure> {
        let (path, options) = (self.folder.path().to_owned(), self.options);
        let store = tokio::task::spawn_blocking(move || Embedded::open(&path, options)).await??;
        let hints = store.hints();
        Ok(Arc::new(store).backend().layered(|inner| WrongHints::new(inner, hints)))
    }
}

/// Opens a store with a small cache, so that reads go to the file. One that was just closed may be
/// in use for a moment: a program that another test starts has the locks of this one until it runs.
fn open(folder: &Path) -> Result<Embedded, OpenError> {
    let options = Options { cache_bytes: 1 << 20, ..Options::default() };
    let began = Instant::now();
    loop {
        match Embedded::open(folder, options) {
            Err(OpenError::InUse { .. }) if began.elapsed() < Duration::from_secs(1) => {
                std::thread::sleep(Duration::from_millis(20));
            }
            other => return other,
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn conformance() {
    support::conformance(|| Arc::new(Folder::new(Options::default()))).await;
}

#[test]
fn random_operations_agree_with_the_model() {
    support::steps::against_the_model(48, || Folder::new(Options::default()));
}

/// Limits may be lowered between a merge and its undoing.
#[tokio::test]
async fn an_unmerge_beyond_a_limit_agrees_with_the_model() {
    agrees_with_the_model(&[
        step(Action::Create(vec![0, 3, 2], false), 0),
        step(Action::Create(vec![], false), 0),
        step(Action::Merge(0, ConflictPolicy::PrimaryWins), 1),
        Step { room: 1, ..step(Action::Unmerge(0), 1) },
    ])
    .await;
}

/// The purge of the user between the merges removes the identity's past, and with it the owner
/// before the second merge.
#[tokio::test]
async fn a_purge_between_merges_agrees_with_the_model() {
    agrees_with_the_model(&[
        step(Action::Create(vec![9], false), 0),
        step(Action::Create(vec![], false), 0),
        step(Action::Merge(0, ConflictPolicy::PrimaryWins), 1),
        step(Action::Unmerge(0), 1),
        step(Action::Create(vec![], false), 0),
        step(Action::Merge(0, ConflictPolicy::PrimaryWins), 2),
        step(Action::Purge, 1),
    ])
    .await;
}

async fn agrees_with_the_model(steps: &[Step]) {
    model::run(Arc::new(Folder::new(Options::default())), steps).await.unwrap();
}

/// A step by the user with this number.
const fn step(action: Action, user: usize) -> Step {
    Step {
        action,
        user,
        tenant: 0,
        etag: Etag::Any,
        request: None,
        room: 100,
        policies: 0,
        dry_run: false,
        elapsed: 0,
    }
}
