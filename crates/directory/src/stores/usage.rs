//! Counters of calls and look-ups by time, and the interface of a store that keeps them.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use locality_uuid::LocalityId;

use crate::error::Error;
use crate::model::tenant::Tenant;
use crate::model::timestamp::Timestamp;

const MINUTE: Duration = Duration::from_secs(60);
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// The width of the intervals in which things are counted. They begin by UTC.
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
    /// All of them, the finest first.
    pub const ALL: [Self; 3] = [Self::Minute, Self::Hour, Self::Day];

    /// The length of an interval.
    pub const fn length(self) -> Duration {
        match self {
            Self::Minute => MINUTE,
            Self::Hour => Duration::from_secs(60 * 60),
            Self::Day => DAY,
        }
    }

    /// The beginning of the interval of a time.
    pub fn floor(self, time: Timestamp) -> Timestamp {
        let length = self.length().as_millis() as i64;
        Timestamp::from_millis(time.as_millis().div_euclid(length) * length)
    }

    /// How long counters are kept; none where they are kept for good.
    pub const fn retention(self) -> Option<Duration> {
        match self {
            Self::Minute => Some(DAY.saturating_mul(14)),
            Self::Hour => Some(DAY.saturating_mul(396)),
            Self::Day => None,
        }
    }
}

/// The counts of a server in one minute, since it last stored its counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UsageBatch {
    /// The server: a random id of its run.
    pub server: LocalityId,
    /// A number that rises with each batch of the server.
    pub number: u64,
    /// The minute.
    pub time: Timestamp,
    /// Whether that is in doubt, so that nothing counts as over.
    pub clock_uncertain: bool,
    /// The counts, at most one of each tenant, caller and metric.
    pub counts: Vec<UsageCount>,
}

/// A number of things that one caller did in one tenant.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct UsageCount {
    /// The tenant.
    pub tenant: Tenant,
    /// The name of the caller.
    pub caller: String,
    /// The name of the metric, such as `calls.GetUser.OK`.
    pub metric: String,
    /// The number.
    pub count: u64,
}

/// The counters to read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UsageQuery {
    /// The tenant.
    pub tenant: Tenant,
    /// The beginning of the first interval.
    pub from: Timestamp,
    /// The end of the time, itself excluded.
    pub to: Timestamp,
    /// The width of the intervals.
    pub resolution: Resolution,
    /// The names of the callers; empty for all.
    pub callers: Vec<String>,
    /// The names of the metrics, or their beginnings and `*`; empty for all.
    pub metrics: Vec<String>,
}

impl UsageQuery {
    /// Whether the counters of this caller and metric are to be read.
    pub fn wants(&self, caller: &str, metric: &str) -> bool {
        let is_metric = |wanted: &String| match wanted.strip_suffix('*') {
            Some(start) => metric.starts_with(start),
            None => metric == wanted,
        };
        (self.callers.is_empty() || self.callers.iter().any(|wanted| caller == wanted))
            && (self.metrics.is_empty() || self.metrics.iter().any(is_metric))
    }

    /// Whether an interval that begins then is to be read.
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
    /// The number of things in it; never 0.
    pub count: u64,
}

/// A store that keeps counters.
#[async_trait]
pub trait Usage: Send + Sync + 'static {
    /// Adds a batch to the counters of its minute, hour and day, unless it was added before: of the
    /// batches of one server, the last one may be added again, until its outcome is known. Removes
    /// some of the counters whose time is over.
    ///
    /// # Errors
    /// [`Error::Unavailable`]; [`Error::OutcomeUnknown`].
    async fn add_usage(&self, batch: Arc<UsageBatch>) -> Result<(), Error>;

    /// The counters of a tenant, in any order, at most `limit`.
    ///
    /// # Errors
    /// [`Error::Unavailable`] where the store does not answer.
    async fn usage(&self, query: UsageQuery, limit: usize) -> Result<Vec<UsagePoint>, Error>;
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: i64) -> Timestamp {
        Timestamp::from_millis(millis)
    }

    #[test]
    fn intervals_begin_by_utc() {
        // 1969-12-31T23:59:30Z.
        let time = at(-30_000);
        assert_eq!(Resolution::Minute.floor(time), at(-60_000));
        assert_eq!(Resolution::Hour.floor(time), at(-3_600_000));
        assert_eq!(Resolution::Day.floor(at(86_399_999)), at(0));
        assert_eq!(Resolution::Day.floor(at(86_400_000)), at(86_400_000));
    }

    #[test]
    fn a_star_stands_for_any_end() {
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
