//! Reads that are neither cached nor shared.

use async_trait::async_trait;
use locality_uuid::LocalityId;

use super::lookups::ItemResult;
use crate::encoded::encoded_user::EncodedUser;
use crate::error::Error;
use crate::model::claim::Claim;
use crate::model::tenant::Tenant;
use crate::model::view::View;
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

    /// Checks that the store can answer reads and accept mutations.
    ///
    /// # Errors
    /// [`Error::Unavailable`] if it cannot.
    async fn check(&self) -> Result<(), Error>;
}
