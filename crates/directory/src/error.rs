//! Errors, in the cases that a caller can act on.

use std::error::Error as StdError;
use std::iter::successors;
use std::sync::Arc;

use locality_uuid::LocalityId;

use crate::timestamp::Timestamp;

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
        /// The fault and the correct form, without the value itself.
        message: String,
    },
    /// A batch has too many items.
    #[error("a batch may have {limit} items, this one has {count}")]
    BatchTooLarge {
        /// The items that a batch may have.
        limit: usize,
        /// The items of this one.
        count: usize,
    },
    /// An item of a batch no longer fits into its answer.
    #[error("the answer has no room left: ask for this item again")]
    AnswerFull {
        /// The bytes that an answer may have.
        limit: usize,
    },
    /// The identifier has no owner.
    #[error("nobody owns this identifier")]
    IdentityNotFound,
    /// The user does not have the identity that is to be changed.
    #[error("the user does not have this identity")]
    NotOwned,
    /// There is no such user.
    #[error("there is no such user")]
    UserNotFound,
    /// The store cannot be copied.
    #[error("the store is on MongoDB: make backups with its own tools")]
    BackupUnsupported,
    /// The id of an imported user belongs to a user who is not the same.
    #[error("there is a user with this id, and it is not as the line has it")]
    UserExists,
    /// An imported tenant is there with other policies.
    #[error("the tenant is there, with other policies: set those with UpdateTenant")]
    TenantExists,
    /// Another user owns the identifier.
    #[error("another user owns this identifier")]
    IdentityTaken {
        /// The user who owns it.
        owner: LocalityId,
        /// The path of the field that names the identifier.
        field: String,
    },
    /// Another user gave the identifier up a while ago, and can still take it back.
    #[error("this identifier is held for its former owner")]
    IdentityHeld {
        /// Until when.
        until: Timestamp,
        /// The path of the field that names the identifier.
        field: String,
    },
    /// The identifier is confusable with one that has an owner.
    #[error("this identifier looks like another one that is in use")]
    IdentityConfusable {
        /// The path of the field that names the identifier.
        field: String,
    },
    /// The handle, or one that it looks like, is reserved by the tenant.
    #[error("this handle, or one that it looks like, is reserved")]
    IdentityReserved {
        /// The path of the field that names the identifier.
        field: String,
    },
    /// The identifier is not held for anybody.
    #[error("this identifier is not held")]
    NotHeld,
    /// The user is disabled.
    #[error("the user is disabled")]
    UserDisabled,
    /// The user is deleted and cannot be changed.
    #[error("the user is deleted: undelete it first")]
    UserDeleted {
        /// The user.
        user: LocalityId,
    },
    /// The user was merged into another one and cannot be changed.
    #[error("the user was merged into another one: change that one")]
    UserMerged {
        /// The user.
        user: LocalityId,
        /// The one that it was merged into.
        into: LocalityId,
    },
    /// The user is not deleted, so that it cannot be undeleted.
    #[error("the user is not deleted")]
    UserNotDeleted,
    /// The identity is the user's last, which the tenant's policy keeps.
    #[error("the tenant's policy keeps a user's last identity")]
    LastIdentity,
    /// The identity is the primary one of several of its kind, which the tenant's policy keeps.
    #[error(
        "the tenant's policy keeps a primary identity while the user has others of its kind: make \
         another one primary"
    )]
    PrimaryIdentity,
    /// Two users have different values for something that only one of them can keep.
    #[error("both users have values of their own for {}", fields.join(", "))]
    MergeConflict {
        /// The fields, such as `display_name` or `attributes.plan`.
        fields: Vec<String>,
    },
    /// The one user was not merged into the other.
    #[error("the secondary user is not merged into this primary user")]
    NotMerged,
    /// The time in which a merge can be undone is over.
    #[error("the time in which this merge could be undone is over")]
    UndoExpired,
    /// The tenant's identities are being renormalised by another call.
    #[error("another Renormalize of this tenant is under way: wait for its end, or end that call")]
    RenormalizeRunning,
    /// There is no such tenant, and calls do not make one; or it is being deleted.
    #[error("there is no such tenant, or it is being deleted")]
    TenantNotFound,
    /// The tenant has users, and they were not to be deleted with it.
    #[error("the tenant has users: they are deleted with it only where `force` is set")]
    TenantNotEmpty,
    /// The user has changed since the caller read its etag.
    #[error("what is to be changed has changed since: read it again")]
    EtagMismatch,
    /// A user would have too many of something.
    #[error("a user may have {limit} {what}, this would make {count}")]
    TooMany {
        /// The things that are limited, in a few words.
        what: &'static str,
        /// The limit.
        limit: usize,
        /// The number after the mutation.
        count: usize,
    },
    /// The tenant has as many names of attributes as it may have.
    #[error("a tenant may have {limit} different names of attributes, and this would be one more")]
    AttributeNamesFull {
        /// The names that it may have.
        limit: usize,
    },
    /// The store has no index of attributes yet.
    #[error("the store has no index of attributes yet: `polynym store upgrade` makes it")]
    NotSearchable,
    /// The index of an attribute is being changed to what its definition says.
    #[error("the index of an attribute of this search is being changed: try again later")]
    IndexChanging,
    /// The store keeps no inboxes yet.
    #[error("the store has no inboxes yet: `polynym store upgrade` makes them")]
    NoInboxes,
    /// The inbox does not have the notice.
    #[error("the inbox does not have this notice: it was deleted, or is not kept any more")]
    NoticeNotFound {
        /// The path of the field that names the notice.
        field: String,
    },
    /// The history does not reach that far back.
    #[error("the history does not reach back to that time: see the earliest time in the details")]
    HistoryExpired {
        /// The earliest time of which it is known who owned the identifier.
        earliest: Timestamp,
    },
    /// Counters of that resolution are not kept for so long.
    #[error(
        "counters of this resolution are not kept for so long: see the earliest time in the \
         details, or take a coarser resolution"
    )]
    UsageExpired {
        /// The earliest time of which there are counters.
        earliest: Timestamp,
    },
    /// The events after a resume token are gone.
    #[error("the events after this token are gone: list the users again, then watch without one")]
    ResumeExpired,
    /// The store does not tell of its events.
    #[error(
        "the store does not tell of its events: a watch needs the embedded store, or MongoDB as a \
         replica set or behind its own routers"
    )]
    WatchUnsupported,
    /// The request id was used before, for another request.
    #[error("this request_id was used for another request: take a new one")]
    RequestIdReused,
    /// The store has a version that this program does not support. Nothing was written.
    #[error("this server is too old for its store: {0}")]
    Outdated(String),
    /// A hold is over by one clock, and not by the other, or the retention of histories would be
    /// changed at a time that is not certain. Nothing was written.
    #[error(
        "the server's clock differs from the store's: what this depends on, such as whether an \
         identifier is still held, is not known"
    )]
    ClockInDoubt,
    /// Too many mutations wait to be written. Nothing was written.
    #[error("too many mutations wait to be written: try again a little later")]
    Overloaded,
    /// Identities are being moved to other rules of normalisation, or were meanwhile. Nothing was
    /// written.
    #[error("the rules of normalisation are being changed: try again")]
    RulesChanging,
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

/// Why one of several things that were asked for together has no answer. Copies share the cause:
/// each may go to another caller.
#[derive(Clone, Debug, thiserror::Error)]
pub enum ItemError {
    /// The part of the store that has it does not answer.
    #[error("the store does not answer")]
    Unavailable(#[source] SharedCause),
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
            ItemError::Internal(cause) => Self::Internal(Box::new(cause)),
        }
    }
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
    /// A tenant's policy is out of range.
    Policy,
    /// A filter breaks a rule of its language, or exceeds a limit.
    Filter,
    /// A page token is not one that a call gave.
    PageToken,
    /// A resume token is not one that a watch gave.
    ResumeToken,
    /// Another field: its text, time or number is out of range.
    Field,
}

impl Error {
    /// An [`Error::Invalid`].
    pub fn invalid(what: Invalid, field: impl Into<String>, message: impl Into<String>) -> Self {
        Self::Invalid { what, field: field.into(), message: message.into() }
    }

    /// The error and its causes in one line, for the server's log.
    pub fn with_causes(&self) -> String {
        let first: &(dyn StdError + 'static) = self;
        let causes = successors(Some(first), |&cause| cause.source());
        causes.map(ToString::to_string).collect::<Vec<_>>().join(": ")
    }
}
