//! Identity keys: tenant, kind and canonical form in one string.

use std::fmt;

use super::canonical::Identifier;
use super::lookalike::Guard;

/// Sorts below every character of tenants and kind words, so that keys order by tenant, kind and
/// value. Tenants and kind words cannot contain it, so the first two separate them from any value.
const SEPARATOR: char = ',';

/// The unique key of an identifier in a tenant, such as `default,email,joe@example.com`.
///
/// ```
/// use polynym_identifier::{Identifier, IdentityKey, RawIdentifier};
///
/// let joe = Identifier::parse(RawIdentifier::Handle("@Joe"))?;
/// let key = IdentityKey::new("default", &joe);
/// assert_eq!(key.as_str(), "default,handle,joe");
/// # Ok::<(), polynym_identifier::Rejection>(())
/// ```
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct IdentityKey(String);

impl IdentityKey {
    /// The key of an identifier. The tenant must have been validated: `[a-z0-9][a-z0-9-]{0,62}`.
    pub fn new(tenant: &str, identifier: &Identifier) -> Self {
        IdentityKey::join(tenant, identifier.kind().as_str(), identifier.canonical())
    }

    /// The key of a guard. The tenant must have been validated.
    pub fn of_guard(tenant: &str, guard: &Guard) -> Self {
        IdentityKey::join(tenant, guard.kind_word(), guard.skeleton())
    }

    /// Wraps a stored key; `None` if it lacks a part.
    pub fn from_stored(key: String) -> Option<Self> {
        (key.matches(SEPARATOR).nth(1).is_some()).then_some(IdentityKey(key))
    }

    fn join(tenant: &str, kind: &str, value: &str) -> Self {
        debug_assert!(!tenant.contains(SEPARATOR), "the tenant was not validated");
        let mut key = String::with_capacity(tenant.len() + kind.len() + value.len() + 2);
        key.push_str(tenant);
        key.push(SEPARATOR);
        key.push_str(kind);
        key.push(SEPARATOR);
        key.push_str(value);
        IdentityKey(key)
    }

    /// The range of the keys of a tenant: the inclusive start and the exclusive end.
    pub fn range(tenant: &str) -> [String; 2] {
        let after_separator = char::from(SEPARATOR as u8 + 1);
        [format!("{tenant}{SEPARATOR}"), format!("{tenant}{after_separator}")]
    }

    /// The key as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Converts the key to its text.
    pub fn into_string(self) -> String {
        self.0
    }

    /// Tenant, kind word and value. The kind word is a [`Kind`](super::Kind)'s or
    /// [`Guard::LOOKALIKE`].
    pub fn parts(&self) -> (&str, &str, &str) {
        let (tenant, rest) = self.0.split_once(SEPARATOR).unwrap_or_default();
        let (kind, value) = rest.split_once(SEPARATOR).unwrap_or_default();
        (tenant, kind, value)
    }

    /// The tenant.
    pub fn tenant(&self) -> &str {
        self.parts().0
    }

    /// Whether this is the key of `guard`, in any tenant.
    pub fn is_of_guard(&self, guard: &Guard) -> bool {
        let (_, kind, value) = self.parts();
        kind == guard.kind_word() && value == guard.skeleton()
    }

    /// Whether this is the key of `identifier`, in any tenant.
    pub fn is_of(&self, identifier: &Identifier) -> bool {
        let (_, kind, value) = self.parts();
        kind == identifier.kind().as_str() && value == identifier.canonical()
    }
}

/// Shows only tenant and kind word: values are personal data.
impl fmt::Debug for IdentityKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (tenant, kind, _) = self.parts();
        write!(f, "IdentityKey({tenant}, {kind}, …)")
    }
}
