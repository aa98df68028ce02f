//! Times as they are typed.

use std::time::SystemTime;

use prost_types::Timestamp;

/// Reads a time such as `2026-01-31T12:00:00Z`, the beginning of a day such as `2026-01-31` (UTC),
/// or an age such as `90d`.
pub fn instant(text: &str) -> Result<Timestamp, String> {
    if let Ok(age) = humantime::parse_duration(text)
        && let Some(time) = SystemTime::now().checked_sub(age)
    {
        return Ok(time.into());
    }
    let is_day = text.len() == 10;
    let time = if is_day { format!("{text}T00:00:00Z").parse() } else { text.parse() };
    time.map_err(|_| {
        "write a time such as 2026-01-31T12:00:00Z, a day (UTC), or an age: 90d".into()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_and_times_are_read() {
        assert_eq!(instant("2026-01-31").unwrap(), instant("2026-01-31T00:00:00Z").unwrap());
        let noon = instant("2026-01-31T13:00:00+01:00").unwrap();
        assert_eq!(noon.seconds - instant("2026-01-31").unwrap().seconds, 12 * 3_600);
        let now = Timestamp::from(SystemTime::now()).seconds;
        assert!((now - instant("1d").unwrap().seconds - 86_400).abs() < 60);
        for wrong in ["", "yesterday", "2026-02-30", "2026-1-31", "12:00"] {
            assert!(instant(wrong).is_err(), "{wrong}");
        }
    }
}
