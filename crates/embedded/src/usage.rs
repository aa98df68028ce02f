//! Counters of calls. A tenant, a caller and a metric form a series, which has a number, so that a
//! counter takes 21 bytes.

use std::sync::Arc;

use async_trait::async_trait;
use redb::{ReadableTable, ReadableTableMetadata, WriteTransaction};

use crate::error::Fault;
use crate::lookup::snapshot::{Snapshot, optional};
use crate::schema::tables::{USAGE, USAGE_BATCH, USAGE_SERIES};
use crate::store::Embedded;
use polynym_directory::{
    Error, Resolution, Tenant, Timestamp, Usage, UsageBatch, UsageCount, UsagePoint, UsageQuery,
};
use polynym_store_common::operations::Operation;

/// The series whose expired counters are removed with each batch.
const SWEPT_SERIES: u64 = 100;
/// The most counters of a tenant that are removed at once: mutations wait for it.
const REMOVED_COUNTERS: usize = 5_000;

#[async_trait]
impl Usage for Embedded {
    async fn add_usage(&self, batch: Arc<UsageBatch>) -> Result<(), Error> {
        self.write_aside(Operation::Usage, move |transaction| add(transaction, &batch)).await
    }

    async fn usage(&self, query: UsageQuery, limit: usize) -> Result<Vec<UsagePoint>, Error> {
        self.on_snapshot(Operation::Usage, |snapshot| snapshot.usage(&query, limit))
    }

    async fn remove_usage(&self, tenant: &Tenant) -> Result<bool, Error> {
        let tenant = tenant.clone();
        self.write_aside(Operation::Usage, move |transaction| remove(transaction, &tenant)).await
    }
}

/// Adds a batch, unless it was added before.
pub fn add(transaction: &WriteTransaction, batch: &UsageBatch) -> Result<(), Fault> {
    let mut last = transaction.open_table(USAGE_BATCH)?;
    let this = (batch.server.as_bytes(), batch.number);
    if last.get(())?.is_some_and(|last| last.value() == this) {
        return Ok(());
    }
    last.insert((), this)?;

    let mut series = transaction.open_table(USAGE_SERIES)?;
    let mut counters = transaction.open_table(USAGE)?;
    for UsageCount { tenant, caller, metric, count } in &batch.counts {
        let name = (tenant.as_str(), caller.as_str(), metric.as_str());
        let known = series.get(name)?.map(|number| number.value());
        let number = known.unwrap_or(series.len()? as u32);
        if known.is_none() {
            series.insert(name, number)?;
        }
        for resolution in Resolution::ALL {
            let key = (number, resolution as u8, interval(resolution, batch.time));
            let before = counters.get(key)?.map_or(0, |count| count.value());
            counters.insert(key, before + count)?;
        }
    }

    if batch.clock_uncertain {
        return Ok(());
    }
    let all = series.len()?;
    for step in 0..SWEPT_SERIES.min(all) {
        let number = ((batch.number * SWEPT_SERIES + step) % all) as u32;
        for resolution in Resolution::ALL {
            let Some(retention) = resolution.retention() else { continue };
            let oldest = interval(resolution, batch.time.minus(retention));
            let expired = (number, resolution as u8, 0)..(number, resolution as u8, oldest);
            counters.retain_in(expired, |_, _| false)?;
        }
    }
    Ok(())
}

/// Removes some counters of a tenant. Returns whether there may be more. The series stay, since
/// their count numbers new ones.
fn remove(transaction: &WriteTransaction, tenant: &Tenant) -> Result<bool, Fault> {
    let series = transaction.open_table(USAGE_SERIES)?;
    let mut counters = transaction.open_table(USAGE)?;
    let (name, mut removed) = (tenant.as_str(), 0);
    for row in series.range((name, "", "")..)? {
        let (key, number) = row?;
        if key.value().0 != name {
            return Ok(false);
        }
        let own = (number.value(), 0, 0)..=(number.value(), u8::MAX, u32::MAX);
        for counter in counters.extract_from_if(own, |_, _| true)?.take(REMOVED_COUNTERS - removed)
        {
            counter?;
            removed += 1;
        }
        if removed == REMOVED_COUNTERS {
            return Ok(true);
        }
    }
    Ok(false)
}

impl Snapshot {
    /// See [`Usage::usage`].
    pub fn usage(&self, query: &UsageQuery, limit: usize) -> Result<Vec<UsagePoint>, Fault> {
        let series = optional(self.transaction.open_table(USAGE_SERIES))?;
        let counters = optional(self.transaction.open_table(USAGE))?;
        let Some((series, counters)) = series.zip(counters) else { return Ok(Vec::new()) };
        let (name, resolution) = (query.tenant.as_str(), query.resolution);
        let [from, to] = [query.from, query.to].map(|time| interval(resolution, time));

        let mut points = Vec::new();
        for row in series.range((name, "", "")..)? {
            let (key, number) = row?;
            let (tenant, caller, metric) = key.value();
            if tenant != name || points.len() >= limit {
                break;
            }
            if !query.wants(caller, metric) {
                continue;
            }
            let number = number.value();
            let wanted = (number, resolution as u8, from)..=(number, resolution as u8, to);
            for row in counters.range(wanted)? {
                let (key, count) = row?;
                let time = interval_start(resolution, key.value().2);
                if query.covers(time) {
                    let (metric, caller) = (metric.to_owned(), caller.to_owned());
                    points.push(UsagePoint { metric, caller, time, count: count.value() });
                }
            }
        }
        points.truncate(limit);
        Ok(points)
    }
}

/// The number of the interval of a time since the Unix epoch.
fn interval(resolution: Resolution, time: Timestamp) -> u32 {
    let length = resolution.length().as_millis() as i64;
    let number = time.as_millis().div_euclid(length);
    number.clamp(0, u32::MAX.into()) as u32
}

/// The start of an interval.
fn interval_start(resolution: Resolution, number: u32) -> Timestamp {
    Timestamp::from_millis(i64::from(number) * resolution.length().as_millis() as i64)
}
