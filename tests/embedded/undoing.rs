//! Operations that are undone in random histories: more than the contract of all stores has. The
//! store is consistent afterwards.

use std::sync::Arc;

use polynym_embedded::{IntegritySession, Options};

use super::Folder;
use polynym_store_common::integrity::{Finding, Inconsistency, Observer, verify};

/// Histories of a store, which scans all of its users for each undoing.
const HISTORIES: u64 = 50;
/// The seed of the first; those below are of the contract of all stores.
const FIRST: u64 = 1_000;

/// Accepts histories alone: some changes of these users have no event.
struct Consistent;

impl Observer for Consistent {
    fn at(&mut self, _: &'static str, _: u64, _: u64) {}

    fn found(&mut self, finding: &Finding) {
        assert_eq!(finding.fault, Inconsistency::History, "{finding:?}");
    }
}

async fn agree(first: u64, histories: u64) {
    let (mut undone, mut reverted) = (0, 0);
    let begin = first;
    for first in (begin..begin + histories).step_by(HISTORIES as usize) {
        let folder = Arc::new(Folder::new(Options::default()));
        let seeds = first..first + HISTORIES;
        let tally = conformance::undoing::agree(folder.clone(), seeds).await;
        let tally = tally.unwrap_or_else(|failure| panic!("{failure}"));
        let session = IntegritySession::open(folder.folder.path()).unwrap();
        let summary = verify(&session, false, &mut Consistent).await.unwrap();
        assert!(summary.users > 50, "{summary:?}");
        undone += tally.undone;
        reverted += tally.reverted;
        let done = first + HISTORIES - begin;
        println!("{done} histories: {undone} operations were undone, for {reverted} users");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn undone_operations_agree_with_the_model() {
    agree(FIRST, HISTORIES).await;
}

/// `POLYNYM_HISTORIES` sets the number of histories, in each of which six operations are undone,
/// and `POLYNYM_FIRST_HISTORY` the seed of the first.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes an hour"]
async fn long_undone_operations_agree_with_the_model() {
    let number = |name, default| std::env::var(name).map_or(default, |text| text.parse().unwrap());
    let first = number("POLYNYM_FIRST_HISTORY", FIRST);
    agree(first, number("POLYNYM_HISTORIES", 17_000)).await;
}
