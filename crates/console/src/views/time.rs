//! Times.

use std::time::{Duration, SystemTime};

use prost_types::Timestamp;

use crate::failure::Failure;

/// A time as text.
#[derive(Clone, Debug)]
pub struct Time {
    /// RFC 3339, for machines.
    pub iso: String,
    /// Such as `2026-11-27 14:20 UTC`.
    pub text: String,
    /// Such as `3 days ago`, or `in 3 days`.
    pub relative: String,
}

impl Time {
    /// The time of a message; none if it is absent or out of range.
    pub fn of(timestamp: Option<&Timestamp>) -> Option<Self> {
        let time = SystemTime::try_from(*timestamp?).ok()?;
        let iso = humantime::format_rfc3339_seconds(time).to_string();
        let text = format!("{} {} UTC", iso.get(..10)?, iso.get(11..16)?);
        Some(Self { text, relative: relative(time, SystemTime::now()), iso })
    }
}

/// The time of an input, such as `2026-11-27`, `2026-11-27T14:20` or `2026-11-27T14:20:05.123Z`, in
/// UTC; `None` if it is not one.
pub fn parse(text: &str) -> Option<Timestamp> {
    let text = text.trim().trim_end_matches(['Z', 'z']);
    let whole = match text.len() {
        10 => format!("{text}T00:00:00"),
        16 => format!("{text}:00"),
        _ => text.to_owned(),
    };
    let time = humantime::parse_rfc3339_weak(&whole).ok()?;
    Some(Timestamp::from(time))
}

/// Parses a field of a form; `None` if it is empty.
///
/// # Errors
/// It is not a time.
pub fn field(label: &str, text: &str) -> Result<Option<Timestamp>, Failure> {
    match (text.is_empty(), parse(text)) {
        (true, _) => Ok(None),
        (false, Some(time)) => Ok(Some(time)),
        (false, None) => {
            let example = "Write 2026-01-31 or 2026-01-31T12:00.";
            Err(Failure::Form(format!("{label}: not a time. {example}")))
        }
    }
}

/// The period of this length, in milliseconds, with a time in it, as inputs have it.
pub fn span(time: Option<&Timestamp>, millis: i64) -> (String, String) {
    let Some(time) = time else { return Default::default() };
    let at = time.seconds.saturating_mul(1_000).saturating_add(i64::from(time.nanos) / 1_000_000);
    let begin = at - at.rem_euclid(millis);
    (input(begin), input(begin.saturating_add(millis)))
}

/// A time in milliseconds as inputs have it, without a zone.
fn input(millis: i64) -> String {
    let duration = Duration::from_millis(millis.max(0).unsigned_abs());
    let time = SystemTime::UNIX_EPOCH.checked_add(duration).unwrap_or(SystemTime::UNIX_EPOCH);
    let text = match millis.rem_euclid(1_000) {
        0 => humantime::format_rfc3339_seconds(time).to_string(),
        _ => humantime::format_rfc3339_millis(time).to_string(),
    };
    text.trim_end_matches('Z').to_owned()
}

/// The distance of a time in its largest unit.
fn relative(time: SystemTime, now: SystemTime) -> String {
    match now.duration_since(time) {
        Ok(age) if age < Duration::from_secs(1) => "just now".to_owned(),
        Ok(age) => format!("{} ago", largest_unit(age)),
        Err(ahead) => format!("in {}", largest_unit(ahead.duration())),
    }
}

/// A duration in its largest unit, such as `30 days`.
pub fn largest_unit(duration: Duration) -> String {
    const UNITS: [(u64, &str); 5] =
        [(365 * 86_400, "year"), (86_400, "day"), (3_600, "hour"), (60, "minute"), (1, "second")];
    let seconds = duration.as_secs().max(1);
    let (unit, name) = UNITS.into_iter().find(|(unit, _)| seconds >= *unit).unwrap_or(UNITS[4]);
    let count = seconds / unit;
    format!("{count} {name}{}", if count == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inputs_are_read_and_written() {
        let at = |seconds, nanos| Timestamp { seconds, nanos };
        assert_eq!(parse("2001-09-09"), Some(at(999_993_600, 0)));
        assert_eq!(parse("2001-09-09T01:46"), Some(at(999_999_960, 0)));
        assert_eq!(parse("2001-09-09T01:46:40.5Z"), Some(at(1_000_000_000, 500_000_000)));
        assert_eq!([parse(""), parse("soon")], [None, None]);
        let (from, to) = span(Some(&at(1_000_000_000, 7_000_000)), 3_600_000);
        assert_eq!((&*from, &*to), ("2001-09-09T01:00:00", "2001-09-09T02:00:00"));
        let (from, to) = span(Some(&at(1_000_000_000, 7_000_000)), 1);
        assert_eq!((&*from, &*to), ("2001-09-09T01:46:40.007", "2001-09-09T01:46:40.008"));
    }

    #[test]
    fn times_are_told_in_their_largest_unit() {
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_000);
        for (seconds, text) in [(0, "just now"), (1, "1 second ago"), (7_300, "2 hours ago")] {
            assert_eq!(relative(now - Duration::from_secs(seconds), now), text);
        }
        assert_eq!(relative(now + Duration::from_secs(86_400 * 30), now), "in 30 days");
        let time = Time::of(Some(&Timestamp { seconds: 1_000_000_000, nanos: 5 })).unwrap();
        assert_eq!((&*time.iso, &*time.text), ("2001-09-09T01:46:40Z", "2001-09-09 01:46 UTC"));
    }
}
