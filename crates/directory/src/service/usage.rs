//! The counters of a tenant's use, and their way into the store.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use super::Directory;
use super::context::RequestContext;
use crate::error::{Error, Invalid};
use crate::model::tenant::Tenant;
use crate::model::timestamp::Timestamp;
use crate::service::parse::check_range;
use crate::stores::{Resolution, UsageBatch, UsagePoint, UsageQuery};

/// The time that is read where a request says none.
const DEFAULT_TIME: Duration = Duration::from_secs(24 * 60 * 60);
/// The longest times of which minutes and hours are read where a request names no resolution.
const BY_MINUTE: Duration = Duration::from_secs(6 * 60 * 60);
const BY_HOUR: Duration = Duration::from_secs(14 * 24 * 60 * 60);
/// The most counters of an answer.
const POINTS: usize = 20_000;
/// The most callers, and the most metrics, that a request names.
const NAMES: usize = 100;

/// A request for counters.
#[derive(Clone, Debug)]
pub struct UsageRequest<'r> {
    /// The names of the metrics, or their beginnings and `*`; empty for all.
    pub metrics: &'r [String],
    /// The names of the callers; empty for all.
    pub callers: &'r [String],
    /// The beginning of the time; none for a day before its end.
    pub from: Option<Timestamp>,
    /// The end of the time, itself excluded; none for now.
    pub to: Option<Timestamp>,
    /// The width of the intervals; none for one that suits the time.
    pub resolution: Option<Resolution>,
}

/// The counters of a tenant.
#[derive(Clone, Debug, PartialEq)]
pub struct UsageReport {
    /// The counters, in the order of metrics, callers and times.
    pub points: Vec<UsagePoint>,
    /// The beginning of the first interval.
    pub from: Timestamp,
    /// The end of the time.
    pub to: Timestamp,
    /// The width of the intervals.
    pub resolution: Resolution,
}

impl Directory {
    /// The counters of the tenant of the request.
    ///
    /// # Errors
    /// [`Error::Invalid`], [`Error::UsageExpired`], [`Error::TenantNotFound`],
    /// [`Error::TooMany`] where they are more than an answer holds, [`Error::Unavailable`].
    pub async fn usage(
        &self,
        context: &RequestContext<'_>,
        request: UsageRequest<'_>,
    ) -> Result<UsageReport, Error> {
        self.tenant(&context.tenant).await?;
        let query = query(context, &request)?;
        let mut points = self.backend.usage.usage(query.clone(), POINTS + 1).await?;
        if points.len() > POINTS {
            let (what, count) = ("counters in an answer", points.len());
            return Err(Error::TooMany { what, limit: POINTS, count });
        }
        points.sort_unstable();
        let UsageQuery { from, to, resolution, .. } = query;
        Ok(UsageReport { points, from, to, resolution })
    }

    /// Adds the counts of a server to the counters, without those of tenants that do not exist.
    ///
    /// # Errors
    /// [`Error::Unavailable`] or [`Error::OutcomeUnknown`]: the same batch may be stored again.
    pub async fn add_usage(&self, batch: &UsageBatch) -> Result<(), Error> {
        let tenants: BTreeSet<_> = batch.counts.iter().map(|count| &count.tenant).collect();
        let mut existing = BTreeSet::from([&Tenant::DEFAULT]);
        for tenant in tenants {
            if self.tenants.get(&*self.backend.tenants, tenant).await?.is_some() {
                existing.insert(tenant);
            }
        }
        let counts = batch.counts.iter().filter(|count| existing.contains(&count.tenant));
        let counts = counts.cloned().collect();
        let UsageBatch { server, number, time, clock_uncertain, .. } = *batch;
        self.backend
            .usage
            .add_usage(Arc::new(UsageBatch { server, number, time, clock_uncertain, counts }))
            .await
    }
}

/// The counters that a request asks for, once it is checked.
fn query(context: &RequestContext<'_>, request: &UsageRequest<'_>) -> Result<UsageQuery, Error> {
    let now = context.now.time;
    let to = request.to.unwrap_or_else(|| now.plus(Duration::from_millis(1)));
    let from = request.from.unwrap_or_else(|| to.minus(DEFAULT_TIME));
    check_range(Some(from), Some(to))?;
    for (field, names) in [("metrics", request.metrics), ("callers", request.callers)] {
        if names.len() > NAMES {
            let message = format!("at most {NAMES}; empty means all");
            return Err(Error::invalid(Invalid::Field, field, message));
        }
    }
    if let Some(n) = request.metrics.iter().position(|name| !is_metric(name)) {
        let message = "is no metric: `calls.METHOD.CODE`, `resolves.KIND.found` or \
            `resolves.KIND.not_found`, or the beginning of one and `*`";
        return Err(Error::invalid(Invalid::Field, format!("metrics[{n}]"), message));
    }

    let resolution = request.resolution.unwrap_or_else(|| suitable(from, to, now));
    let from = resolution.floor(from);
    if let Some(earliest) = earliest(resolution, now).filter(|earliest| from < *earliest) {
        return Err(Error::UsageExpired { earliest });
    }
    Ok(UsageQuery {
        tenant: context.tenant.clone(),
        from,
        to,
        resolution,
        callers: request.callers.to_vec(),
        metrics: request.metrics.to_vec(),
    })
}

/// The finest resolution that suits a time, and is kept for so long. A caller reckons "the last six
/// hours" by its own clock, a little before.
fn suitable(from: Timestamp, to: Timestamp, now: Timestamp) -> Resolution {
    let length = Duration::from_millis(to.millis_after(from).unsigned_abs());
    let suits = |(resolution, longest): &(Resolution, Duration)| {
        let is_kept = earliest(*resolution, now).is_none_or(|earliest| earliest <= from);
        is_kept && length <= *longest + Resolution::Minute.length()
    };
    let finer = [(Resolution::Minute, BY_MINUTE), (Resolution::Hour, BY_HOUR)];
    finer.into_iter().find(suits).map_or(Resolution::Day, |(resolution, _)| resolution)
}

/// The earliest interval that can be asked for. The caller's clock may be a little behind.
fn earliest(resolution: Resolution, now: Timestamp) -> Option<Timestamp> {
    let oldest = now.minus(resolution.retention()?);
    Some(resolution.floor(oldest).minus(resolution.length()))
}

fn is_metric(name: &str) -> bool {
    let allowed = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '.';
    let start = name.strip_suffix('*').unwrap_or(name);
    let is_whole = name.split('.').count() == 3;
    let is_known = ["calls.", "resolves."].iter().any(|kind| start.starts_with(kind));
    start.chars().all(allowed) && name.len() <= 100 && is_known && (is_whole || name.ends_with('*'))
}
