//! Leases: the right of one server to do a job.

use locality_uuid::LocalityId;

use crate::timestamp::Timestamp;

/// The right of one server to do a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lease {
    /// The server: a random id of its process.
    pub owner: LocalityId,
    /// The time when another server may take over.
    pub until: Timestamp,
}
