//! Tenants' names.

use std::borrow::Cow;
use std::fmt;

use crate::error::{Error, Invalid};

/// The name of an isolated set of users and identifiers: `[a-z0-9][a-z0-9-]{0,62}`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tenant(Cow<'static, str>);

impl Tenant {
    /// The tenant of requests without one.
    pub const DEFAULT: Tenant = Tenant(Cow::Borrowed("default"));

    /// Parses a tenant's name; the empty one means [`Tenant::DEFAULT`].
    ///
    /// # Errors
    /// [`Error::Invalid`] if `name` does not have the form above.
    pub fn parse(name: &str) -> Result<Self, Error> {
        if name.is_empty() || name == "default" {
            return Ok(Self::DEFAULT);
        }
        let allowed = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
        if name.len() > 63 || name.starts_with('-') || !name.bytes().all(allowed) {
            let rule = "a tenant has 1 to 63 characters: a-z, 0-9 and '-', but no leading '-'";
            return Err(Error::invalid(Invalid::Tenant, "tenant", rule));
        }
        Ok(Self(Cow::Owned(name.to_owned())))
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Tenant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
