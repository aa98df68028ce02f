//! Reads of bulk changes. Mutations write them.

use async_trait::async_trait;
use locality_uuid::LocalityId;

use crate::error::Error;
use crate::model::bulk::change::BulkChange;
use crate::model::tenant::Tenant;
use crate::timestamp::Timestamp;

/// The tenant and the id of a bulk change.
pub type BulkChangeKey = (Tenant, String);

/// A running bulk change that a server may take.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DueBulkChange {
    /// Its tenant and id.
    pub key: BulkChangeKey,
    /// The caller for whom it runs.
    pub caller: String,
}

impl From<BulkChange> for DueBulkChange {
    fn from(change: BulkChange) -> Self {
        Self { key: (change.tenant, change.id), caller: change.caller }
    }
}

/// The bulk changes of tenants.
#[async_trait]
pub trait BulkChanges: Send + Sync + 'static {
    /// The bulk change of a tenant with this id.
    ///
    /// # Errors
    /// [`Error::Unavailable`] if the store does not answer.
    async fn bulk_change(&self, tenant: &Tenant, id: &str) -> Result<Option<BulkChange>, Error>;

    /// The users of a batch of the list of a bulk change, counted from 0; none if it is not there.
    ///
    /// # Errors
    /// [`Error::Unavailable`] if the store does not answer.
    async fn listed_users(
        &self,
        tenant: &Tenant,
        id: &str,
        batch: u32,
    ) -> Result<Vec<LocalityId>, Error>;

    /// All bulk changes of a tenant that can be read, in any order.
    ///
    /// # Errors
    /// [`Error::Unavailable`] if the store does not answer.
    async fn bulk_changes(&self, tenant: &Tenant) -> Result<Vec<BulkChange>, Error>;

    /// Up to `limit` running bulk changes of all tenants whose [`BulkChange::due_time`] is not
    /// after `now`, by that time. Those that cannot be read do not count.
    ///
    /// # Errors
    /// [`Error::Unavailable`] if the store does not answer.
    async fn due_bulk_changes(
        &self,
        now: Timestamp,
        limit: usize,
    ) -> Result<Vec<DueBulkChange>, Error>;

    /// Up to `limit` bulk changes of all tenants that have ended, and whose
    /// [`BulkChange::due_time`] is not after `now`, by that time.
    ///
    /// # Errors
    /// [`Error::Unavailable`] if the store does not answer.
    async fn expired_bulk_changes(
        &self,
        now: Timestamp,
        limit: usize,
    ) -> Result<Vec<BulkChangeKey>, Error>;

    /// Removes the bulk changes of a tenant that is being deleted.
    ///
    /// # Errors
    /// [`Error::Unavailable`] if nothing was removed; [`Error::OutcomeUnknown`].
    async fn remove_bulk_changes(&self, tenant: &Tenant) -> Result<(), Error>;
}
