//! The tenants of a store, their keys and the names of their attributes.

use async_trait::async_trait;

use crate::error::Error;
use crate::model::record::Hold;
use crate::model::tenant::Tenant;
use crate::model::tenant_record::TenantRecord;
use polynym_identifier::IdentityKey;

/// Tenants, their keys and the names of their attributes.
#[async_trait]
pub trait Tenants: Send + Sync + 'static {
    /// The tenant with this name.
    ///
    /// # Errors
    /// [`Error::Unavailable`] where the store does not answer.
    async fn tenant(&self, name: &Tenant) -> Result<Option<TenantRecord>, Error>;

    /// Tenants in the order of their names: those after `after` whose names start with `prefix`, at
    /// most `limit`.
    ///
    /// # Errors
    /// [`Error::Unavailable`] where the store does not answer.
    async fn tenants(
        &self,
        prefix: &str,
        after: &str,
        limit: usize,
    ) -> Result<Vec<TenantRecord>, Error>;

    /// Keys of `tenant` under which something stands, in any order, at most `limit`.
    ///
    /// # Errors
    /// [`Error::Unavailable`] where the store does not answer.
    async fn keys(&self, tenant: &Tenant, limit: usize) -> Result<Vec<IdentityKey>, Error>;

    /// Holds of `tenant` on keys whose owner was purged, in the order of their keys: those after
    /// `after`, at most `limit`.
    ///
    /// # Errors
    /// [`Error::Unavailable`] where the store does not answer.
    async fn ownerless_holds(
        &self,
        tenant: &Tenant,
        after: Option<&IdentityKey>,
        limit: usize,
    ) -> Result<Vec<Hold>, Error>;

    /// Names of the attributes of a tenant's users, in the order of their bytes: those after
    /// `after`, at most `limit`. A name stays when no user has it any more.
    ///
    /// # Errors
    /// [`Error::Unavailable`] where the store does not answer.
    async fn attribute_names(
        &self,
        tenant: &Tenant,
        after: &str,
        limit: usize,
    ) -> Result<Vec<String>, Error>;
}
