//! Counters of calls in the embedded store.

use polynym_directory::Timestamp;
use polynym_directory::stores::{Resolution, UsageBatch};
use polynym_embedded::{self as embedded, Embedded};
use tempfile::TempDir;

use crate::support::scenarios::counters::{DAY, add, batch, counters, server};

/// A new embedded store, and its folder.
fn embedded_store() -> (Embedded, TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let options = embedded::Options { create: true, ..Default::default() };
    (Embedded::open(&folder.path().join("store"), options).unwrap(), folder)
}

#[tokio::test]
async fn expired_records_are_removed() {
    let (store, _folder) = embedded_store();
    let start = Timestamp::from_millis(1_795_559_400_000);
    let later = start.plus(15 * DAY);
    let (server, all) = (server(), (start, later.plus(DAY)));
    add(&store, batch(server, 1, start, 5)).await;
    add(&store, batch(server, 2, later, 6)).await;
    let sums = async |resolution| -> Vec<u64> {
        counters(&store, resolution, all).await.into_values().collect()
    };
    assert_eq!(sums(Resolution::Minute).await, [6]);
    assert_eq!(sums(Resolution::Hour).await, [5, 6]);
    assert_eq!(sums(Resolution::Day).await, [5, 6]);
    // An uncertain clock expires nothing.
    let jumped = UsageBatch { clock_uncertain: true, ..batch(server, 9, start.plus(90 * DAY), 1) };
    add(&store, jumped).await;
    assert_eq!(sums(Resolution::Minute).await, [6]);
    let years = 800 * DAY;
    add(&store, batch(server, 3, start.plus(years), 7)).await;
    let all = (start, start.plus(years + DAY));
    assert_eq!(
        counters(&store, Resolution::Hour, all).await.into_values().collect::<Vec<_>>(),
        [7]
    );
    assert_eq!(counters(&store, Resolution::Day, all).await.len(), 4);
}
