//! Tenants as stores keep them.

use super::policies::{Policies, PolicyUpdate};
use super::tenant::Tenant;
use crate::model::unknown::Unknown;
use crate::timestamp::Timestamp;
use polynym_identifier::IdentityKey;

/// A tenant as stores keep it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TenantRecord {
    /// Its name.
    pub name: Tenant,
    /// Its rules.
    pub policies: Policies,
    /// The time when it was created. An imported tenant keeps the time of its export.
    pub create_time: Timestamp,
    /// When it was created in this store. Distinguishes a tenant from a deleted one of the same
    /// name.
    pub since: Timestamp,
    /// The time when its policies last changed.
    pub update_time: Timestamp,
    /// Whether it is being deleted.
    pub deletion: Option<Deletion>,
    /// Fields that a newer program added, to the tenant and to its policies.
    pub unknown: [Unknown; 2],
}

impl TenantRecord {
    /// A new tenant with the default policies.
    pub fn new(name: Tenant, now: Timestamp) -> Self {
        Self {
            name,
            policies: Policies::default(),
            create_time: now,
            since: now,
            update_time: now,
            deletion: None,
            unknown: Default::default(),
        }
    }
}

/// A tenant from an export.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ImportedTenant {
    /// All its policies.
    pub policies: PolicyUpdate,
    /// The time when it was created, by default at the time of the import.
    pub create_time: Option<Timestamp>,
    /// The time when its policies last changed, by default at the time of the import.
    pub update_time: Option<Timestamp>,
}

/// The mark of a tenant that is being deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Deletion {
    /// The time when the deletion began.
    pub time: Timestamp,
    /// Whether its users are deleted with it.
    pub with_users: bool,
}

/// A step of deleting a tenant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DeletionStep {
    /// Marks the tenant: nothing in it can be changed any more.
    Begin {
        /// See [`Deletion::with_users`].
        with_users: bool,
    },
    /// Removes the mark.
    Cancel,
    /// Removes the claims of these keys, once the tenant's users are gone.
    RemoveClaims(Vec<IdentityKey>),
    /// Removes the tenant.
    Finish,
}
