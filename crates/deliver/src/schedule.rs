//! When an event that did not arrive is sent again.

use std::time::{Duration, SystemTime};

/// The pause after the first attempt, and the longest one.
const FIRST: Duration = Duration::from_secs(5);
const LONGEST: Duration = Duration::from_secs(60 * 60);
/// The time after the first attempt in which an event is sent again, and the longest pause for
/// which a receiver may ask.
pub const RETRIED_FOR: Duration = Duration::from_secs(24 * 60 * 60);

/// The pause after this number of attempts, at least one: twice that before, and up to a fifth
/// shorter or longer by `random`, so that what failed together is not sent again together.
pub fn pause(attempts: u32, random: u32) -> Duration {
    let doubled = FIRST.saturating_mul(1 << attempts.saturating_sub(1).min(16));
    let pause = doubled.min(LONGEST);
    pause.mul_f64(0.8 + 0.4 * f64::from(random) / f64::from(u32::MAX))
}

/// The pause that a receiver asks for by the header `Retry-After`, as seconds or a date.
pub fn retry_after(header: &str, now: SystemTime) -> Option<Duration> {
    let text = header.trim();
    let pause = match text.bytes().all(|byte| byte.is_ascii_digit()) && !text.is_empty() {
        true => Duration::from_secs(text.parse().unwrap_or(u64::MAX)),
        false => httpdate::parse_http_date(text).ok()?.duration_since(now).unwrap_or_default(),
    };
    Some(pause.min(RETRIED_FOR))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_to_an_hour_and_vary() {
        let middle: Vec<_> =
            (1..=12).map(|n| pause(n, u32::MAX / 2).as_secs_f64().round()).collect();
        let expected =
            [5, 10, 20, 40, 80, 160, 320, 640, 1_280, 2_560, 3_600, 3_600].map(f64::from);
        assert_eq!(middle, expected);
        assert_eq!((pause(1, 0), pause(1, u32::MAX)), (FIRST.mul_f64(0.8), FIRST.mul_f64(1.2)));
        assert_eq!(pause(u32::MAX, 0), LONGEST.mul_f64(0.8));
        assert_eq!(pause(0, 0), FIRST.mul_f64(0.8));
    }

    #[test]
    fn retry_after_is_seconds_or_a_date_and_bounded() {
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(784_111_777);
        let read = |text| retry_after(text, now).map(|pause| pause.as_secs());
        assert_eq!(read("120"), Some(120));
        assert_eq!(read(" 0 "), Some(0));
        assert_eq!(read("Sun, 06 Nov 1994 08:50:37 GMT"), Some(60));
        assert_eq!(read("Sun, 06 Nov 1994 08:00:00 GMT"), Some(0));
        for long in ["999999", "99999999999999999999999", "Sat, 06 Nov 2094 08:49:37 GMT"] {
            assert_eq!(read(long), Some(RETRIED_FOR.as_secs()), "{long}");
        }
        for bad in ["", "soon", "-1", "1.5"] {
            assert_eq!(read(bad), None, "{bad}");
        }
    }
}
