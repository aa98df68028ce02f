//! Times.

use std::time::{Duration, SystemTime};

use polynym_proto::time;
use polynym_proto::v1::UsageResolution;
use prost_types::Timestamp;

use crate::duration::{self, largest_unit};

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
        let text = format!("{} UTC", minute(timestamp?.seconds));
        Some(Self { iso: second(time), text, relative: relative(time, SystemTime::now()) })
    }
}

/// A time of RFC 3339; empty if it is absent.
pub fn text(timestamp: Option<&Timestamp>) -> String {
    timestamp.map(ToString::to_string).unwrap_or_default()
}

/// A time of RFC 3339, to the second.
pub fn second(time: SystemTime) -> String {
    Timestamp { nanos: 0, ..time.into() }.to_string()
}

/// The time at these seconds since 1970, such as `2026-11-27 14:20`.
pub fn minute(seconds: i64) -> String {
    let text = Timestamp { seconds, nanos: 0 }.to_string();
    text.get(..16).unwrap_or(&text).replace('T', " ")
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
    let nanos = millis.rem_euclid(1_000) as i32 * 1_000_000;
    let time = Timestamp { seconds: millis.div_euclid(1_000), nanos };
    time.to_string().trim_end_matches('Z').to_owned()
}

/// The time of an input, such as `2026-11-27`, `2026-11-27 14:20`, `2026-11-27T14:20:05.123Z` or
/// `2026-11-27 14:20+01:00`: in UTC, unless it has an offset. `None` if it is not one.
pub fn parse_input(text: &str) -> Option<Timestamp> {
    let (date, rest) = text.trim().split_at_checked(10)?;
    let rest = rest.trim_start_matches([' ', 'T', 't']);
    let (clock, offset) = rest.split_at(rest.find(['Z', 'z', '+', '-']).unwrap_or(rest.len()));
    let clock = match clock.trim_end() {
        "" => "00:00:00".to_owned(),
        minutes if minutes.len() == 5 => format!("{minutes}:00"),
        seconds => seconds.to_owned(),
    };
    let offset = if offset.is_empty() { "Z" } else { offset };
    time::parse(&format!("{date}T{clock}{offset}"))
}

/// Parses a time such as `2026-01-31T12:00:00Z`, the beginning of a day such as `2026-01-31` (UTC),
/// or an age such as `90d`.
///
/// # Errors
/// It is none.
pub fn instant(text: &str) -> Result<Timestamp, &'static str> {
    parse(text, SystemTime::checked_sub).ok_or(
        "write a time such as 2026-01-31T12:00:00Z or 2026-01-31T13:00:00+01:00, a day \
                (UTC), or an age: 90d",
    )
}

/// Parses a future time: a time, a day, or the time until then, such as `7d`.
///
/// # Errors
/// It is none.
pub fn future(text: &str) -> Result<Timestamp, &'static str> {
    parse(text, SystemTime::checked_add).ok_or(
        "write a time such as 2030-01-31T12:00:00Z or 2030-01-31T13:00:00+01:00, a day \
                (UTC), or a time from now: 7d",
    )
}

/// The latest time of an expiry: the end of the year 9999.
const MAX_EXPIRY: Duration = Duration::from_secs(253_402_300_799);

/// Parses an expiry: a time or a duration from now; none for `never`.
///
/// # Errors
/// It is none of these, or not in the future.
pub fn expiry(text: &str) -> Result<Option<SystemTime>, &'static str> {
    if text == "never" {
        return Ok(None);
    }
    let now = SystemTime::now();
    future(text)
        .ok()
        .and_then(|time| SystemTime::try_from(time).ok())
        .filter(|time| (now..=SystemTime::UNIX_EPOCH + MAX_EXPIRY).contains(time))
        .map(Some)
        .ok_or("write a future time, such as 90d, 12h or 2030-01-01T00:00:00Z, or never")
}

/// A time, the beginning of a day, or the current time shifted by a duration.
fn parse(text: &str, shift: fn(&SystemTime, Duration) -> Option<SystemTime>) -> Option<Timestamp> {
    let shifted = duration::parse(text).and_then(|duration| shift(&SystemTime::now(), duration));
    shifted
        .map(Timestamp::from)
        .or_else(|| time::parse(text))
        .or_else(|| time::parse(&format!("{text}T00:00:00Z")))
}

/// The intervals of counters: their names, seconds and resolutions.
pub const INTERVALS: [(&str, i64, UsageResolution); 3] = [
    ("minute", 60, UsageResolution::Minute),
    ("hour", 3_600, UsageResolution::Hour),
    ("day", 86_400, UsageResolution::Day),
];

/// The name and the seconds of a resolution's interval; days unless it is known.
pub fn interval(resolution: UsageResolution) -> (&'static str, i64) {
    let known = INTERVALS.iter().find(|(.., known)| *known == resolution);
    let (name, seconds, _) = known.unwrap_or(&INTERVALS[2]);
    (name, *seconds)
}

/// The distance of a time in its largest unit.
fn relative(time: SystemTime, now: SystemTime) -> String {
    match now.duration_since(time) {
        Ok(age) if age < Duration::from_secs(1) => "just now".to_owned(),
        Ok(age) => format!("{} ago", largest_unit(age)),
        Err(ahead) => format!("in {}", largest_unit(ahead.duration())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inputs_are_read_and_written() {
        let at = |seconds, nanos| Timestamp { seconds, nanos };
        assert_eq!(parse_input("2001-09-09"), Some(at(999_993_600, 0)));
        assert_eq!(parse_input("2001-09-09T01:46"), Some(at(999_999_960, 0)));
        assert_eq!(parse_input("2001-09-09 01:46:40"), Some(at(1_000_000_000, 0)));
        assert_eq!(parse_input("2001-09-09T01:46:40.5Z"), Some(at(1_000_000_000, 500_000_000)));
        for same in ["2001-09-09 03:46+02:00", "2001-09-08T20:46-05:00", "2001-09-09 01:46 Z"] {
            assert_eq!(parse_input(same), Some(at(999_999_960, 0)), "{same}");
        }
        assert_eq!(parse_input("2001-09-09 03:46+2"), None);
        assert_eq!([parse_input(""), parse_input("soon"), parse_input("äöüäö")], [None; 3]);
        let (from, to) = span(Some(&at(1_000_000_000, 7_000_000)), 3_600_000);
        assert_eq!((&*from, &*to), ("2001-09-09T01:00:00", "2001-09-09T02:00:00"));
        let (from, to) = span(Some(&at(1_000_000_000, 7_000_000)), 1);
        assert_eq!((&*from, &*to), ("2001-09-09T01:46:40.007", "2001-09-09T01:46:40.008"));
    }

    #[test]
    fn days_and_times_are_parsed() {
        assert_eq!(instant("2026-01-31").unwrap(), instant("2026-01-31T00:00:00Z").unwrap());
        let noon = instant("2026-01-31T13:00:00+01:00").unwrap();
        assert_eq!(noon.seconds - instant("2026-01-31").unwrap().seconds, 12 * 3_600);
        let now = Timestamp::from(SystemTime::now()).seconds;
        assert!((now - instant("1d").unwrap().seconds - 86_400).abs() < 60);
        assert!((future("1d").unwrap().seconds - now - 86_400).abs() < 60);
        assert_eq!(future("2030-01-31").unwrap(), instant("2030-01-31").unwrap());
        assert!(future("2030-02-30").is_err());
        let without_offset = ["2026-01-31T12:00:00", "2026-01-31T12:00:00+01", "2026-01-31 12:00Z"];
        let others = ["", "yesterday", "2026-02-30", "2026-1-31", "12:00"];
        for wrong in others.into_iter().chain(without_offset) {
            assert!(instant(wrong).is_err(), "{wrong}");
        }
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
