//! The tenants of a store, their keys and attribute names.

use async_trait::async_trait;

use crate::error::Error;
use crate::model::record::Hold;
use crate::model::tenant::Tenant;
use crate::model::tenant_record::TenantRecord;
use polynym_identifier::IdentityKey;

/// Tenants, their keys and attribute names.
#[async_trait]
pub trait Tenants: Send + Sync + 'static {
    /// The tenant with this name.
    ///
    /// # Errors
    /// [`Error::Unavailable`] if the store does not answer.
    async fn tenant(&self, name: &Tenant) -> Result<Option<TenantRecord>, Error>;

    /// Up to `limit` tenants after `after`, by name, whose names start with `prefix`.
    ///
    /// # Errors
    /// [`Error::Unavailable`] if the store does not answer.
    async fn tenants(
        &self,
        prefix: &str,
        after: &str,
        limit: usize,
    ) -> Result<Vec<TenantRecord>, Error>;

    /// Up to `limit` keys of `tenant` with a claim or a hold, in any order.
    ///
    /// # Errors
    /// [`Error::Unavailable`] if the store does not answer.
    async fn keys(&self, tenant: &Tenant, limit: usize) -> Result<Vec<IdentityKey>, Error>;

    /// Up to `limit` holds of `tenant` after `after`, by key, whose owner was purged.
    ///
    /// # Errors
    /// [`Error::Unavailable`] if the store does not answer.
    async fn ownerless_holds(
        &self,
        tenant: &Tenant,
        after: Option<&IdentityKey>,
        limit: usize,
    ) -> Result<Vec<Hold>, Error>;

    /// Up to `limit` attribute names of a tenant after `after`, in byte order. A name stays even if
    /// no user has it any more.
    ///
    /// # Errors
    /// [`Error::Unavailable`] if the store does not answer.
    async fn attribute_names(
        &self,
        tenant: &Tenant,
        after: &str,
        limit: usize,
    ) -> Result<Vec<String>, Error>;
}
