//! Searches and scans of the users of a tenant.

use async_trait::async_trait;
use locality_uuid::LocalityId;

use super::export_snapshot::ExportSnapshot;
use super::lookups::View;
use crate::error::Error;
use crate::model::record::Record;
use crate::model::tenant::Tenant;
use crate::search::{AccessPath, Position, SearchedUser};

/// Searches and scans of the users of a tenant.
#[async_trait]
pub trait Search: Send + Sync + 'static {
<<<<<<< main
    /// The users of `tenant` that `path` finds, each once and in its order: at most `limit` of those
    /// whose [position](AccessPath::position) is after `after`; fewer only at the end. A user that
    /// does not change between two calls is never missed or repeated. In [`View::Basic`] they come
    /// without attributes, unless [the order needs them](AccessPath::view).
=======
    /// Up to `limit` users of `tenant` that `lead` finds, each once and in the order of the lead,
    /// whose [position](Lead::position) is after `after`; fewer only if there are no more. A user
    /// that does not change between two calls is neither missed nor returned twice.
    /// [`View::Basic`] omits attributes, unless [the order needs them](Lead::view).
>>>>>>> wservice
    ///
    /// # Errors
    /// [`Error::Unavailable`] if the store does not answer.
    async fn search(
        &self,
        tenant: &Tenant,
        path: &AccessPath,
        after: Option<&Position>,
        limit: usize,
        view: View,
    ) -> Result<Vec<SearchedUser>, Error>;

<<<<<<< main
    /// The index entries that a search by `path` reads, at most `limit`. A user may have several
    /// entries; there are none only where the access path finds nobody.
    ///
    /// # Errors
    /// [`Error::Unavailable`] where the store does not answer.
    async fn probe(&self, tenant: &Tenant, path: &AccessPath, limit: usize)
    -> Result<usize, Error>;
=======
    /// The number of index entries that a search by `lead` reads, at most `limit`. A user may have
    /// several entries. Zero only if the lead finds no user.
    ///
    /// # Errors
    /// [`Error::Unavailable`] if the store does not answer.
    async fn probe(&self, tenant: &Tenant, lead: &Lead, limit: usize) -> Result<usize, Error>;
>>>>>>> wservice

    /// Up to `limit` users of `tenant` after `after`, by id.
    ///
    /// # Errors
    /// [`Error::Unavailable`] if the store does not answer.
    async fn scan(
        &self,
        tenant: &Tenant,
        after: Option<LocalityId>,
        limit: usize,
    ) -> Result<Vec<Record>, Error>;

    /// A snapshot of the store for long reads; none if the store has no snapshots.
    ///
    /// # Errors
    /// [`Error::Unavailable`] if the store does not answer.
    async fn snapshot(&self) -> Result<Option<Box<dyn ExportSnapshot>>, Error>;
}
