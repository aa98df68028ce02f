//! What the page of usage shows: by what, of which period, and by which interval.

use std::time::SystemTime;

use polynym_presentation::time::INTERVALS;
use polynym_proto::v1::UsageResolution;
use prost_types::Timestamp;
use serde::Deserialize;

/// The maximum number of intervals: a plot and a table show all of them.
pub const MAX_INTERVALS: i64 = 400;

/// The query of the page.
#[derive(Default, Deserialize)]
#[serde(default)]
pub struct Parameters {
    by: String,
    period: String,
    interval: String,
}

/// What counters are summed by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    /// The method of a call.
    Method,
    /// The kind of an identifier, and whether it was found.
    Kind,
    /// The caller.
    Caller,
}

impl By {
    /// All, with their names in addresses and on the page.
    pub const ALL: [(Self, &'static str, &'static str); 3] = [
        (Self::Method, "method", "Calls by method"),
        (Self::Kind, "kind", "Look-ups by kind of identifier"),
        (Self::Caller, "caller", "Calls by caller"),
    ];

    /// The metrics to read.
    pub const fn metrics(self) -> &'static str {
        match self {
            Self::Method | Self::Caller => "calls.*",
            Self::Kind => "resolves.*",
        }
    }

    /// The name on the page.
    pub fn title(self) -> &'static str {
        Self::ALL.iter().find(|(by, ..)| *by == self).map_or("", |(_, _, title)| title)
    }
}

/// A period until now.
#[derive(Debug)]
pub struct Period {
    pub name: &'static str,
    pub text: &'static str,
    pub seconds: i64,
}

const fn period(name: &'static str, text: &'static str, seconds: i64) -> Period {
    Period { name, text, seconds }
}

pub static PERIODS: [Period; 6] = [
    period("1h", "Last hour", 3_600),
    period("6h", "Last 6 hours", 6 * 3_600),
    period("1d", "Last 24 hours", 86_400),
    period("7d", "Last 7 days", 7 * 86_400),
    period("30d", "Last 30 days", 30 * 86_400),
    period("1y", "Last year", 365 * 86_400),
];

/// The query of the page.
pub struct Choice {
    pub by: By,
    pub period: &'static Period,
    /// The name of the interval; empty for the one that suits the period.
    pub interval: &'static str,
    /// Whether the interval that was asked for is too short for the period.
    pub is_too_fine: bool,
}

impl Choice {
    /// What the query asks for: calls by method of the last 24 hours unless it says otherwise.
    pub fn new(parameters: Parameters) -> Self {
        let by = By::ALL.iter().find(|(_, name, _)| *name == parameters.by);
        let period = PERIODS.iter().find(|period| period.name == parameters.period);
        let period = period.unwrap_or(&PERIODS[2]);
        let interval = INTERVALS.iter().find(|(name, ..)| *name == parameters.interval);
        let fits = interval.filter(|(_, seconds, _)| period.seconds / seconds <= MAX_INTERVALS);
        Self {
            by: by.map_or(By::Method, |(by, ..)| *by),
            period,
            interval: fits.map_or("", |(name, ..)| name),
            is_too_fine: interval.is_some() && fits.is_none(),
        }
    }

    /// The resolution of the call.
    pub fn resolution(&self) -> UsageResolution {
        let known = INTERVALS.iter().find(|(name, ..)| *name == self.interval);
        known.map_or(UsageResolution::Unspecified, |(_, _, resolution)| *resolution)
    }

    /// The beginning and the end of the period.
    pub fn bounds(&self) -> (Timestamp, Timestamp) {
        let now = Timestamp::from(SystemTime::now());
        (Timestamp { seconds: now.seconds - self.period.seconds, nanos: now.nanos }, now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_suits_its_period() {
        let choice = |period: &str, interval: &str| {
            let (period, interval) = (period.to_owned(), interval.to_owned());
            Choice::new(Parameters { by: "kind".to_owned(), period, interval })
        };
        assert_eq!(choice("6h", "minute").interval, "minute");
        let fine = choice("30d", "minute");
        assert_eq!((fine.interval, fine.is_too_fine, fine.by), ("", true, By::Kind));
        let wrong = choice("1000y", "second");
        assert_eq!((wrong.period.name, wrong.interval, wrong.is_too_fine), ("1d", "", false));
    }
}
