//! Counters of calls on MongoDB.

use std::sync::Arc;

use polynym_directory::{Resolution, Timestamp};
use polynym_mongodb::{self as mongo, InitOptions, Mongo, init};

use crate::servers;
use crate::support::scenarios::counters::{DAY, add, batch, counters, server};
use crate::support::scenarios::usage::clean_stops_lose_no_counts;

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_writers_of_one_document_lose_nothing() {
    const ROUNDS: u32 = 40;
    let uri = servers::one_member().await.uri("usage_race", "");
    init(&uri, &InitOptions::default(), &|_| {}).await.unwrap();
    let open = async || Arc::new(Mongo::open(&uri, mongo::Options::default()).await.unwrap());
    let stores = [open().await, open().await, open().await];
    let start = Timestamp::from_millis(1_795_559_400_000);
    let ids = stores.each_ref().map(|_| server());
    for round in 0..ROUNDS {
        let adding = stores.iter().zip(ids).map(|(store, id)| {
            let batch = batch(id, u64::from(round) + 1, start.plus(round * DAY), 1);
            let store = store.clone();
            tokio::spawn(async move { add(&*store, batch).await })
        });
        for added in adding.collect::<Vec<_>>() {
            added.await.unwrap();
        }
    }
    let all = (start, start.plus(ROUNDS * DAY));
    for resolution in Resolution::ALL {
        let counted = counters(&*stores[0], resolution, all).await;
        assert_eq!(counted.len(), ROUNDS as usize, "{resolution:?}");
        assert!(counted.values().all(|count| *count == 3), "{resolution:?}: {counted:?}");
    }
    for store in stores {
        store.close().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn mongodb_counts_calls() {
    let uri = servers::one_member().await.uri("usage", "");
    init(&uri, &InitOptions::default(), &|_| {}).await.unwrap();
    clean_stops_lose_no_counts(&uri).await;
}
