//! Counters of calls on MongoDB: servers that come and go.

use std::sync::Arc;

use polynym::directory::Timestamp;
use polynym::directory::stores::Resolution;
use polynym::store::mongo::{self, InitOptions, Mongo, init};

use crate::servers;
use crate::support::scenarios::counters::{DAY, add, batch, counters, server};
use crate::support::scenarios::usage::servers_count_what_they_do;

#[tokio::test(flavor = "multi_thread")]
async fn servers_that_make_the_same_documents_lose_nothing() {
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
async fn mongodb_has_what_servers_counted() {
    let uri = servers::one_member().await.uri("usage", "");
    init(&uri, &InitOptions::default(), &|_| {}).await.unwrap();
    servers_count_what_they_do(&uri).await;
}
