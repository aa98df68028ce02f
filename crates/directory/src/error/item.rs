//! The errors of single items of a batch.

use std::error::Error as StdError;
use std::sync::Arc;

use locality_uuid::LocalityId;

use super::Error;

/// The reason why an item of a batch has no answer. Clones share the cause: each may go to another
/// caller.
#[derive(Clone, Debug, thiserror::Error)]
pub enum ItemError {
    /// The part of the store that has the item does not answer.
    #[error("the store does not answer")]
    Unavailable(#[source] SharedCause),
    /// The merges of the user lead in a circle.
    #[error("the merges of this user lead in a circle")]
    MergeDamaged {
        /// The user.
        user: LocalityId,
    },
    /// A fault of this program or of the stored data.
    #[error("internal error")]
    Internal(#[source] SharedCause),
}

/// A private cause of several errors.
type SharedCause = Arc<dyn StdError + Send + Sync>;

impl From<Error> for ItemError {
    fn from(error: Error) -> Self {
        match error {
            Error::Unavailable(cause) => Self::Unavailable(cause.into()),
            Error::Outdated(_) => Self::Unavailable(Arc::new(error)),
            Error::Internal(cause) => Self::Internal(cause.into()),
            other => Self::Internal(Arc::new(other)),
        }
    }
}

impl From<ItemError> for Error {
    fn from(error: ItemError) -> Self {
        match error {
            ItemError::Unavailable(cause) => Self::Unavailable(Box::new(cause)),
            ItemError::MergeDamaged { user } => Self::MergeDamaged { user },
            ItemError::Internal(cause) => Self::Internal(Box::new(cause)),
        }
    }
}
