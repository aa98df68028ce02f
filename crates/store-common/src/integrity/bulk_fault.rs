//! The faults of bulk changes.

use std::fmt;

/// A fault of a bulk change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BulkFault {
    /// A record, by its key as text, that is not the bulk change of the key.
    Unreadable(String),
    /// A bulk change whose tenant does not exist.
    Tenantless(BulkKey),
    /// A bulk change that is stored under another state or time than its own.
    Unscheduled(BulkKey),
    /// A time, in milliseconds, at which servers look in vain for a bulk change.
    StrayTime(i64, BulkKey),
    /// A bulk change whose list lacks users.
    LostUsers(BulkKey),
    /// A list of users of this bulk change, which does not exist or has no list.
    StrayUsers(BulkKey),
}

/// The tenant and the id of a bulk change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BulkKey {
    /// The tenant.
    pub tenant: String,
    /// The id.
    pub id: String,
}

impl BulkKey {
    /// The key of these names.
    pub fn new((tenant, id): (&str, &str)) -> Self {
        Self { tenant: tenant.to_owned(), id: id.to_owned() }
    }
}

impl fmt::Display for BulkKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.tenant, self.id)
    }
}
