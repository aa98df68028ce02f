//! Callers and the tenants that they may work in.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::role::Role;
use super::usage::{Rate, Usage};

/// A program that calls the API.
#[derive(Clone, Debug)]
pub struct Caller {
    /// The name in logs and idempotency keys.
    pub name: String,
    /// The rights.
    pub role: Role,
    /// The tenants in which it has them.
    pub tenants: Tenants,
    /// The rates that it may spend.
    pub rate: Rate,
    /// The use that it makes of the server.
    pub usage: Arc<Usage>,
}

impl Caller {
    /// The name of callers without credentials.
    pub const ANONYMOUS: &'static str = "anonymous";

    /// The caller of every call to a server that has no credentials: an admin of all tenants.
    pub fn anonymous() -> Self {
        Self {
            name: Self::ANONYMOUS.to_owned(),
            role: Role::Admin,
            tenants: Tenants::all(),
            rate: Rate::default(),
            usage: Arc::default(),
        }
    }

    /// Whether two entries give the same rights and rates.
    pub fn agrees_with(&self, other: &Self) -> bool {
        let rights = |caller: &Self| (caller.role, caller.tenants.clone(), caller.rate);
        rights(self) == rights(other)
    }

    /// The most of a server's places, of which there are `all`, that this caller may take: half,
    /// so that others find some.
    pub fn share(&self, all: usize) -> usize {
        if self.name == Self::ANONYMOUS { usize::MAX } else { all.div_ceil(2) }
    }

    /// Spends one of the caller's calls.
    ///
    /// # Errors
    /// None is left; the time until there is.
    pub fn take_call(&self) -> Result<(), Duration> {
        self.rate.calls.map_or(Ok(()), |rate| self.usage.calls.take(rate))
    }

    /// Whether the caller may look anybody up: a look-up may find nobody.
    ///
    /// # Errors
    /// No miss is left; the time until there is.
    pub fn check_misses(&self) -> Result<(), Duration> {
        self.rate.misses.map_or(Ok(()), |rate| self.usage.misses.check(rate))
    }

    /// Counts look-ups that found nobody.
    pub fn missed(&self, count: usize) {
        if let Some(rate) = self.rate.misses {
            self.usage.misses.spend(count, rate);
        }
    }
}

/// Patterns of tenants' names: a name, or a prefix that ends in `*`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tenants(Vec<String>);

impl Tenants {
    /// Whether they are all tenants that there are, and will be.
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
    /// There is none, or one has a `*` before its end or a character that no tenant has.
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
            Some(wrong) => Err(format!(
                "{wrong:?} names no tenants: write a name, a prefix with * at its end, or *"
            )),
            None => Ok(Self(patterns)),
        }
    }

    /// Whether the tenant is one of these.
    pub fn contains(&self, tenant: &str) -> bool {
        self.0.iter().any(|pattern| match pattern.strip_suffix('*') {
            Some(prefix) => tenant.starts_with(prefix),
            None => tenant == pattern,
        })
    }

    /// The patterns, as they are written.
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
    fn other_patterns_are_refused() {
        for wrong in [&[][..], &[""], &["a*b"], &["**"], &["eu-?"], &["A"]] {
            assert!(tenants(wrong).is_err(), "{wrong:?}");
        }
    }
}
