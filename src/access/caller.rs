//! Callers and the tenants that they may work in.

use std::fmt;

use super::role::Role;

/// A program that calls the API.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Caller {
    /// The name in logs and idempotency keys.
    pub name: String,
    /// The rights.
    pub role: Role,
    /// The tenants in which it has them.
    pub tenants: Tenants,
}

impl Caller {
    /// The name of callers without credentials.
    pub const ANONYMOUS: &'static str = "anonymous";

    /// The caller of every call to a server that has no credentials: an admin of all tenants.
    pub fn anonymous() -> Self {
        Self { name: Self::ANONYMOUS.to_owned(), role: Role::Admin, tenants: Tenants::all() }
    }
}

/// Patterns of tenants' names: a name, or a prefix that ends in `*`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tenants(Vec<String>);

impl Tenants {
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
