//! The times until the credentials of callers expire, as gauges.

use std::collections::{BTreeMap, BTreeSet};
use std::time::SystemTime;

use metrics::gauge;

use super::credentials::Credentials;

/// The gauge of the time until a credential of a caller expires.
pub const CREDENTIAL_EXPIRES: (&str, &str) = (
    "polynym_credential_expires_seconds",
    "Seconds until the next of a caller's credentials expires; negative once all have expired",
);

/// The gauges of all callers whose credentials expire.
#[derive(Debug, Default)]
pub struct ExpiryGauges {
    shown: BTreeSet<String>,
}

impl ExpiryGauges {
    /// Sets the gauges to the times from `now` on.
    pub fn set(&mut self, credentials: &Credentials, now: SystemTime) {
        let expiries = expiries(credentials, now);
        let set = |caller: &str, seconds: f64| {
            gauge!(CREDENTIAL_EXPIRES.0, "caller" => caller.to_owned()).set(seconds);
        };
        // A gauge cannot be removed. One that is not a number fires no alert.
        for caller in self.shown.iter().filter(|caller| !expiries.contains_key(caller.as_str())) {
            set(caller, f64::NAN);
        }
        for (caller, expiry) in expiries {
            set(caller, seconds_between(now, expiry));
            self.shown.insert(caller.to_owned());
        }
    }
}

/// The time when the next credential of each caller expires. For a caller whose credentials have
/// all expired it is the latest time. Callers of whom none expires are left out.
fn expiries(credentials: &Credentials, now: SystemTime) -> BTreeMap<&str, SystemTime> {
    let mut callers: BTreeMap<&str, Vec<Option<SystemTime>>> = BTreeMap::new();
    for credential in credentials.list() {
        callers.entry(&credential.caller.name).or_default().push(credential.expires);
    }
    let all = callers.into_iter();
    all.filter_map(|(caller, times)| Some((caller, expiry(&times, now)?))).collect()
}

fn expiry(times: &[Option<SystemTime>], now: SystemTime) -> Option<SystemTime> {
    let ends = || times.iter().flatten().copied();
    let next = ends().filter(|end| *end > now).min();
    let is_over = times.iter().all(|time| time.is_some_and(|end| end <= now));
    next.or_else(|| ends().max().filter(|_| is_over))
}

fn seconds_between(now: SystemTime, expiry: SystemTime) -> f64 {
    match expiry.duration_since(now) {
        Ok(left) => left.as_secs_f64(),
        Err(over) => -over.duration().as_secs_f64(),
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, SystemTime};

    use super::{expiries, seconds_between};
    use crate::{CallerStates, Credentials, RateLimits};

    #[test]
    fn the_next_expiry_of_each_caller_counts() {
        let entry = |name: &str, n: u8, expires: &str| {
            let token = format!("sha256:{name}{n}:{}", "0".repeat(64));
            let expires =
                if expires.is_empty() { String::new() } else { format!("expires = {expires}\n") };
            format!(
                "[[caller]]\nname = \"{name}\"\nrole = \"admin\"\ntenants = [\"*\"]\n\
                 token = \"{token}\"\n{expires}"
            )
        };
        let file = [
            entry("rotated", 1, "2030-01-01T00:00:00Z"),
            entry("rotated", 2, "2031-01-01T00:00:00Z"),
            entry("renewed", 1, "2020-01-01T00:00:00Z"),
            entry("renewed", 2, "2031-01-01T00:00:00Z"),
            entry("over", 1, "2020-01-01T00:00:00Z"),
            entry("over", 2, "2021-01-01T00:00:00Z"),
            entry("endless", 1, ""),
            entry("half", 1, ""),
            entry("half", 2, "2020-01-01T00:00:00Z"),
        ];
        let file = file.concat();
        let credentials =
            Credentials::parse(&file, RateLimits::default(), &CallerStates::default()).unwrap();
        let time = |text: &str| humantime::parse_rfc3339(text).unwrap();
        let found = expiries(&credentials, time("2029-01-01T00:00:00Z"));
        let expected = [
            ("over", time("2021-01-01T00:00:00Z")),
            ("renewed", time("2031-01-01T00:00:00Z")),
            ("rotated", time("2030-01-01T00:00:00Z")),
        ];
        assert_eq!(found, expected.into());
    }

    #[test]
    fn an_expiry_in_the_past_is_negative() {
        let (now, hour) = (SystemTime::now(), Duration::from_secs(3_600));
        assert_eq!(seconds_between(now, now + hour), 3_600.0);
        assert_eq!(seconds_between(now, now - hour), -3_600.0);
    }
}
