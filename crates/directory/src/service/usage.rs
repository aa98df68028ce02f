//! Reads the usage counters of a tenant, and adds counts to them.

pub mod flush;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use super::Directory;
use super::context::RequestContext;
use crate::error::{Error, Invalid};
use crate::model::tenant::Tenant;
use crate::service::parse::check_range;
use crate::stores::{ANSWER_BYTES, Resolution, UsageBatch, UsagePoint, UsageQuery};
use crate::timestamp::Timestamp;

/// The time span of a request without a beginning.
const DEFAULT_SPAN: Duration = Duration::from_secs(24 * 60 * 60);
/// The longest time spans that are read by minute and by hour if a request names no resolution.
const MAX_BY_MINUTE: Duration = Duration::from_secs(6 * 60 * 60);
const MAX_BY_HOUR: Duration = Duration::from_secs(14 * 24 * 60 * 60);
/// The counters in an answer.
const MAX_POINTS: usize = 20_000;
/// The bytes of a counter in an answer, besides its names.
const POINT_BYTES: usize = 48;
/// The callers, and the metrics, in a request.
const MAX_NAMES: usize = 100;

/// A request for counters.
#[derive(Clone, Debug)]
pub struct UsageRequest<'r> {
    /// The names of the metrics, or prefixes followed by `*`; empty for all.
    pub metrics: &'r [String],
    /// The names of the callers; empty for all.
    pub callers: &'r [String],
    /// The beginning of the time span; none for a day before its end.
    pub from: Option<Timestamp>,
    /// The end of the time span, exclusive; none for now.
    pub to: Option<Timestamp>,
    /// The width of the intervals; none for one that suits the time span.
    pub resolution: Option<Resolution>,
}

/// The counters of a tenant.
#[derive(Clone, Debug, PartialEq)]
pub struct UsageReport {
    /// The counters, by metric, caller and time.
    pub points: Vec<UsagePoint>,
    /// The beginning of the first interval.
    pub from: Timestamp,
    /// The end of the time span.
    pub to: Timestamp,
    /// The width of the intervals.
    pub resolution: Resolution,
}

impl Directory {
    /// The counters of the tenant of the request.
    ///
    /// # Errors
    /// [`Error::Invalid`], [`Error::UsageExpired`], [`Error::TenantNotFound`],
    /// [`Error::TooMany`] if an answer cannot hold them, [`Error::Unavailable`].
    pub async fn usage(
        &self,
        context: &RequestContext<'_>,
        request: UsageRequest<'_>,
    ) -> Result<UsageReport, Error> {
        let query = query(context, &request)?;
        let UsageQuery { from, to, resolution, .. } = query;
        let query =
            UsageQuery { from: from.max(self.usage_begin(context, resolution).await?), ..query };
        let mut points = self.backend.usage.usage(query, MAX_POINTS + 1).await?;
        if points.len() > MAX_POINTS {
            let (what, count) = ("counters in an answer", points.len());
            return Err(Error::TooMany { what, limit: MAX_POINTS, count });
        }
        let bytes =
            points.iter().map(|point| point.metric.len() + point.caller.len() + POINT_BYTES);
        let bytes: usize = bytes.sum();
        if bytes > ANSWER_BYTES {
            let what = "bytes of counters in an answer";
            return Err(Error::TooMany { what, limit: ANSWER_BYTES, count: bytes });
        }
        points.sort_unstable();
        Ok(UsageReport { points, from, to, resolution })
    }

    /// The first interval of the tenant. Counters before it are those of a former one with its
    /// name. The default tenant exists from the beginning.
    async fn usage_begin(
        &self,
        context: &RequestContext<'_>,
        resolution: Resolution,
    ) -> Result<Timestamp, Error> {
        if context.tenant == Tenant::DEFAULT {
            return Ok(Timestamp::MIN);
        }
        Ok(resolution.floor(self.tenant(&context.tenant).await?.since))
    }

    /// Adds the counts of a server to the counters. Drops counts of tenants that do not exist.
    ///
    /// # Errors
    /// [`Error::Unavailable`] or [`Error::OutcomeUnknown`]: the same batch may be stored again.
    pub async fn add_usage(&self, batch: &UsageBatch) -> Result<(), Error> {
        let tenants: BTreeSet<_> = batch.counts.iter().map(|count| &count.tenant).collect();
        let mut existing = BTreeSet::from([&Tenant::DEFAULT]);
        for tenant in tenants {
            if self.tenants.get(&self.backend.tenants, tenant).await?.is_some() {
                existing.insert(tenant);
            }
        }
        let counted = batch.counts.iter().filter(|count| existing.contains(&count.tenant));
        let counts = counted.cloned().collect();
        let UsageBatch { server, number, time, clock_uncertain, .. } = *batch;
        let checked = UsageBatch { server, number, time, clock_uncertain, counts };
        self.backend.usage.add_usage(Arc::new(checked)).await
    }
}

/// Checks a request and converts it to a query.
fn query(context: &RequestContext<'_>, request: &UsageRequest<'_>) -> Result<UsageQuery, Error> {
    let now = context.now.time;
    let to = request.to.unwrap_or_else(|| now.plus(Duration::from_millis(1)));
    let from = request.from.unwrap_or_else(|| to.minus(DEFAULT_SPAN));
    check_range(Some(from), Some(to))?;
    for (field, names) in [("metrics", request.metrics), ("callers", request.callers)] {
        if names.len() > MAX_NAMES {
            let message = format!("at most {MAX_NAMES}; empty means all");
            return Err(Error::invalid(Invalid::Field, field, message));
        }
    }
    if let Some(n) = request.metrics.iter().position(|name| !is_metric(name)) {
        let message = "is not a metric: use `calls.METHOD.CODE`, `resolves.KIND.found` or \
            `resolves.KIND.not_found`, or a prefix of one followed by `*`";
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

/// The finest resolution that suits a time span and still has counters for it. Allows for the time
/// between a caller's clock reading and the call.
fn suitable(from: Timestamp, to: Timestamp, now: Timestamp) -> Resolution {
    let length = Duration::from_millis(to.millis_after(from).unsigned_abs());
    let suits = |(resolution, longest): &(Resolution, Duration)| {
        earliest(*resolution, now).is_none_or(|earliest| earliest <= from)
            && length <= *longest + Resolution::Minute.length()
    };
    let finer = [(Resolution::Minute, MAX_BY_MINUTE), (Resolution::Hour, MAX_BY_HOUR)];
    finer.into_iter().find(suits).map_or(Resolution::Day, |(resolution, _)| resolution)
}

/// The earliest interval that a request may read. The caller's clock may be a little behind.
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
