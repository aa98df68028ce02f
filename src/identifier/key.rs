//! Identity keys: tenant, kind and canonical form as one string, the same in every store.

use std::fmt;

use super::Identifier;
use super::lookalike::Guard;

/// Sorts below every character that a tenant or a kind word may have, so that keys order by
/// tenant, then kind, then value. Neither has one, so the first two bound tenant and kind
/// whatever is in the value.
const SEPARATOR: char = ',';

/// The key under which a store keeps who owns an identifier, as `default,email,joe@example.com`.
/// No two different triples of tenant, kind and value have the same key.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct IdentityKey(String);

impl IdentityKey {
    /// The key of an identifier. The tenant must have been validated: `[a-z0-9][a-z0-9-]{0,62}`.
    pub fn new(tenant: &str, identifier: &Identifier) -> Self {
        IdentityKey::join(tenant, identifier.kind().as_str(), identifier.canonical())
    }

    /// The key that a guard reserves. The tenant must have been validated.
    pub fn of_guard(tenant: &str, guard: &Guard) -> Self {
        IdentityKey::join(tenant, guard.kind_word(), guard.skeleton())
    }

    /// A key that was read back from a store; `None` where it cannot be one.
    pub fn from_stored(key: String) -> Option<Self> {
        (key.matches(SEPARATOR).nth(1).is_some()).then_some(IdentityKey(key))
    }

    fn join(tenant: &str, kind: &str, value: &str) -> Self {
        debug_assert!(!tenant.contains(SEPARATOR), "a tenant that was not validated");
        let mut key = String::with_capacity(tenant.len() + kind.len() + value.len() + 2);
        key.push_str(tenant);
        key.push(SEPARATOR);
        key.push_str(kind);
        key.push(SEPARATOR);
        key.push_str(value);
        IdentityKey(key)
    }

    /// The bounds between which the keys of a tenant lie: the first may be one, the second is none.
    pub fn range(tenant: &str) -> [String; 2] {
        // The character after the separator.
        let next = char::from(SEPARATOR as u8 + 1);
        [format!("{tenant}{SEPARATOR}"), format!("{tenant}{next}")]
    }

    /// The key as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The key as text, taken out.
    pub fn into_string(self) -> String {
        self.0
    }

    /// Tenant, kind word and value. The kind word is that of a [`Kind`](super::Kind), or
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

    /// Whether this is the key that `guard` reserves, in whichever tenant.
    pub fn is_of_guard(&self, guard: &Guard) -> bool {
        let (_, kind, value) = self.parts();
        kind == guard.kind_word() && value == guard.skeleton()
    }

    /// Whether this is the key of `identifier`, in whichever tenant.
    pub fn is_of(&self, identifier: &Identifier) -> bool {
        let (_, kind, value) = self.parts();
        kind == identifier.kind().as_str() && value == identifier.canonical()
    }
}

/// Shows tenant and kind word alone: values are personal data.
impl fmt::Debug for IdentityKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (tenant, kind, _) = self.parts();
        write!(f, "IdentityKey({tenant}, {kind}, …)")
    }
}
