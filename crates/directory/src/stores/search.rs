//! Searches and scans of the users of a tenant.

use async_trait::async_trait;
use locality_uuid::LocalityId;

use super::export_snapshot::ExportSnapshot;
use super::scanned::Scanned;
use crate::error::Error;
use crate::model::record::Record;
use crate::model::tenant::Tenant;
use crate::search::{AccessPath, Position, SearchedUser};
use crate::view::View;

/// Searches and scans of the users of a tenant.
#[async_trait]
pub trait Search: Send + Sync + 'static {
    /// Up to `limit` users of `tenant` that `path` finds, each once and in the order of the path,
    /// whose [position](AccessPath::position) is after `after`. A user that does not change between
    /// two calls is neither missed nor returned twice. A user that cannot be read may be named for
    /// each of its values. [`View::Basic`] omits attributes, unless
    /// [the order needs them](AccessPath::view).
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
    ) -> Result<Scanned<SearchedUser, Position>, Error>;

    /// The number of index entries that a search by `path` reads, at most `limit`. A user may have
    /// several entries. Zero only if the path finds no user.
    ///
    /// # Errors
    /// [`Error::Unavailable`] if the store does not answer.
    async fn probe(&self, tenant: &Tenant, path: &AccessPath, limit: usize)
    -> Result<usize, Error>;

    /// Those of `words` that names in `tenant` have as a [form](crate::search::Field::NameForm), in
    /// no order: all of them, or those of the names of some users, if many users have such names.
    ///
    /// # Errors
    /// [`Error::Unavailable`] if the store does not answer.
    async fn known_words(&self, tenant: &Tenant, words: &[String]) -> Result<Vec<String>, Error>;

    /// Up to `limit` users of `tenant` after `after`, by id.
    ///
    /// # Errors
    /// [`Error::Unavailable`] if the store does not answer.
    async fn scan(
        &self,
        tenant: &Tenant,
        after: Option<LocalityId>,
        limit: usize,
    ) -> Result<Scanned<Record>, Error>;

    /// A snapshot of the store for long reads; none if the store has no snapshots.
    ///
    /// # Errors
    /// [`Error::Unavailable`] if the store does not answer.
    async fn snapshot(&self) -> Result<Option<Box<dyn ExportSnapshot>>, Error>;
}
