//! Reads that are neither cached nor shared.

use async_trait::async_trait;
use locality_uuid::LocalityId;

use super::histories::History;
use super::lookups::ItemResult;
use crate::encoded::encoded_user::EncodedUser;
use crate::error::Error;
use crate::model::claim::Claim;
use crate::model::ownership::EndedOwnerships;
use crate::model::tenant::Tenant;
use crate::stores::PageLimit;
use crate::view::View;
use polynym_identifier::IdentityKey;

/// Reads that are neither cached nor shared.
#[async_trait]
pub trait Reads: Send + Sync + 'static {
    /// Users in one snapshot. If an earlier [`get`](super::lookups::LookUps::get) showed a part of
    /// a mutation, the snapshot shows all of it, even if the users are on several servers. May stop
    /// early, as [`resolve`](super::lookups::LookUps::resolve) may.
    ///
    /// # Errors
    /// [`Error::Unavailable`] if the store does not answer. An error of one user is the answer to
    /// its id.
    async fn get_snapshot(
        &self,
        tenant: &Tenant,
        ids: &[LocalityId],
        view: View,
    ) -> Result<Vec<ItemResult<EncodedUser>>, Error>;

    /// The claims of `keys`, in order, including those that do not resolve or whose hold has
    /// expired.
    ///
    /// # Errors
    /// [`Error::Unavailable`] if the store does not answer.
    async fn claims(&self, keys: &[IdentityKey]) -> Result<Vec<Option<Claim>>, Error>;

    /// Begins reads that follow links from one record to another.
    ///
    /// # Errors
    /// [`Error::Unavailable`] if the store does not answer.
    async fn in_order(&self) -> Result<Box<dyn OrderedReads + '_>, Error>;

    /// Checks that the store can answer reads and accept mutations.
    ///
    /// # Errors
    /// [`Error::Unavailable`] if it cannot.
    async fn check(&self) -> Result<(), Error>;
}

/// Reads in order: each sees at least what those before it have seen, even if the records are on
/// several servers. So a read never shows one record after a mutation, and a later read another
/// record before the same mutation.
#[async_trait]
pub trait OrderedReads: Send {
    /// See [`Reads::claims`].
    ///
    /// # Errors
    /// [`Error::Unavailable`] if the store does not answer.
    async fn claims(&mut self, keys: &[IdentityKey]) -> Result<Vec<Option<Claim>>, Error>;

    /// See [`Histories::ended_ownerships`](super::histories::Histories::ended_ownerships).
    ///
    /// # Errors
    /// [`Error::Unavailable`] if the store does not answer.
    async fn ended_ownerships(
        &mut self,
        keys: &[IdentityKey],
    ) -> Result<Vec<EndedOwnerships>, Error>;

    /// See [`LookUps::get`](super::lookups::LookUps::get).
    ///
    /// # Errors
    /// [`Error::Unavailable`] if the store does not answer. An error of one user is the answer to
    /// its id.
    async fn get(
        &mut self,
        tenant: &Tenant,
        ids: &[LocalityId],
        view: View,
    ) -> Result<Vec<ItemResult<EncodedUser>>, Error>;

    /// See [`Histories::history`](super::histories::Histories::history).
    ///
    /// # Errors
    /// [`Error::Unavailable`] if the store does not answer.
    async fn history(
        &mut self,
        tenant: &Tenant,
        user: LocalityId,
        cursor: Option<u64>,
        limit: PageLimit,
    ) -> Result<Option<History>, Error>;
}
