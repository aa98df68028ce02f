//! Durations as people write them: a number and a unit.

pub use prost_types::Duration;

/// The units, the longest first: the seconds, the name, and the letter on the command line.
pub const UNITS: [(i64, &str, &str); 4] =
    [(86_400, "days", "d"), (3_600, "hours", "h"), (60, "minutes", "m"), (1, "seconds", "s")];

/// A duration as a whole number of the longest unit that fits.
pub fn parts(duration: Option<&Duration>) -> (i64, &'static str, &'static str) {
    let seconds = duration.map_or(0, |duration| duration.seconds);
    let fits = |(unit, ..): &&(i64, &str, &str)| seconds % unit == 0;
    let (unit, name, letter) = UNITS.iter().find(fits).unwrap_or(&UNITS[3]);
    (seconds / unit, name, letter)
}

/// A duration such as `30 days`.
pub fn text(duration: Option<&Duration>) -> String {
    let (number, unit, _) = parts(duration);
    let unit = if number == 1 { unit.trim_end_matches('s') } else { unit };
    format!("{number} {unit}")
}

/// A duration for the command line, such as `30d`.
pub fn argument(duration: Option<&Duration>) -> String {
    let (number, _, letter) = parts(duration);
    format!("{number}{letter}")
}

/// The duration of a number and a unit.
///
/// # Errors
/// The number is not a whole one, or the unit is unknown.
pub fn parse(number: &str, unit: &str) -> Result<Duration, &'static str> {
    const RULE: &str = "Write a whole number, such as 30.";
    let number: i64 = number.parse().map_err(|_| RULE)?;
    let (unit, ..) =
        UNITS.iter().find(|(_, name, _)| *name == unit).ok_or("Choose a unit, such as days.")?;
    let seconds = number.checked_mul(*unit).filter(|seconds| *seconds >= 0).ok_or(RULE)?;
    Ok(Duration { seconds, nanos: 0 })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_as_they_are_written() {
        for (number, unit, written, short) in [
            ("30", "days", "30 days", "30d"),
            ("36", "hours", "36 hours", "36h"),
            ("24", "hours", "1 day", "1d"),
            ("90", "seconds", "90 seconds", "90s"),
            ("0", "minutes", "0 days", "0d"),
        ] {
            let parsed = parse(number, unit).unwrap();
            assert_eq!(
                (text(Some(&parsed)), argument(Some(&parsed))),
                (written.into(), short.into())
            );
        }
        for wrong in ["", "-1", "1.5", "9223372036854775807", "ten"] {
            assert!(parse(wrong, "days").is_err(), "{wrong}");
        }
        assert!(parse("1", "weeks").is_err());
    }
}
