//! What any store of counters does.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use locality_uuid::{Generator, LocalityId, Mode};
use polynym::directory::usage::{
    Resolution, UsageBatch, UsageCount, UsagePoint, UsageQuery, UsageStore,
};
use polynym::directory::{Tenant, Timestamp};

/// A day.
pub const DAY: Duration = Duration::from_secs(86_400);
const METRIC: &str = "calls.GetUser.OK";

/// The id of a server.
pub fn server() -> LocalityId {
    Generator::new(Mode::Variable).next_id()
}

/// The batch `number` of a server, with one counter.
pub fn batch(server: LocalityId, number: u64, time: Timestamp, count: u64) -> UsageBatch {
    let caller = "web".to_owned();
    let metric = METRIC.to_owned();
    let counts = vec![UsageCount { tenant: Tenant::DEFAULT, caller, metric, count }];
    UsageBatch { server, number, time: Resolution::Minute.floor(time), in_doubt: false, counts }
}

fn query(resolution: Resolution, from: Timestamp, to: Timestamp) -> UsageQuery {
    let from = resolution.floor(from);
    let (callers, metrics) = (Vec::new(), Vec::new());
    UsageQuery { tenant: Tenant::DEFAULT, from, to, resolution, callers, metrics }
}

pub async fn add(store: &dyn UsageStore, batch: UsageBatch) {
    store.add_usage(Arc::new(batch)).await.unwrap();
}

/// The counters between two times.
pub async fn counters(
    store: &dyn UsageStore,
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

/// Adds minutes of some days, with the batches of two servers in turn, some of them sent twice.
pub async fn check(store: &dyn UsageStore) {
    // 2026-11-24T22:30:00Z: with midnight, and the end of a month.
    let start = Timestamp::from_millis(1_795_559_400_000);
    let servers = [server(), server()];
    let mut expected: [BTreeMap<Timestamp, u64>; 3] = Default::default();
    let mut end = start;
    for n in 0..60_u64 {
        // Steps of 7 minutes, and later of 5 hours.
        let step = if n < 40 { n * 7 * 60 } else { 40 * 7 * 60 + (n - 40) * 5 * 3_600 };
        let time = start.plus(Duration::from_secs(step));
        let batch = batch(servers[n as usize % 2], n / 2 + 1, time, n + 1);
        for resolution in Resolution::ALL {
            *expected[resolution as usize].entry(resolution.floor(time)).or_default() += n + 1;
        }
        add(store, batch.clone()).await;
        if n % 2 == 1 {
            add(store, batch).await;
        }
        end = time.plus(Duration::from_secs(60));
    }
    for resolution in Resolution::ALL {
        let all = counters(store, resolution, (start, end)).await;
        assert_eq!(all, expected[resolution as usize], "{resolution:?}");
        // A part: the beginning is included, the end is not.
        let times: Vec<_> = all.keys().copied().collect();
        let (from, to) = (times[1], times[times.len() - 1]);
        let part = counters(store, resolution, (from, to)).await;
        let expected: BTreeMap<_, _> = all.range(from..to).map(|(time, n)| (*time, *n)).collect();
        assert_eq!(part, expected, "{resolution:?}");
    }

    // Other tenants, callers and metrics.
    let wanted = query(Resolution::Day, start, end);
    let none = UsageQuery { tenant: Tenant::parse("acme").unwrap(), ..wanted.clone() };
    assert_eq!(store.usage(none, 10).await.unwrap(), []);
    let none = UsageQuery { callers: vec!["job".to_owned()], ..wanted.clone() };
    assert_eq!(store.usage(none, 10).await.unwrap(), []);
    let some = UsageQuery { metrics: vec!["calls.GetUser.*".to_owned()], ..wanted.clone() };
    assert_eq!(store.usage(some, usize::MAX).await.unwrap().len(), expected[2].len());
    assert_eq!(store.usage(wanted, 2).await.unwrap().len(), 2);
}
