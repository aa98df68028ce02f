//! Callers and the tenants that they may work in.

use std::fmt;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use super::caller_state::CallerState;
use super::permit::share_of;
use super::rate_limiter::RateLimits;
use super::role::Role;

/// The bytes of notices that a caller may send a second, counted for each recipient.
const NOTICE_BYTES: NonZeroU32 = NonZeroU32::new(16 << 20).unwrap();
/// The bytes that a notice counts as at least, for each recipient: what an entry of an inbox costs.
const MIN_NOTICE_BYTES: usize = 1 << 10;

/// A program that calls the API.
#[derive(Clone, Debug)]
pub struct Caller {
    /// The name in logs and idempotency keys.
    pub name: String,
    /// The rights.
    pub role: Role,
    /// The tenants to which the role applies.
    pub tenants: Tenants,
    /// The limits of its rates.
    pub limits: RateLimits,
    /// Its connections, calls in flight and spent rates.
    pub state: Arc<CallerState>,
}

impl Caller {
    /// The name of callers without credentials.
    pub const ANONYMOUS: &'static str = "anonymous";

    /// The caller of every call to a server without credentials: an admin of all tenants.
    pub fn anonymous() -> Self {
        Self {
            name: Self::ANONYMOUS.to_owned(),
            role: Role::Admin,
            tenants: Tenants::all(),
            limits: RateLimits::default(),
            state: Arc::default(),
        }
    }

    /// Whether two callers have the same role, tenants and limits.
    pub fn has_same_rights(&self, other: &Self) -> bool {
        (self.role, &self.tenants, self.limits) == (other.role, &other.tenants, other.limits)
    }

    /// Whether it has at least this role in a tenant.
    pub fn may(&self, role: Role, tenant: &str) -> bool {
        self.role >= role && self.tenants.contains(tenant)
    }

    /// Whether it is the caller of every call to a server without credentials.
    pub fn is_anonymous(&self) -> bool {
        self.name == Self::ANONYMOUS
    }

    /// The caller's share of what a server has: connections, permits, streams and bytes.
    pub fn share(&self, total: usize) -> usize {
        if self.is_anonymous() { usize::MAX } else { share_of(total) }
    }

    /// Spends one call of the caller's rate.
    ///
    /// # Errors
    /// None is left; the time until one is.
    pub fn admit_call(&self) -> Result<(), Duration> {
        self.limits.calls.map_or(Ok(()), |rate| self.state.calls.take(rate))
    }

    /// Checks that the caller may send a notice.
    ///
    /// # Errors
    /// The bytes of earlier notices exceed its rate; the time until they do not.
    pub fn check_notice_limit(&self) -> Result<(), Duration> {
        if self.is_anonymous() {
            return Ok(());
        }
        self.state.notice_bytes.check(NOTICE_BYTES)
    }

    /// Spends the bytes of a notice, for each of its recipients.
    pub fn record_notice(&self, bytes: usize, recipients: usize) {
        self.state.notice_bytes.spend(bytes.max(MIN_NOTICE_BYTES) * recipients, NOTICE_BYTES);
    }

    /// Checks that the caller may make a look-up, which may miss.
    ///
    /// # Errors
    /// No miss is left; the time until one is.
    pub fn check_miss_limit(&self) -> Result<(), Duration> {
        self.limits.misses.map_or(Ok(()), |rate| self.state.misses.check(rate))
    }

    /// Spends look-ups that found no user.
    pub fn record_misses(&self, count: usize) {
        if let Some(rate) = self.limits.misses {
            self.state.misses.spend(count, rate);
        }
    }
}

/// Patterns of tenant names: a name, or a prefix that ends in `*`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tenants(Vec<String>);

impl Tenants {
    /// Whether they match every tenant.
    pub fn are_all(&self) -> bool {
        self.0.iter().any(|pattern| pattern == "*")
    }

    /// All tenants.
    pub fn all() -> Self {
        Self(vec!["*".to_owned()])
    }

    /// Reads patterns such as `default`, `eu-*` and `*`.
    ///
    /// # Errors
    /// The list is empty, or a pattern has a `*` before its end or an invalid character.
    pub fn parse(patterns: Vec<String>) -> Result<Self, String> {
        let is_name = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        let is_pattern = |pattern: &String| {
            let name = pattern.strip_suffix('*').unwrap_or(pattern);
            !pattern.is_empty() && name.chars().all(is_name)
        };
        if patterns.is_empty() {
            return Err("name a tenant, or \"*\" for all".to_owned());
        }
        match patterns.iter().find(|pattern| !is_pattern(pattern)) {
            Some(invalid) => Err(format!(
                "{invalid:?} is not a pattern: write a tenant's name, a prefix and *, or *"
            )),
            None => Ok(Self(patterns)),
        }
    }

    /// Whether a pattern matches the tenant.
    pub fn contains(&self, tenant: &str) -> bool {
        self.0.iter().any(|pattern| match pattern.strip_suffix('*') {
            Some(prefix) => tenant.starts_with(prefix),
            None => tenant == pattern,
        })
    }

    /// The patterns as written.
    pub fn patterns(&self) -> &[String] {
        &self.0
    }
}

impl fmt::Display for Tenants {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.join(","))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tenants(patterns: &[&str]) -> Result<Tenants, String> {
        Tenants::parse(patterns.iter().map(ToString::to_string).collect())
    }

    #[test]
    fn patterns_are_names_or_prefixes() {
        let some = tenants(&["default", "eu-*"]).unwrap();
        assert!(some.contains("default") && some.contains("eu-1") && some.contains("eu-"));
        assert!(!some.contains("default2") && !some.contains("eu") && !some.contains(""));
        assert!(tenants(&["*"]).unwrap().contains("any"));
    }

    #[test]
    fn invalid_patterns_are_rejected() {
        for wrong in [&[][..], &[""], &["a*b"], &["**"], &["eu-?"], &["A"]] {
            assert!(tenants(wrong).is_err(), "{wrong:?}");
        }
    }
    #[test]
    fn tiny_notices_cost_their_entries() {
        let caller = || Caller { name: "sender".to_owned(), ..Caller::anonymous() };
        let (modest, greedy) = (caller(), caller());
        modest.record_notice(1, 4_000);
        assert!(modest.check_notice_limit().is_ok());
        greedy.record_notice(1, 640_000);
        let wait = greedy.check_notice_limit().unwrap_err();
        assert!(wait > Duration::from_secs(1), "{wait:?}");
    }
}
