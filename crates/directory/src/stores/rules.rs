//! The rules of normalisation of a store.

use async_trait::async_trait;

use super::lookups::Consistency;
use super::stored_rules::StoredRules;
use crate::error::Error;

/// The rules of normalisation of a store.
#[async_trait]
pub trait CurrentRules: Send + Sync + 'static {
    /// The store's rules of normalisation, at most a few seconds old: every server learns that
    /// identities will move before they move. [`Consistency::Eventual`] answers may be older.
    ///
    /// # Errors
    /// [`Error::Outdated`] if this program does not support them; [`Error::Unavailable`].
    async fn rules(&self, consistency: Consistency) -> Result<StoredRules, Error>;
}
