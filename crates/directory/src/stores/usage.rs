//! Counters of calls and look-ups by time, and the interface of a store that has them.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use locality_uuid::LocalityId;

use crate::error::Error;
use crate::model::tenant::Tenant;
use crate::timestamp::Timestamp;

const MINUTE: Duration = Duration::from_secs(60);
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// The width of the counting intervals, which are aligned to UTC.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Resolution {
    /// A minute.
    Minute = 0,
    /// An hour.
    Hour = 1,
    /// A day.
    Day = 2,
}

impl Resolution {
    /// All resolutions, the finest first.
    pub const ALL: [Self; 3] = [Self::Minute, Self::Hour, Self::Day];

    /// The length of an interval.
    pub const fn length(self) -> Duration {
        match self {
            Self::Minute => MINUTE,
            Self::Hour => Duration::from_secs(60 * 60),
            Self::Day => DAY,
        }
    }

    /// The beginning of the interval that contains a time.
    pub fn floor(self, time: Timestamp) -> Timestamp {
        let length = self.length().as_millis() as i64;
        Timestamp::from_millis(time.as_millis().div_euclid(length) * length)
    }

    /// The retention of counters; none if they are kept forever.
    pub const fn retention(self) -> Option<Duration> {
        match self {
            Self::Minute => Some(DAY.saturating_mul(14)),
            Self::Hour => Some(DAY.saturating_mul(396)),
            Self::Day => None,
        }
    }
}

/// The counts of a server in one minute, since its last batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UsageBatch {
    /// A random id of the server's process.
    pub server: LocalityId,
    /// A number that increases with each batch of the server.
    pub number: u64,
    /// The minute.
    pub time: Timestamp,
    /// Whether the clock is uncertain, so that nothing expires.
    pub clock_uncertain: bool,
    /// The counts, at most one for each tenant, caller and metric.
    pub counts: Vec<UsageCount>,
}

/// A count for one tenant, caller and metric.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct UsageCount {
    /// The tenant.
    pub tenant: Tenant,
    /// The name of the caller.
    pub caller: String,
    /// The name of the metric, such as `calls.GetUser.OK`.
    pub metric: String,
    /// The count.
    pub count: u64,
}

/// The counters to read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UsageQuery {
    /// The tenant.
    pub tenant: Tenant,
    /// The beginning of the first interval.
    pub from: Timestamp,
    /// The end of the time span, exclusive.
    pub to: Timestamp,
    /// The width of the intervals.
    pub resolution: Resolution,
    /// The names of the callers; empty for all.
    pub callers: Vec<String>,
    /// The names of the metrics, or prefixes followed by `*`; empty for all.
    pub metrics: Vec<String>,
}

impl UsageQuery {
    /// Whether the query includes this caller and metric.
    pub fn wants(&self, caller: &str, metric: &str) -> bool {
        let is_metric = |wanted: &String| match wanted.strip_suffix('*') {
            Some(prefix) => metric.starts_with(prefix),
            None => metric == wanted,
        };
        (self.callers.is_empty() || self.callers.iter().any(|wanted| caller == wanted))
            && (self.metrics.is_empty() || self.metrics.iter().any(is_metric))
    }

    /// Whether the query includes an interval that begins at `time`.
    pub fn covers(&self, time: Timestamp) -> bool {
        (self.from..self.to).contains(&time)
    }
}

/// One counter.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct UsagePoint {
    /// The name of the metric.
    pub metric: String,
    /// The name of the caller.
    pub caller: String,
    /// The beginning of the interval.
    pub time: Timestamp,
    /// The count in the interval; never 0.
    pub count: u64,
}

/// A store with usage counters.
#[async_trait]
pub trait Usage: Send + Sync + 'static {
    /// Adds a batch to the counters of its minute, hour and day, unless it was added before: a
    /// server may repeat its last batch until the outcome is known. Removes some of the expired
    /// counters.
    ///
    /// # Errors
    /// [`Error::Unavailable`]; [`Error::OutcomeUnknown`].
    async fn add_usage(&self, batch: Arc<UsageBatch>) -> Result<(), Error>;

    /// Up to `limit` counters of a tenant, in any order.
    ///
    /// # Errors
    /// [`Error::Unavailable`] if the store does not answer.
    async fn usage(&self, query: UsageQuery, limit: usize) -> Result<Vec<UsagePoint>, Error>;

    /// Removes a part of the counters of a tenant. Returns whether there may be more.
    ///
    /// # Errors
    /// [`Error::Unavailable`]; [`Error::OutcomeUnknown`].
    async fn remove_usage(&self, tenant: &Tenant) -> Result<bool, Error>;
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: i64) -> Timestamp {
        Timestamp::from_millis(millis)
    }

    #[test]
    fn intervals_are_aligned_to_utc() {
        // 1969-12-31T23:59:30Z.
        let time = at(-30_000);
        assert_eq!(Resolution::Minute.floor(time), at(-60_000));
        assert_eq!(Resolution::Hour.floor(time), at(-3_600_000));
        assert_eq!(Resolution::Day.floor(at(86_399_999)), at(0));
        assert_eq!(Resolution::Day.floor(at(86_400_000)), at(86_400_000));
    }

    #[test]
    fn a_star_matches_any_suffix() {
        let query = UsageQuery {
            tenant: Tenant::DEFAULT,
            from: at(0),
            to: at(60_000),
            resolution: Resolution::Minute,
            callers: vec!["web".to_owned()],
            metrics: vec!["calls.GetUser.*".to_owned(), "resolves.email.found".to_owned()],
        };
        assert!(query.wants("web", "calls.GetUser.NOT_FOUND"));
        assert!(query.wants("web", "resolves.email.found"));
        assert!(!query.wants("web", "resolves.email.found.more"));
        assert!(!query.wants("job", "resolves.email.found"));
        assert!(query.covers(at(0)) && !query.covers(at(60_000)));
        let all = UsageQuery { callers: Vec::new(), metrics: Vec::new(), ..query };
        assert!(all.wants("job", "calls.PurgeUser.OK"));
    }
}
