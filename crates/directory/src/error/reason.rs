//! The category and the reason of each error.

use Category::{
    Aborted, AlreadyExists, FailedPrecondition, Internal, InvalidArgument, NotFound, OutOfRange,
    ResourceExhausted, Unavailable, Unimplemented, Unknown,
};

use super::{BulkError, Error, Invalid, NotUndone};

/// The category of an error: a status code of gRPC (gRPC, "Status codes").
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Category {
    /// The request is wrong, whatever the store has.
    InvalidArgument,
    /// The request names something that does not exist.
    NotFound,
    /// The request would create something that exists.
    AlreadyExists,
    /// The state of a user, an identity or a tenant forbids the change.
    FailedPrecondition,
    /// Another call came first: read, and try again.
    Aborted,
    /// A limit is reached.
    ResourceExhausted,
    /// The store does not answer, or not yet: try again.
    Unavailable,
    /// The history of the requested time has been removed.
    OutOfRange,
    /// This store cannot do it.
    Unimplemented,
    /// The outcome is not known.
    Unknown,
    /// A fault of the server.
    Internal,
}

impl Error {
    /// The category, by which callers know whether to try again.
    pub const fn category(&self) -> Category {
        categorize(self).0
    }

    /// The reason, such as `IDENTITY_TAKEN`, which programs rely on.
    pub const fn reason(&self) -> &'static str {
        categorize(self).1
    }
}

const fn categorize(error: &Error) -> (Category, &'static str) {
    match error {
        Error::Invalid { what, .. } => (InvalidArgument, invalid_reason(*what)),
        Error::BatchTooLarge { .. } => (InvalidArgument, "BATCH_TOO_LARGE"),
        Error::RequestIdReused => (InvalidArgument, "REQUEST_ID_REUSED"),
        Error::IdentityNotFound | Error::NotOwned => (NotFound, "IDENTITY_NOT_FOUND"),
        Error::UserNotFound => (NotFound, "USER_NOT_FOUND"),
        Error::NotHeld => (NotFound, "HOLD_NOT_FOUND"),
        Error::NoticeNotFound { .. } => (NotFound, "NOTICE_NOT_FOUND"),
        Error::TenantNotFound => (NotFound, "TENANT_NOT_FOUND"),
        Error::Bulk(error) => categorize_bulk(*error),
        Error::IdentityTaken { .. } => (AlreadyExists, "IDENTITY_TAKEN"),
        Error::UserExists => (AlreadyExists, "USER_EXISTS"),
        Error::LineAmbiguous { .. } => (FailedPrecondition, "LINE_AMBIGUOUS"),
        Error::NotUndone(why) => (FailedPrecondition, not_undone_reason(*why)),
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

const fn categorize_bulk(error: BulkError) -> (Category, &'static str) {
    match error {
        BulkError::NotFound => (NotFound, "BULK_CHANGE_NOT_FOUND"),
        BulkError::Exists => (AlreadyExists, "BULK_CHANGE_EXISTS"),
        BulkError::Running => (FailedPrecondition, "BULK_CHANGE_RUNNING"),
        BulkError::Undoing => (FailedPrecondition, "BULK_CHANGE_UNDOING"),
        BulkError::TooMany { .. } => (ResourceExhausted, "TOO_MANY_BULK_CHANGES"),
    }
}

const fn invalid_reason(what: Invalid) -> &'static str {
    match what {
        Invalid::Identifier => "IDENTIFIER_INVALID",
        Invalid::DuplicateIdentifier => "IDENTIFIER_DUPLICATE",
        Invalid::UserId => "USER_ID_INVALID",
        Invalid::Tenant => "TENANT_INVALID",
        Invalid::RequestId => "REQUEST_ID_INVALID",
        Invalid::UpdateMask => "UPDATE_MASK_INVALID",
        Invalid::Attribute => "ATTRIBUTE_INVALID",
        Invalid::Policy => "POLICY_INVALID",
        Invalid::Filter => "FILTER_INVALID",
        Invalid::PageToken => "PAGE_TOKEN_INVALID",
        Invalid::ResumeToken => "RESUME_TOKEN_INVALID",
        Invalid::Field => "FIELD_INVALID",
    }
}

const fn not_undone_reason(why: NotUndone) -> &'static str {
    match why {
        NotUndone::ChangedSince => "CHANGED_SINCE",
        NotUndone::ValuesNotKept => "VALUES_NOT_KEPT",
    }
}
