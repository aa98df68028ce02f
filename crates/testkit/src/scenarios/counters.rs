//! Counters of one store: the embedded store removes old ones, and servers on MongoDB add to them
//! concurrently.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use locality_uuid::{Generator, LocalityId, Mode};
use polynym_directory::{
    Resolution, Tenant, Timestamp, Usage, UsageBatch, UsageCount, UsagePoint, UsageQuery,
};

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
    UsageBatch {
        server,
        number,
        time: Resolution::Minute.floor(time),
        clock_uncertain: false,
        counts,
    }
}

/// The query for all counters between two times.
pub fn query(resolution: Resolution, from: Timestamp, to: Timestamp) -> UsageQuery {
    let from = resolution.floor(from);
    let (callers, metrics) = (Vec::new(), Vec::new());
    UsageQuery { tenant: Tenant::DEFAULT, from, to, resolution, callers, metrics }
}

/// Adds a batch to the counters of a store.
pub async fn add(store: &dyn Usage, batch: UsageBatch) {
    store.add_usage(Arc::new(batch)).await.unwrap();
}

/// The counters between two times.
pub async fn counters(
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
