//! Events of a tenant itself: changes of its policies, its deletion, and purges of its users. They
//! have no personal data.

use locality_uuid::LocalityId;

use super::event::Origin;
use super::policies::Policies;
use super::tenant::Tenant;
use crate::timestamp::Timestamp;

/// An event of a tenant.
#[derive(Clone, Debug, PartialEq)]
pub struct TenantEvent {
    /// The tenant.
    pub tenant: Tenant,
    /// A number that grows with each event of the tenant. Assigned by the store when it writes the
    /// event; 0 before.
    pub sequence: u64,
    /// The time of the mutation.
    pub time: Timestamp,
    /// The call that requested it.
    pub origin: Origin,
    /// The kind of the event, with its details.
    pub kind: TenantEventKind,
}

/// The kinds of events of a tenant, with their details.
#[derive(Clone, Debug, PartialEq)]
pub enum TenantEventKind {
    /// The tenant was created, with these policies.
    Created(Box<Policies>),
    /// Its policies changed.
    PoliciesChanged {
        /// The policies before.
        before: Box<Policies>,
        /// The policies after.
        after: Box<Policies>,
    },
    /// It was marked for deletion.
    DeletionBegun {
        /// Whether its users are deleted with it.
        with_users: bool,
    },
    /// The deletion was cancelled: the tenant had users.
    DeletionCancelled,
    /// It was removed.
    Deleted {
        /// Whether its users were deleted with it.
        with_users: bool,
    },
    /// This user was purged.
    UserPurged(LocalityId),
}
