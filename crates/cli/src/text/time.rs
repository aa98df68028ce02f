//! Times on the command line.

use std::time::{Duration, SystemTime};

use prost_types::Timestamp;

/// Parses a time such as `2026-01-31T12:00:00Z`, the beginning of a day such as `2026-01-31` (UTC),
/// or an age such as `90d`.
pub fn instant(text: &str) -> Result<Timestamp, &'static str> {
    time(text, SystemTime::checked_sub).ok_or(
        "write a time such as 2026-01-31T12:00:00Z or 2026-01-31T13:00:00+01:00, a day \
                (UTC), or an age: 90d",
    )
}

/// Parses a future time: a time, a day, or the time until then, such as `7d`.
pub fn future_time(text: &str) -> Result<Timestamp, &'static str> {
    time(text, SystemTime::checked_add).ok_or(
        "write a time such as 2030-01-31T12:00:00Z or 2030-01-31T13:00:00+01:00, a day \
                (UTC), or a time from now: 7d",
    )
}

/// A time, the beginning of a day, or the current time shifted by a duration.
fn time(text: &str, shift: fn(&SystemTime, Duration) -> Option<SystemTime>) -> Option<Timestamp> {
    if let Ok(duration) = humantime::parse_duration(text)
        && let Some(time) = shift(&SystemTime::now(), duration)
    {
        return Some(time.into());
    }
    polynym_proto::time::parse(text)
        .or_else(|| polynym_proto::time::parse(&format!("{text}T00:00:00Z")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_and_times_are_parsed() {
        assert_eq!(instant("2026-01-31").unwrap(), instant("2026-01-31T00:00:00Z").unwrap());
        let noon = instant("2026-01-31T13:00:00+01:00").unwrap();
        assert_eq!(noon.seconds - instant("2026-01-31").unwrap().seconds, 12 * 3_600);
        let now = Timestamp::from(SystemTime::now()).seconds;
        assert!((now - instant("1d").unwrap().seconds - 86_400).abs() < 60);
        assert!((future_time("1d").unwrap().seconds - now - 86_400).abs() < 60);
        assert_eq!(future_time("2030-01-31").unwrap(), instant("2030-01-31").unwrap());
        assert!(future_time("2030-02-30").is_err());
        let without_offset = ["2026-01-31T12:00:00", "2026-01-31T12:00:00+01", "2026-01-31 12:00Z"];
        let others = ["", "yesterday", "2026-02-30", "2026-1-31", "12:00"];
        for wrong in others.into_iter().chain(without_offset) {
            assert!(instant(wrong).is_err(), "{wrong}");
        }
    }
}
