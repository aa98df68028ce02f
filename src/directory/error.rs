//! What can go wrong, in the cases that a caller can act on.

use std::error::Error as StdError;

use crate::locality::LocalityId;

/// A private cause: for the server's log, never for a caller.
type Cause = Box<dyn StdError + Send + Sync>;

/// Why an operation did not do, or may not have done, what was asked.
///
/// All but [`Error::OutcomeUnknown`] are certain: nothing was written.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A field of the request is malformed.
    #[error("{field}: {message}")]
    Invalid {
        /// Which kind of thing is malformed.
        what: Invalid,
        /// The path of the field, such as `user.identities[2].identifier`.
        field: String,
        /// What is wrong and what would be right, without the value itself.
        message: String,
    },
    /// A batch has too many items.
    #[error("a batch may have {limit} items, this one has {count}")]
    BatchTooLarge {
        /// How many items a batch may have.
        limit: usize,
        /// How many this one has.
        count: usize,
    },
    /// An item of a batch no longer fits into its answer.
    #[error("the answer has no room left: ask for this item again")]
    AnswerFull {
        /// How many bytes an answer may have.
        limit: usize,
    },
    /// Nobody owns the identifier.
    #[error("nobody owns this identifier")]
    IdentityNotFound,
    /// The user does not have the identity that is to be changed.
    #[error("the user does not have this identity")]
    NotOwned,
    /// There is no such user.
    #[error("there is no such user")]
    UserNotFound,
    /// Another user owns the identifier.
    #[error("another user owns this identifier")]
    IdentityTaken {
        /// The user who owns it.
        owner: LocalityId,
        /// The path of the field that names the identifier.
        field: String,
    },
    /// The user has changed since the caller read its etag.
    #[error("the user has changed since: read it again")]
    EtagMismatch,
    /// A user would have too many of something.
    #[error("a user may have {limit} {what}, this would make {count}")]
    TooMany {
        /// What there would be too many of: `identities`, `attributes` or `bytes`.
        what: &'static str,
        /// How many a user may have.
        limit: usize,
        /// How many there would be.
        count: usize,
    },
    /// The request id was used before, for another request.
    #[error("this request_id was used for another request: take a new one")]
    RequestIdReused,
    /// The store is away. Nothing was written.
    #[error("the store does not answer")]
    Unavailable(#[source] Cause),
    /// A write may or may not have happened.
    #[error("it is not known whether this was done: send it again with the same request_id")]
    OutcomeUnknown(#[source] Cause),
    /// A fault of this program or of the stored data. Nothing was written.
    #[error("internal error")]
    Internal(#[source] Cause),
}

/// Which kind of thing in a request is malformed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Invalid {
    /// An identifier breaks a rule of its kind, or is missing.
    Identifier,
    /// The same identifier occurs twice.
    DuplicateIdentifier,
    /// A user's id is not a UUID.
    UserId,
    /// A tenant's name.
    Tenant,
    /// A request id is not a UUID.
    RequestId,
    /// An update mask names a field that cannot be updated.
    UpdateMask,
    /// An attribute's name or value.
    Attribute,
    /// Another field: its text, time or number is out of range.
    Field,
}

impl Error {
    /// An [`Error::Invalid`].
    pub fn invalid(what: Invalid, field: impl Into<String>, message: impl Into<String>) -> Self {
        Self::Invalid { what, field: field.into(), message: message.into() }
    }
}
