//! A snapshot of a store for exports.

use async_trait::async_trait;
use locality_uuid::LocalityId;

use super::scanned::Scanned;
use crate::encoded::exported_user::ExportedUser;
use crate::error::Error;
use crate::model::record::Hold;
use crate::model::tenant::Tenant;
use crate::model::tenant_record::TenantRecord;
use polynym_identifier::IdentityKey;

/// A snapshot of a store, which shows no later mutations. A store may drop the snapshot: from then
/// on, all methods return none.
#[async_trait]
pub trait ExportSnapshot: Send + Sync {
    /// See [`Tenants::tenant`](super::tenants::Tenants::tenant).
    ///
    /// # Errors
    /// [`Error::Unavailable`] if the store does not answer.
    async fn tenant(&self, name: &Tenant) -> Result<Option<Option<TenantRecord>>, Error>;

    /// Up to `limit` users of `tenant` after `after`, by id.
    ///
    /// # Errors
    /// [`Error::Unavailable`] if the store does not answer.
    async fn scan(
        &self,
        tenant: &Tenant,
        after: Option<LocalityId>,
        limit: usize,
    ) -> Result<Option<Scanned<ExportedUser>>, Error>;

    /// See [`Tenants::ownerless_holds`](super::tenants::Tenants::ownerless_holds).
    ///
    /// # Errors
    /// [`Error::Unavailable`] if the store does not answer.
    async fn ownerless_holds(
        &self,
        tenant: &Tenant,
        after: Option<&IdentityKey>,
        limit: usize,
    ) -> Result<Option<Vec<Hold>>, Error>;
}
