//! Users as they were at one moment.

use async_trait::async_trait;
use locality_uuid::LocalityId;

use crate::encoded::exported_user::ExportedUser;
use crate::error::Error;
use crate::model::record::Hold;
use crate::model::tenant::Tenant;
use crate::model::tenant_record::TenantRecord;
use polynym_identifier::IdentityKey;

/// A store as it was at one moment: later mutations do not show. A store may forget the moment;
/// from then on all methods return none.
#[async_trait]
pub trait ExportSnapshot: Send + Sync {
    /// Whether the store cannot forget the moment.
    fn is_lasting(&self) -> bool;

    /// See [`Tenants::tenant`](super::tenants::Tenants::tenant).
    ///
    /// # Errors
    /// [`Error::Unavailable`] where the store does not answer.
    async fn tenant(&self, name: &Tenant) -> Result<Option<Option<TenantRecord>>, Error>;

    /// Users of `tenant` in the order of their ids: those after `after`, at most `limit`. An empty
    /// list only where there are no more.
    ///
    /// # Errors
    /// [`Error::Unavailable`] where the store does not answer.
    async fn scan(
        &self,
        tenant: &Tenant,
        after: Option<LocalityId>,
        limit: usize,
    ) -> Result<Option<Vec<ExportedUser>>, Error>;

    /// See [`Tenants::ownerless_holds`](super::tenants::Tenants::ownerless_holds).
    ///
    /// # Errors
    /// [`Error::Unavailable`] where the store does not answer.
    async fn ownerless_holds(
        &self,
        tenant: &Tenant,
        after: Option<&IdentityKey>,
        limit: usize,
    ) -> Result<Option<Vec<Hold>>, Error>;
}
