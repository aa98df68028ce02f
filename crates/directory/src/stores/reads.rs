//! Reads that no cache answers and no other read shares.

use async_trait::async_trait;
use locality_uuid::LocalityId;

use super::lookups::{Consistency, ItemResult};
use super::stored_rules::StoredRules;
use crate::encoded::encoded_user::EncodedUser;
use crate::error::Error;
use crate::model::claim::Claim;
use crate::model::tenant::Tenant;
use crate::model::view::View;
use polynym_identifier::IdentityKey;

/// Reads that no cache answers and no other read shares.
#[async_trait]
pub trait Reads: Send + Sync + 'static {
    /// The rules of normalisation of the store, at most a few seconds old: each server reads that
    /// identities are about to move before they move. [`Consistency::Eventual`] answers may be
    /// older.
    ///
    /// # Errors
    /// [`Error::Outdated`] where this program does not support them; [`Error::Unavailable`].
    async fn rules(&self, consistency: Consistency) -> Result<StoredRules, Error>;

    /// The same users as they all are at one moment. A user that shows to an earlier
    /// [`LookUps::get`](super::lookups::LookUps::get) a part of a mutation shows all of it here,
    /// also where users are on several servers. It may stop early, as
    /// [`LookUps::resolve`](super::lookups::LookUps::resolve) may.
    ///
    /// # Errors
    /// [`Error::Unavailable`] where the store does not answer. A fault of one user is the answer to
    /// that id.
    async fn get_snapshot(
        &self,
        tenant: &Tenant,
        ids: &[LocalityId],
        view: View,
    ) -> Result<Vec<ItemResult<EncodedUser>>, Error>;

    /// The claims under `keys`, in their order, also those that do not resolve or whose hold has
    /// expired.
    ///
    /// # Errors
    /// [`Error::Unavailable`] where the store does not answer.
    async fn claims(&self, keys: &[IdentityKey]) -> Result<Vec<Option<Claim>>, Error>;

    /// Whether the store can answer reads and accept mutations now.
    ///
    /// # Errors
    /// [`Error::Unavailable`] where it cannot.
    async fn check(&self) -> Result<(), Error>;
}
