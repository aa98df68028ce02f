//! Converts directory errors to gRPC statuses with rich details (AIP-193): one reason for each
//! error, for programs to act on.

use tonic::{Code, Status};
use tonic_types::{ErrorDetails, StatusExt};

use super::convert;
use polynym_directory::error::{BulkError, Error, Invalid, NotUndone};
use polynym_transport::log_throttle::LogThrottle;
use polynym_transport::rich_status::{detailed, info, internal, retry};

/// The bytes of field names in a status, which lists them in its message and in its details:
/// clients refuse headers over 8 KiB.
const FIELDS_BYTES: usize = 1_536;

/// The status of an error. Logs the causes that only operators may see.
pub fn status(error: Error) -> Status {
    let (code, reason) = code_and_reason(&error);
    let message = match &error {
        Error::Invalid { message, .. } => message.clone(),
        Error::MergeConflict { fields } => conflict_message(fields),
        error => error.to_string(),
    };
    match &error {
        Error::Unavailable(cause) => log(&UNAVAILABLE, &**cause, &message),
        Error::OutcomeUnknown(cause) => log(&OUTCOME_UNKNOWN, &**cause, &message),
        Error::Internal(cause) => {
            log(&INTERNAL, &**cause, &message);
            return internal();
        }
        _ => {}
    }

    if code == Code::Unavailable || matches!(error, Error::Overloaded) {
        return retry(code, reason, &message);
    }
    let details = info(reason, metadata(&error));
    match field(&error) {
        Some(field) => at_field(code, field, &message, details),
        None => detailed(code, &message, details),
    }
}

/// The field of the request that the error is about.
fn field(error: &Error) -> Option<&str> {
    match error {
        Error::Invalid { field, .. }
        | Error::IdentityTaken { field, .. }
        | Error::IdentityHeld { field, .. }
        | Error::IdentityConfusable { field }
        | Error::IdentityReserved { field }
        | Error::NoticeNotFound { field } => Some(field),
        Error::HistoryExpired { .. } => Some("as_of"),
        Error::UsageExpired { .. } => Some("from"),
        Error::ResumeExpired => Some("resume_token"),
        Error::RequestIdReused => Some("request_id"),
        Error::Bulk(BulkError::NotFound | BulkError::Exists) => Some("bulk_id"),
        _ => None,
    }
}

/// The metadata of the `ErrorInfo`.
fn metadata(error: &Error) -> Vec<(&'static str, String)> {
    match error {
        Error::BatchTooLarge { limit, count } | Error::TooMany { limit, count, .. } => {
            vec![("limit", limit.to_string()), ("value", count.to_string())]
        }
        Error::AnswerFull { limit }
        | Error::AttributeNamesFull { limit }
        | Error::Bulk(BulkError::TooMany { limit }) => {
            vec![("limit", limit.to_string())]
        }
        Error::IdentityTaken { owner, .. } => vec![("owner", owner.to_string())],
        Error::HistoryExpired { earliest } | Error::UsageExpired { earliest } => {
            vec![("earliest", convert::time_text(*earliest))]
        }
        Error::IdentityHeld { until, .. } => vec![("until", convert::time_text(*until))],
        Error::UserDeleted { user }
        | Error::MergeDamaged { user }
        | Error::PrimaryMissing { user } => {
            vec![("user_id", user.to_string())]
        }
        Error::UserMerged { user, into } => {
            vec![("user_id", user.to_string()), ("merged_into", into.to_string())]
        }
        Error::MergeConflict { fields } => {
            let (listed, omitted) = split_listed(fields);
            let more = (omitted > 0).then(|| ("more", omitted.to_string()));
            [("fields", listed.join(","))].into_iter().chain(more).collect()
        }
        _ => Vec::new(),
    }
}

fn conflict_message(fields: &[String]) -> String {
    let (listed, omitted) = split_listed(fields);
    let more = if omitted > 0 { format!(" and {omitted} more") } else { String::new() };
    format!("the users have different values for {}{more}", listed.join(", "))
}

/// The reason that programs can rely on.
pub const fn reason(error: &Error) -> &'static str {
    code_and_reason(error).1
}

const fn code_and_reason(error: &Error) -> (Code, &'static str) {
    match error {
        Error::Invalid { what, .. } => (Code::InvalidArgument, invalid_reason(*what)),
        Error::BatchTooLarge { .. } => (Code::InvalidArgument, "BATCH_TOO_LARGE"),
        Error::RequestIdReused => (Code::InvalidArgument, "REQUEST_ID_REUSED"),
        Error::IdentityNotFound | Error::NotOwned => (Code::NotFound, "IDENTITY_NOT_FOUND"),
        Error::UserNotFound => (Code::NotFound, "USER_NOT_FOUND"),
        Error::NotHeld => (Code::NotFound, "HOLD_NOT_FOUND"),
        Error::NoticeNotFound { .. } => (Code::NotFound, "NOTICE_NOT_FOUND"),
        Error::TenantNotFound => (Code::NotFound, "TENANT_NOT_FOUND"),
        Error::Bulk(error) => bulk_code_and_reason(*error),
        Error::IdentityTaken { .. } => (Code::AlreadyExists, "IDENTITY_TAKEN"),
        Error::UserExists => (Code::AlreadyExists, "USER_EXISTS"),
        Error::LineAmbiguous { .. } => (Code::FailedPrecondition, "LINE_AMBIGUOUS"),
        Error::NotUndone(why) => (Code::FailedPrecondition, not_undone_reason(*why)),
        Error::TenantExists => (Code::AlreadyExists, "TENANT_EXISTS"),
        Error::UserNotDeleted => (Code::AlreadyExists, "USER_NOT_DELETED"),
        Error::IdentityHeld { .. } => (Code::FailedPrecondition, "IDENTITY_HELD"),
        Error::IdentityConfusable { .. } => (Code::FailedPrecondition, "IDENTITY_CONFUSABLE"),
        Error::IdentityReserved { .. } => (Code::FailedPrecondition, "IDENTITY_RESERVED"),
        Error::UserDisabled => (Code::FailedPrecondition, "USER_DISABLED"),
        Error::UserDeleted { .. } => (Code::FailedPrecondition, "USER_DELETED"),
        Error::UserMerged { .. } => (Code::FailedPrecondition, "USER_MERGED"),
        Error::LastIdentity => (Code::FailedPrecondition, "LAST_IDENTITY"),
        Error::PrimaryIdentity => (Code::FailedPrecondition, "PRIMARY_IDENTITY"),
        Error::MergeConflict { .. } => (Code::FailedPrecondition, "MERGE_CONFLICT"),
        Error::NotMerged => (Code::FailedPrecondition, "NOT_MERGED"),
        Error::UndoExpired => (Code::FailedPrecondition, "UNDO_EXPIRED"),
        Error::PrimaryMissing { .. } => (Code::FailedPrecondition, "PRIMARY_MISSING"),
        Error::MergeDamaged { .. } => (Code::FailedPrecondition, "MERGE_DAMAGED"),
        Error::TenantNotEmpty => (Code::FailedPrecondition, "TENANT_NOT_EMPTY"),
        Error::IndexChanging => (Code::FailedPrecondition, "INDEX_BUILDING"),
        Error::BackupUnsupported => (Code::FailedPrecondition, "BACKUP_UNSUPPORTED"),
        Error::EtagMismatch => (Code::Aborted, "ETAG_MISMATCH"),
        Error::RenormalizeRunning => (Code::Aborted, "RENORMALIZE_RUNNING"),
        Error::TooMany { .. } => (Code::ResourceExhausted, "LIMIT_EXCEEDED"),
        Error::AttributeNamesFull { .. } => (Code::ResourceExhausted, "ATTRIBUTE_NAMES_FULL"),
        Error::AnswerFull { .. } => (Code::ResourceExhausted, "ANSWER_TOO_LARGE"),
        Error::Overloaded => (Code::ResourceExhausted, "OVERLOADED"),
        Error::DiskFull => (Code::ResourceExhausted, "DISK_FULL"),
        Error::Unavailable(_) => (Code::Unavailable, "STORE_UNAVAILABLE"),
        Error::ClockInDoubt => (Code::Unavailable, "CLOCK_IN_DOUBT"),
        Error::Outdated(_) => (Code::Unavailable, "SERVER_OUTDATED"),
        Error::RulesChanging => (Code::Unavailable, "RULES_CHANGING"),
        Error::HistoryExpired { .. } => (Code::OutOfRange, "HISTORY_EXPIRED"),
        Error::UsageExpired { .. } => (Code::OutOfRange, "USAGE_EXPIRED"),
        Error::ResumeExpired => (Code::OutOfRange, "RESUME_EXPIRED"),
        Error::WatchUnsupported => (Code::Unimplemented, "WATCH_UNSUPPORTED"),
        Error::OutcomeUnknown(_) => (Code::Unknown, "OUTCOME_UNKNOWN"),
        Error::Internal(_) => (Code::Internal, "INTERNAL"),
    }
}

const fn bulk_code_and_reason(error: BulkError) -> (Code, &'static str) {
    match error {
        BulkError::NotFound => (Code::NotFound, "BULK_CHANGE_NOT_FOUND"),
        BulkError::Exists => (Code::AlreadyExists, "BULK_CHANGE_EXISTS"),
        BulkError::Running => (Code::FailedPrecondition, "BULK_CHANGE_RUNNING"),
        BulkError::Undoing => (Code::FailedPrecondition, "BULK_CHANGE_UNDOING"),
        BulkError::TooMany { .. } => (Code::ResourceExhausted, "TOO_MANY_BULK_CHANGES"),
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

fn at_field(code: Code, field: &str, message: &str, mut details: ErrorDetails) -> Status {
    details.add_bad_request_violation(field, message);
    Status::with_error_details(code, format!("{field}: {message}"), details)
}

/// The first fields, up to [`FIELDS_BYTES`], and the number of the others.
fn split_listed(fields: &[String]) -> (&[String], usize) {
    let mut bytes = 0;
    let fits = |field: &&String| {
        bytes += field.len() + 2;
        bytes <= FIELDS_BYTES
    };
    let count = fields.iter().take_while(fits).count();
    (&fields[..count], fields.len() - count)
}

/// The log throttles, one for each kind of failure.
static UNAVAILABLE: LogThrottle = LogThrottle::new();
static OUTCOME_UNKNOWN: LogThrottle = LogThrottle::new();
static INTERNAL: LogThrottle = LogThrottle::new();

fn log(throttle: &LogThrottle, cause: &(dyn std::error::Error + 'static), message: &str) {
    let Some(suppressed) = throttle.step() else { return };
    let causes: Vec<_> = std::iter::successors(Some(cause), |cause| cause.source())
        .map(ToString::to_string)
        .collect();
    tracing::error!(cause = %causes.join(": "), suppressed, "{message}");
}
