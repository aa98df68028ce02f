//! Counters of one store: the embedded store removes old ones, and servers on MongoDB add to them
//! concurrently.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use locality_uuid::{Generator, LocalityId, Mode};
use polynym::directory::stores::{
    Resolution, Usage, UsageBatch, UsageCount, UsagePoint, UsageQuery,
};
use polynym::directory::{Tenant, Timestamp};
use polynym::store::embedded::{self, Embedded};
use polynym::store::mongo::{self, InitOptions, Mongo, init};
use tempfile::TempDir;

use crate::servers;

const DAY: Duration = Duration::from_secs(86_400);
const METRIC: &str = "calls.GetUser.OK";

fn server() -> LocalityId {
    Generator::new(Mode::Variable).next_id()
}

fn batch(server: LocalityId, number: u64, time: Timestamp, count: u64) -> UsageBatch {
    let caller = "web".to_owned();
    let metric = METRIC.to_owned();
    let counts = vec![UsageCount { tenant: Tenant::DEFAULT, caller, metric, count }];
    UsageBatch {
        server,
        number,
        time: Resolution::Minute.floor(time),
        clock_uncertain: false,
        counts,
    }
}

fn query(resolution: Resolution, from: Timestamp, to: Timestamp) -> UsageQuery {
    let from = resolution.floor(from);
    let (callers, metrics) = (Vec::new(), Vec::new());
    UsageQuery { tenant: Tenant::DEFAULT, from, to, resolution, callers, metrics }
}

async fn add(store: &dyn Usage, batch: UsageBatch) {
    store.add_usage(Arc::new(batch)).await.unwrap();
}

/// The counters between two times.
async fn counters(
    store: &dyn Usage,
    resolution: Resolution,
    (from, to): (Timestamp, Timestamp),
) -> BTreeMap<Timestamp, u64> {
    let points = store.usage(query(resolution, from, to), usize::MAX).await.unwrap();
    let count = points.len();
    let by_time = |point: UsagePoint| {
        assert_eq!((&*point.metric, &*point.caller), (METRIC, "web"));
        (point.time, point.count)
    };
    let counters: BTreeMap<_, _> = points.into_iter().map(by_time).collect();
    assert_eq!(counters.len(), count, "two counters of one interval");
    counters
}

/// A new embedded store, and its folder.
fn embedded_store() -> (Embedded, TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let options = embedded::Options { create: true, ..Default::default() };
    (Embedded::open(&folder.path().join("store"), options).unwrap(), folder)
}

#[tokio::test]
async fn an_embedded_store_removes_what_is_over() {
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
    // By a clock that has jumped, nothing is over.
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
