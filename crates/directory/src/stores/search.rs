//! Searches and scans of the users of a tenant.

use async_trait::async_trait;
use locality_uuid::LocalityId;

use super::export_snapshot::ExportSnapshot;
use crate::error::Error;
use crate::model::record::Record;
use crate::model::tenant::Tenant;
use crate::model::view::View;
use crate::search::{Lead, Position, SearchedUser};

/// Searches and scans of the users of a tenant.
#[async_trait]
pub trait Search: Send + Sync + 'static {
    /// The users of `tenant` that `lead` finds, each once and in the order of the lead: those whose
    /// [position](Lead::position) is after `after`, at most `limit`; fewer only where there are no
    /// more. A user that does not change between two calls is never missed or met twice. In
    /// [`View::Basic`] they come without attributes, unless [the order needs them](Lead::view).
    ///
    /// # Errors
    /// [`Error::Unavailable`] where the store does not answer.
    async fn search(
        &self,
        tenant: &Tenant,
        lead: &Lead,
        after: Option<&Position>,
        limit: usize,
        view: View,
    ) -> Result<Vec<SearchedUser>, Error>;

    /// The index entries that a search by `lead` reads, at most `limit`. A user may have several
    /// entries; there are none only where the lead finds nobody.
    ///
    /// # Errors
    /// [`Error::Unavailable`] where the store does not answer.
    async fn probe(&self, tenant: &Tenant, lead: &Lead, limit: usize) -> Result<usize, Error>;

    /// Users of `tenant` in the order of their ids: those after `after`, at most `limit`.
    ///
    /// # Errors
    /// [`Error::Unavailable`] where the store does not answer.
    async fn scan(
        &self,
        tenant: &Tenant,
        after: Option<LocalityId>,
        limit: usize,
    ) -> Result<Vec<Record>, Error>;

    /// A snapshot of the store for long reads; none if the store has no snapshots.
    ///
    /// # Errors
    /// [`Error::Unavailable`] where the store does not answer.
    async fn snapshot(&self) -> Result<Option<Box<dyn ExportSnapshot>>, Error>;
}
