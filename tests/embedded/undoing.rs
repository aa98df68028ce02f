//! Operations that are undone in random histories: more than the contract of all stores has. The
//! store is consistent afterwards.

use std::sync::Arc;

use polynym_embedded::{IntegritySession, Options};

use super::Folder;
use polynym_store_common::integrity::{Finding, Inconsistency, Observer, verify};

/// Histories of a store, which scans all of its users for each undoing.
const HISTORIES: u64 = 50;

/// Accepts histories alone: some changes of these users have no event.
struct Consistent;

impl Observer for Consistent {
    fn at(&mut self, _: &'static str, _: u64, _: u64) {}

    fn found(&mut self, finding: &Finding) {
        assert_eq!(finding.fault, Inconsistency::History, "{finding:?}");
    }
}

async fn agree(histories: u64) {
    let (mut undone, mut reverted) = (0, 0);
    for first in (1_000..1_000 + histories).step_by(HISTORIES as usize) {
        let folder = Arc::new(Folder::new(Options::default()));
        let seeds = first..first + HISTORIES;
        let tally = conformance::undoing::agree(folder.clone(), seeds).await;
        let tally = tally.unwrap_or_else(|failure| panic!("{failure}"));
        let session = IntegritySession::open(folder.folder.path()).unwrap();
        let summary = verify(&session, false, &mut Consistent).await.unwrap();
        assert!(summary.users > 50, "{summary:?}");
        undone += tally.undone;
        reverted += tally.reverted;
        let done = first + HISTORIES - 1_000;
        println!("{done} histories: {undone} operations were undone, for {reverted} users");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn undone_operations_agree_with_the_model() {
    agree(HISTORIES).await;
}

/// `POLYNYM_HISTORIES` sets the number of histories, in each of which six operations are undone.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes an hour"]
async fn long_undone_operations_agree_with_the_model() {
    let histories = std::env::var("POLYNYM_HISTORIES");
    agree(histories.map_or(17_000, |text| text.parse().unwrap())).await;
}
