//! Counters of calls.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use locality_uuid::LocalityId;
use polynym_directory::{Resolution, Tenant, Timestamp, Usage, UsageBatch, UsageCount, UsageQuery};

use super::fixture::assertions::{ensure, equal};
use super::fixture::factory::Failure;
use super::fixture::{Fixture, tenant};

const METRIC: &str = "calls.GetUser.OK";
/// 2026-11-24T22:30:00Z: the batches cross midnight and the end of a month.
const START: Timestamp = Timestamp::from_millis(1_795_559_400_000);

fn batch(server: LocalityId, number: u64, time: Timestamp, count: u64) -> UsageBatch {
    let (caller, metric) = ("web".to_owned(), METRIC.to_owned());
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
    let (callers, metrics) = (Vec::new(), Vec::new());
    let from = resolution.floor(from);
    UsageQuery { tenant: Tenant::DEFAULT, from, to, resolution, callers, metrics }
}

/// The counters between two times.
async fn counters(
    usage: &dyn Usage,
    resolution: Resolution,
    (from, to): (Timestamp, Timestamp),
) -> Result<BTreeMap<Timestamp, u64>, Failure> {
    let points = usage.usage(query(resolution, from, to), usize::MAX).await?;
    let count = points.len();
    let mut counters = BTreeMap::new();
    for point in points {
        equal(&(&*point.metric, &*point.caller), &(METRIC, "web"), "a counter")?;
        counters.insert(point.time, point.count);
    }
    equal(&counters.len(), &count, "the counters of different intervals")?;
    Ok(counters)
}

/// Adds batches of two servers in turn over some days and repeats some.
pub async fn each_batch_is_added_once(f: Fixture) -> Result<(), Failure> {
    let usage = &*f.store.usage;
    let servers = [f.ids.next_id(), f.ids.next_id()];
    let mut expected: [BTreeMap<Timestamp, u64>; 3] = Default::default();
    let mut end = START;
    for n in 0..60_u64 {
        // Steps of 7 minutes, and later of 5 hours.
        let step = if n < 40 { n * 7 * 60 } else { 40 * 7 * 60 + (n - 40) * 5 * 3_600 };
        let time = START.plus(Duration::from_secs(step));
        let batch = Arc::new(batch(servers[n as usize % 2], n / 2 + 1, time, n + 1));
        for resolution in Resolution::ALL {
            *expected[resolution as usize].entry(resolution.floor(time)).or_default() += n + 1;
        }
        usage.add_usage(batch.clone()).await?;
        if n % 2 == 1 {
            usage.add_usage(batch).await?;
        }
        end = time.plus(Duration::from_secs(60));
    }
    for resolution in Resolution::ALL {
        let all = counters(usage, resolution, (START, end)).await?;
        equal(&all, &expected[resolution as usize], "all counters")?;
        // A part: the beginning is included, the end is not.
        let times: Vec<_> = all.keys().copied().collect();
        let (from, to) = (times[1], times[times.len() - 1]);
        let part = all.range(from..to).map(|(time, n)| (*time, *n)).collect();
        equal(&counters(usage, resolution, (from, to)).await?, &part, "some counters")?;
    }

    // Other tenants, callers and metrics.
    let wanted = query(Resolution::Day, START, end);
    let others = [
        UsageQuery { tenant: tenant("acme")?, ..wanted.clone() },
        UsageQuery { callers: vec!["job".to_owned()], ..wanted.clone() },
    ];
    for other in others {
        ensure(usage.usage(other, 10).await?.is_empty(), "counters of others")?;
    }
    let some = UsageQuery { metrics: vec!["calls.GetUser.*".to_owned()], ..wanted.clone() };
    equal(&usage.usage(some, usize::MAX).await?.len(), &expected[2].len(), "days")?;
    equal(&usage.usage(wanted, 2).await?.len(), &2, "at most two counters")
}

pub async fn a_removed_tenant_has_no_counters(f: Fixture) -> Result<(), Failure> {
    let (usage, server, acme) = (&*f.store.usage, f.ids.next_id(), tenant("acme")?);
    let all = (START, START.plus(Duration::from_secs(60)));
    let of = |tenant: &Tenant, number, callers: std::ops::Range<usize>| {
        let counts = callers.map(|n| UsageCount {
            tenant: tenant.clone(),
            caller: format!("web{n}"),
            metric: METRIC.to_owned(),
            count: 1,
        });
        UsageBatch { counts: counts.collect(), ..batch(server, number, START, 1) }
    };
    let sum = async |tenant: &Tenant| {
        let wanted = query(Resolution::Hour, all.0, all.1);
        let points = usage.usage(UsageQuery { tenant: tenant.clone(), ..wanted }, usize::MAX);
        Ok::<u64, Failure>(points.await?.iter().map(|point| point.count).sum())
    };
    usage.add_usage(Arc::new(of(&acme, 1, 0..300))).await?;
    usage.add_usage(Arc::new(of(&Tenant::DEFAULT, 2, 0..3))).await?;
    equal(&sum(&acme).await?, &300, "counters of the tenant")?;
    while usage.remove_usage(&acme).await? {}
    equal(&sum(&acme).await?, &0, "counters of the removed tenant")?;
    equal(&sum(&Tenant::DEFAULT).await?, &3, "counters of another tenant")?;

    usage.add_usage(Arc::new(of(&acme, 3, 2..4))).await?;
    equal(&sum(&acme).await?, &2, "counters of the next tenant with the name")
}
