//! Operations that are undone in random histories: more than the contract of all stores has.

use std::sync::Arc;

use polynym_embedded::Options;

use super::Folder;

/// Histories of a store, which scans all of its users for each undoing.
const HISTORIES: u64 = 50;

async fn agree(histories: u64) {
    let (mut undone, mut reverted) = (0, 0);
    for first in (1_000..1_000 + histories).step_by(HISTORIES as usize) {
        let folder = Arc::new(Folder::new(Options::default()));
        let tally = conformance::undoing::agree(folder, first..first + HISTORIES).await;
        let tally = tally.unwrap_or_else(|failure| panic!("{failure}"));
        undone += tally.undone;
        reverted += tally.reverted;
    }
    println!("{histories} histories: {undone} operations were undone, for {reverted} users");
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
