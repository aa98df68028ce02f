//! Instants, to the millisecond, and their text in RFC 3339.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use prost_types::Timestamp as ProtoTimestamp;

/// An instant: milliseconds since the Unix epoch, UTC. Every store keeps times to the millisecond.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(i64);

impl Timestamp {
    /// The earliest instant that the API can carry: 0001-01-01T00:00:00Z (RFC 3339 has no earlier
    /// year).
    pub const MIN: Timestamp = Timestamp(-62_135_596_800_000);
    /// The latest instant that the API can carry: 9999-12-31T23:59:59.999Z.
    pub const MAX: Timestamp = Timestamp(253_402_300_799_999);

    /// Now, by the machine's clock.
    pub fn now() -> Self {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Self(since.as_millis() as i64)
    }

    /// The instant `millis` milliseconds after the Unix epoch.
    pub const fn from_millis(millis: i64) -> Self {
        Self(millis)
    }

    /// The sum, at most [`Timestamp::MAX`].
    pub fn plus(self, time: Duration) -> Self {
        let millis = i64::try_from(time.as_millis()).unwrap_or(i64::MAX);
        Self(self.0.saturating_add(millis)).min(Self::MAX)
    }

    /// The difference, at least [`Timestamp::MIN`].
    pub fn minus(self, time: Duration) -> Self {
        let millis = i64::try_from(time.as_millis()).unwrap_or(i64::MAX);
        Self(self.0.saturating_sub(millis)).max(Self::MIN)
    }

    /// The same instant, or the one just after `other` if that is later. So successive changes get
    /// ascending times, even in one millisecond or after the clock went back.
    #[must_use]
    pub fn after(self, other: Self) -> Self {
        self.max(other.plus(Duration::from_millis(1)))
    }

    /// Milliseconds from `other` to this instant; negative if this one is earlier.
    pub const fn millis_after(self, other: Self) -> i64 {
        self.0.saturating_sub(other.0)
    }

    /// Milliseconds since the Unix epoch.
    pub const fn as_millis(self) -> i64 {
        self.0
    }
}

impl From<Timestamp> for ProtoTimestamp {
    fn from(time: Timestamp) -> Self {
        let millis = time.as_millis();
        Self {
            seconds: millis.div_euclid(1_000),
            nanos: millis.rem_euclid(1_000) as i32 * 1_000_000,
        }
    }
}

/// The text of an instant: RFC 3339, or milliseconds outside of its range.
pub fn time_text(time: Timestamp) -> String {
    let in_range = (Timestamp::MIN..=Timestamp::MAX).contains(&time);
    if in_range { ProtoTimestamp::from(time).to_string() } else { time.as_millis().to_string() }
}

/// Parses a time of RFC 3339, to the millisecond. Returns `None` for other forms and for years
/// outside 1 to 9999.
pub fn parse_time(text: &str) -> Option<Timestamp> {
    let ProtoTimestamp { seconds, nanos } = polynym_proto::time::parse(text)?;
    Some(Timestamp::from_millis(seconds * 1_000 + i64::from(nanos) / 1_000_000))
}
