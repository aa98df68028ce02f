//! Why a decision ends early.

use super::ReadRequest;
use crate::error::{Error, NotUndone};

/// The reason why a decision ends early.
pub enum DecideError {
    /// It needs further reads.
    NeedsReads(Box<ReadRequest>),
    /// The mutation is rejected.
    Rejected(Error),
}

impl From<ReadRequest> for DecideError {
    fn from(needs: ReadRequest) -> Self {
        Self::NeedsReads(Box::new(needs))
    }
}

impl From<Error> for DecideError {
    fn from(error: Error) -> Self {
        Self::Rejected(error)
    }
}

impl From<NotUndone> for DecideError {
    fn from(reason: NotUndone) -> Self {
        Self::Rejected(Error::NotUndone(reason))
    }
}
