//! The errors that a caller can act on.

mod category;
mod detail;
mod item;

pub use category::Category;
pub use detail::{Blocker, BulkError, DeliveryError, Invalid, NotUndone};
pub use item::ItemError;

use std::error::Error as StdError;
use std::iter::successors;

use locality_uuid::LocalityId;

use crate::timestamp::Timestamp;
use Category::{
    Aborted, AlreadyExists, FailedPrecondition, Internal, InvalidArgument, NotFound, OutOfRange,
    ResourceExhausted, Unavailable, Unimplemented, Unknown,
};

/// A private cause: for the server's log, never for a caller.
type Cause = Box<dyn StdError + Send + Sync>;

/// The reason why an operation failed. Nothing was written, except perhaps with
/// [`Error::OutcomeUnknown`].
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A field of the request is malformed.
    #[error("{field}: {message}")]
    Invalid {
        /// The kind of field.
        what: Invalid,
        /// The path of the field, such as `user.identities[2].identifier`.
        field: String,
        /// The problem and the correct form, without the value.
        message: String,
    },
    /// A batch has too many items.
    #[error("a batch may have {limit} items, this one has {count}")]
    BatchTooLarge {
        /// The limit of items.
        limit: usize,
        /// The items of this batch.
        count: usize,
    },
    /// An item of a batch does not fit into the answer.
    #[error("the answer is full: request this item again")]
    AnswerFull {
        /// The limit of bytes in an answer.
        limit: usize,
    },
    /// The identifier has no owner.
    #[error("nobody owns this identifier")]
    IdentityNotFound,
    /// The user does not have the identity to change.
    #[error("the user does not have this identity")]
    NotOwned,
    /// The user does not exist.
    #[error("there is no such user")]
    UserNotFound,
    /// The store cannot be copied.
    #[error("the store is MongoDB: back it up with MongoDB's own tools")]
    BackupUnsupported,
    /// The id of an imported user belongs to a different user.
    #[error("a different user has this id")]
    UserExists,
    /// The identities of a line of an import belong to several users.
    #[error("the identities of the line belong to different users: name the user_id, or a key")]
    LineAmbiguous {
        /// Two of them.
        users: [LocalityId; 2],
    },
    /// A user cannot be made what it was before an operation.
    #[error("{0}")]
    NotUndone(NotUndone),
    /// An imported tenant exists with other policies.
    #[error("the tenant exists with other policies: change them with UpdateTenant")]
    TenantExists,
    /// Another user owns the identifier.
    #[error("another user owns this identifier")]
    IdentityTaken {
        /// The owner.
        owner: LocalityId,
        /// The path of the field that names the identifier.
        field: String,
    },
    /// Another user gave the identifier up recently, and can still take it back.
    #[error("this identifier is held for its former owner")]
    IdentityHeld {
        /// The end of the hold.
        until: Timestamp,
        /// The path of the field that names the identifier.
        field: String,
    },
    /// The identifier is confusable with another that has an owner.
    #[error("this identifier looks like another one that is in use")]
    IdentityConfusable {
        /// The path of the field that names the identifier.
        field: String,
    },
    /// The tenant reserves the handle, or one that it looks like.
    #[error("this handle, or one that it looks like, is reserved")]
    IdentityReserved {
        /// The path of the field that names the identifier.
        field: String,
    },
    /// The identifier is not held.
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
        /// The user that it was merged into.
        into: LocalityId,
    },
    /// The user cannot be undeleted, because it is not deleted.
    #[error("the user is not deleted")]
    UserNotDeleted,
    /// The tenant's policy protects the last identity of a user.
    #[error("the tenant's policy protects the last identity of a user")]
    LastIdentity,
    /// The tenant's policy protects the primary one of several identities of a kind.
    #[error("the tenant's policy protects the primary identity: make another one primary first")]
    PrimaryIdentity,
    /// Two users to merge have different values for fields.
    #[error("the users have different values for {}", fields.join(", "))]
    MergeConflict {
        /// The fields, such as `display_name` or `attributes.plan`.
        fields: Vec<String>,
    },
    /// The secondary user was not merged into the primary user.
    #[error("the secondary user is not merged into this primary user")]
    NotMerged,
    /// The record of a user names another user that it is not merged with, or a circle of merges,
    /// or its undo data has values that no call can set.
    #[error(
        "the record of this user names a user that it is not merged with, or its undo data is \
         damaged: an operator can repair it with `polynym store verify --repair`"
    )]
    MergeDamaged {
        /// The user.
        user: LocalityId,
    },
    /// An imported user was merged into a user who is not there, or does not list it. A reject of
    /// an import.
    #[error(
        "user {user} was merged into one who is not there or does not list it: import that one \
         with its internals, or purge this one"
    )]
    PrimaryMissing {
        /// The merged user.
        user: LocalityId,
    },
    /// The undo window of a merge is over.
    #[error("the undo window of this merge is over")]
    UndoExpired,
    /// Another call is renormalising the tenant's identities.
    #[error("another Renormalize of this tenant is running: wait until it ends, or cancel it")]
    RenormalizeRunning,
    /// The tenant does not exist, and calls do not create it; or it is being deleted.
    #[error("there is no such tenant, or it is being deleted")]
    TenantNotFound,
    /// The tenant has users, and the call does not delete them.
    #[error("the tenant has users: set `force` to delete them with it")]
    TenantNotEmpty,
    /// The user or tenant was modified since the caller read its etag.
    #[error("etag mismatch: it was modified after this etag was read; read it again")]
    EtagMismatch,
    /// A user would have too many of something.
    #[error("at most {limit} {what} are allowed, this would make {count}")]
    TooMany {
        /// The limited items, in a few words.
        what: &'static str,
        /// The limit.
        limit: usize,
        /// The number after the mutation.
        count: usize,
    },
    /// The tenant has no room for another attribute name.
    #[error("a tenant may have at most {limit} different attribute names")]
    AttributeNamesFull {
        /// The limit of names.
        limit: usize,
    },
    /// The index of an attribute is being built or removed.
    #[error("an index that this search needs is changing: try again later")]
    IndexChanging,
    /// The inbox does not have the notice.
    #[error("the inbox does not have this notice: it was deleted, or has expired")]
    NoticeNotFound {
        /// The path of the field that names the notice.
        field: String,
    },
    /// The history does not go back that far.
    #[error("the history does not go back to that time: see the earliest time in the details")]
    HistoryExpired {
        /// The earliest time for which the owner of the identifier is known.
        earliest: Timestamp,
    },
    /// The counters of that resolution do not go back that far.
    #[error(
        "counters of this resolution do not go back to that time: see the earliest time in the \
         details, or use a coarser resolution"
    )]
    UsageExpired {
        /// The earliest time that has counters.
        earliest: Timestamp,
    },
    /// The events after a resume token are gone.
    #[error("the events after this token are gone: list the users again and start a new watch")]
    ResumeExpired,
    /// The store has no event feed.
    #[error(
        "the store has no event feed: a watch needs the embedded store, or MongoDB as a \
         replica set or behind its own routers"
    )]
    WatchUnsupported,
    /// The request id was used for a different request.
    #[error("this request_id was used for a different request: use a new one")]
    RequestIdReused,
    /// The store has a version that this program does not support. Nothing was written.
    #[error("this server is too old for its store: {0}")]
    Outdated(String),
    /// The outcome depends on the time, which is uncertain: a hold is over by one clock but not by
    /// the other, or the retention of histories would change. Nothing was written.
    #[error(
        "the server's clock differs from the store's: decisions that depend on the time, such as \
         the end of a hold, must wait"
    )]
    ClockInDoubt,
    /// Too many mutations or long calls are in progress. Nothing was written.
    #[error("the server is overloaded: try again shortly")]
    Overloaded,
    /// The disk of the store is nearly full, and the rest of it is for users. Nothing was written.
    #[error("the disk of the store is nearly full: ask its operator to free space")]
    DiskFull,
    /// A bulk change cannot be started, or is not there.
    #[error("{0}")]
    Bulk(BulkError),
    /// A delivery cannot be created, or is not there.
    #[error("{0}")]
    Delivery(DeliveryError),
    /// The rules of normalisation are changing, or changed during the call. Nothing was written.
    #[error("the rules of normalisation are changing: try again")]
    RulesChanging,
    /// The store does not answer. Nothing was written.
    #[error("the store does not answer")]
    Unavailable(#[source] Cause),
    /// A write may have succeeded.
    #[error("this may have succeeded: retry safely with the same request_id")]
    OutcomeUnknown(#[source] Cause),
    /// A fault of this program or of the stored data. Nothing was written.
    #[error("internal error")]
    Internal(#[source] Cause),
}

impl Error {
    /// An [`Error::Invalid`].
    pub fn invalid(what: Invalid, field: impl Into<String>, message: impl Into<String>) -> Self {
        Self::Invalid { what, field: field.into(), message: message.into() }
    }

    /// The category, by which callers know whether to try again.
    pub const fn category(&self) -> Category {
        categorize(self).0
    }

    /// The reason, such as `IDENTITY_TAKEN`, which programs rely on.
    pub const fn reason(&self) -> &'static str {
        categorize(self).1
    }

    /// Whether the error concerns the store, and not what was asked: the same may succeed later.
    pub(crate) const fn is_of_store(&self) -> bool {
        matches!(
            self,
            Self::Overloaded
                | Self::Unavailable(_)
                | Self::Outdated(_)
                | Self::OutcomeUnknown(_)
                | Self::Internal(_)
                | Self::ClockInDoubt
                | Self::DiskFull
                | Self::RulesChanging
        )
    }

    /// The error and its causes in one line, for the server's log.
    pub fn with_causes(&self) -> String {
        let causes = successors(Some(self as &(dyn StdError + 'static)), |&cause| cause.source());
        causes.map(ToString::to_string).collect::<Vec<_>>().join(": ")
    }
}

#[allow(clippy::too_many_lines, reason = "one row for each error")]
const fn categorize(error: &Error) -> (Category, &'static str) {
    match error {
        Error::Invalid { what, .. } => (InvalidArgument, what.reason()),
        Error::BatchTooLarge { .. } => (InvalidArgument, "BATCH_TOO_LARGE"),
        Error::RequestIdReused => (InvalidArgument, "REQUEST_ID_REUSED"),
        Error::IdentityNotFound | Error::NotOwned => (NotFound, "IDENTITY_NOT_FOUND"),
        Error::UserNotFound => (NotFound, "USER_NOT_FOUND"),
        Error::NotHeld => (NotFound, "HOLD_NOT_FOUND"),
        Error::NoticeNotFound { .. } => (NotFound, "NOTICE_NOT_FOUND"),
        Error::TenantNotFound => (NotFound, "TENANT_NOT_FOUND"),
        Error::Bulk(error) => error.categorize(),
        Error::Delivery(error) => error.categorize(),
        Error::IdentityTaken { .. } => (AlreadyExists, "IDENTITY_TAKEN"),
        Error::UserExists => (AlreadyExists, "USER_EXISTS"),
        Error::LineAmbiguous { .. } => (FailedPrecondition, "LINE_AMBIGUOUS"),
        Error::NotUndone(why) => (FailedPrecondition, why.reason()),
        Error::TenantExists => (AlreadyExists, "TENANT_EXISTS"),
        Error::UserNotDeleted => (AlreadyExists, "USER_NOT_DELETED"),
        Error::IdentityHeld { .. } => (FailedPrecondition, "IDENTITY_HELD"),
        Error::IdentityConfusable { .. } => (FailedPrecondition, "IDENTITY_CONFUSABLE"),
        Error::IdentityReserved { .. } => (FailedPrecondition, "IDENTITY_RESERVED"),
        Error::UserDisabled => (FailedPrecondition, "USER_DISABLED"),
        Error::UserDeleted { .. } => (FailedPrecondition, "USER_DELETED"),
        Error::UserMerged { .. } => (FailedPrecondition, "USER_MERGED"),
        Error::LastIdentity => (FailedPrecondition, "LAST_IDENTITY"),
        Error::PrimaryIdentity => (FailedPrecondition, "PRIMARY_IDENTITY"),
        Error::MergeConflict { .. } => (FailedPrecondition, "MERGE_CONFLICT"),
        Error::NotMerged => (FailedPrecondition, "NOT_MERGED"),
        Error::UndoExpired => (FailedPrecondition, "UNDO_EXPIRED"),
        Error::PrimaryMissing { .. } => (FailedPrecondition, "PRIMARY_MISSING"),
        Error::MergeDamaged { .. } => (FailedPrecondition, "MERGE_DAMAGED"),
        Error::TenantNotEmpty => (FailedPrecondition, "TENANT_NOT_EMPTY"),
        Error::IndexChanging => (FailedPrecondition, "INDEX_BUILDING"),
        Error::BackupUnsupported => (FailedPrecondition, "BACKUP_UNSUPPORTED"),
        Error::EtagMismatch => (Aborted, "ETAG_MISMATCH"),
        Error::RenormalizeRunning => (Aborted, "RENORMALIZE_RUNNING"),
        Error::TooMany { .. } => (ResourceExhausted, "LIMIT_EXCEEDED"),
        Error::AttributeNamesFull { .. } => (ResourceExhausted, "ATTRIBUTE_NAMES_FULL"),
        Error::AnswerFull { .. } => (ResourceExhausted, "ANSWER_TOO_LARGE"),
        Error::Overloaded => (ResourceExhausted, "OVERLOADED"),
        Error::DiskFull => (ResourceExhausted, "DISK_FULL"),
        Error::Unavailable(_) => (Unavailable, "STORE_UNAVAILABLE"),
        Error::ClockInDoubt => (Unavailable, "CLOCK_IN_DOUBT"),
        Error::Outdated(_) => (Unavailable, "SERVER_OUTDATED"),
        Error::RulesChanging => (Unavailable, "RULES_CHANGING"),
        Error::HistoryExpired { .. } => (OutOfRange, "HISTORY_EXPIRED"),
        Error::UsageExpired { .. } => (OutOfRange, "USAGE_EXPIRED"),
        Error::ResumeExpired => (OutOfRange, "RESUME_EXPIRED"),
        Error::WatchUnsupported => (Unimplemented, "WATCH_UNSUPPORTED"),
        Error::OutcomeUnknown(_) => (Unknown, "OUTCOME_UNKNOWN"),
        Error::Internal(_) => (Internal, "INTERNAL"),
    }
}
