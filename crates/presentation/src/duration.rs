//! Durations.

use std::iter::once;
use std::time::Duration;

use prost_types::Duration as Message;

/// A unit: the seconds, the name, and the letter on the command line.
type Unit = (i64, &'static str, &'static str);

/// The units that people type, the longest first.
pub const UNITS: [Unit; 4] =
    [(86_400, "days", "d"), (3_600, "hours", "h"), (60, "minutes", "m"), (1, "seconds", "s")];
/// The unit of ages beside those that people type.
const YEAR: Unit = (365 * 86_400, "years", "y");

/// The duration of a message; zero if it is absent or negative.
pub fn of(message: Option<Message>) -> Duration {
    message.and_then(|message| Duration::try_from(message).ok()).unwrap_or_default()
}

/// A duration as a whole number of the longest unit that fits, without fractions of a second.
pub fn parts(duration: Option<&Message>) -> (i64, &'static str, &'static str) {
    let seconds = duration.map_or(0, |duration| duration.seconds);
    let fits = |(unit, ..): &&Unit| seconds % unit == 0;
    let (unit, name, letter) = UNITS.iter().find(fits).unwrap_or(&UNITS[3]);
    (seconds / unit, name, letter)
}

/// A duration such as `30 days`.
pub fn text(duration: Option<&Message>) -> String {
    let (number, unit, _) = parts(duration);
    counted(number, unit)
}

/// A duration such as `30 d`, or `1.500s` if it has fractions of a second.
pub fn short(duration: Option<&Message>) -> String {
    match duration.filter(|duration| duration.nanos != 0) {
        Some(fractional) => fractional.to_string(),
        None => {
            let (number, _, letter) = parts(duration);
            format!("{number} {letter}")
        }
    }
}

/// A duration for the command line, such as `30d`.
pub fn argument(duration: Option<&Message>) -> String {
    let (number, _, letter) = parts(duration);
    format!("{number}{letter}")
}

/// A duration for the command line that loses nothing, such as `30d` or `1500ms`.
pub fn exact_argument(duration: Option<&Message>) -> String {
    match duration.filter(|duration| duration.nanos != 0) {
        Some(fractional) => format!("{}ms", of(Some(*fractional)).as_millis()),
        None => argument(duration),
    }
}

/// A duration in its largest unit, such as `30 days`.
pub fn largest_unit(duration: Duration) -> String {
    let seconds = i64::try_from(duration.as_secs()).unwrap_or(i64::MAX).max(1);
    let fits = |(unit, ..): &&Unit| seconds >= *unit;
    let (unit, name, _) = once(&YEAR).chain(&UNITS).find(fits).unwrap_or(&UNITS[3]);
    counted(seconds / unit, name)
}

/// A number of units, one of which has the singular.
fn counted(number: i64, unit: &str) -> String {
    let unit = if number == 1 { unit.trim_end_matches('s') } else { unit };
    format!("{number} {unit}")
}

/// Parses a duration such as `30d`, `12h` or `1h 30m`.
pub fn parse(text: &str) -> Option<Duration> {
    humantime::parse_duration(text).ok()
}

/// Parses a duration for a message, in whole seconds.
///
/// # Errors
/// It is none, or has a fraction of a second.
pub fn parse_message(text: &str) -> Result<Message, &'static str> {
    let time = parse(text).ok_or("write a duration such as 30d, 12h, 5m or 10s")?;
    if time.subsec_nanos() != 0 {
        return Err("write whole seconds");
    }
    Ok(Message { seconds: i64::try_from(time.as_secs()).unwrap_or(i64::MAX), nanos: 0 })
}

/// The duration of a number and a unit.
///
/// # Errors
/// The number is not a whole one, or the unit is unknown.
pub fn of_parts(number: &str, unit: &str) -> Result<Message, &'static str> {
    const RULE: &str = "Write a whole number, such as 30.";
    let number: i64 = number.parse().map_err(|_| RULE)?;
    let (unit, ..) =
        UNITS.iter().find(|(_, name, _)| *name == unit).ok_or("Choose a unit, such as days.")?;
    let seconds = number.checked_mul(*unit).filter(|seconds| *seconds >= 0).ok_or(RULE)?;
    Ok(Message { seconds, nanos: 0 })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_as_they_are_written() {
        for (number, unit, written, typed) in [
            ("30", "days", "30 days", "30d"),
            ("36", "hours", "36 hours", "36h"),
            ("24", "hours", "1 day", "1d"),
            ("90", "seconds", "90 seconds", "90s"),
            ("0", "minutes", "0 days", "0d"),
        ] {
            let parsed = of_parts(number, unit).unwrap();
            assert_eq!((&*text(Some(&parsed)), &*argument(Some(&parsed))), (written, typed));
            assert_eq!(parse_message(typed), Ok(parsed));
            assert_eq!(short(Some(&parsed)).replace(' ', ""), typed);
        }
        assert_eq!(short(Some(&Message { seconds: 1, nanos: 500_000_000 })), "1.500s");
        assert!(parse_message("500ms").is_err());
        for wrong in ["", "-1", "1.5", "9223372036854775807", "ten"] {
            assert!(of_parts(wrong, "days").is_err(), "{wrong}");
        }
        assert!(of_parts("1", "weeks").is_err());
        for wrong in ["", "d", "3", "-1d", "99999999999999999999d", "1x"] {
            assert!(parse_message(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn exact_arguments_lose_nothing() {
        for (millis, written) in [(0, "0d"), (86_400_000, "1d"), (1_500, "1500ms"), (90_000, "90s")]
        {
            let duration = Duration::from_millis(millis);
            assert_eq!(exact_argument(Some(&duration.try_into().unwrap())), written);
            assert_eq!(parse(written), Some(duration));
        }
    }

    #[test]
    fn ages_are_told_in_their_largest_unit() {
        for (seconds, told) in [(0, "1 second"), (7_300, "2 hours"), (400 * 86_400, "1 year")] {
            assert_eq!(largest_unit(Duration::from_secs(seconds)), told);
        }
    }
}
