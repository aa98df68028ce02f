//! From a directory error to a gRPC status with rich details (AIP-193): one reason for each case,
//! for programs to act on.

use tonic::{Code, Status};
use tonic_types::{ErrorDetails, StatusExt};

use super::convert;
use polynym_directory::error::{Error, Invalid};
use polynym_transport::log_throttle::LogThrottle;
use polynym_transport::rich_status::{detailed, info, internal, retry};

/// The bytes of names that a status lists. They are in its message and its details: clients refuse
/// headers over 8 KiB.
const NAMES_BYTES: usize = 1_536;

/// The status for an error of the directory. Causes that only the operator may see go to the log.
pub fn status(error: Error) -> Status {
    let (code, reason) = (code(&error), reason(&error));
    let message = match &error {
        Error::Invalid { message, .. } => message.clone(),
        Error::MergeConflict { fields } => conflict(fields),
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

    if is_temporary(&error) {
        return retry(code, reason, &message);
    }
    let details = info(reason, metadata(&error));
    match field(&error) {
        Some(field) => at_field(code, field, &message, details),
        None => detailed(code, &message, details),
    }
}

/// Whether a later attempt may succeed as it is.
const fn is_temporary(error: &Error) -> bool {
    matches!(
        error,
        Error::ClockInDoubt
            | Error::Overloaded
            | Error::Unavailable(_)
            | Error::Outdated(_)
            | Error::RulesChanging
    )
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
        _ => None,
    }
}

/// The metadata of the `ErrorInfo`.
fn metadata(error: &Error) -> Vec<(&'static str, String)> {
    match error {
        Error::BatchTooLarge { limit, count } | Error::TooMany { limit, count, .. } => {
            vec![("limit", limit.to_string()), ("value", count.to_string())]
        }
        Error::AnswerFull { limit } | Error::AttributeNamesFull { limit } => {
            vec![("limit", limit.to_string())]
        }
        Error::IdentityTaken { owner, .. } => vec![("owner", owner.to_string())],
        Error::HistoryExpired { earliest } | Error::UsageExpired { earliest } => {
            vec![("earliest", convert::time_text(*earliest))]
        }
        Error::IdentityHeld { until, .. } => vec![("until", convert::time_text(*until))],
        Error::UserDeleted { user } => vec![("user_id", user.to_string())],
        Error::UserMerged { user, into } => {
            vec![("user_id", user.to_string()), ("merged_into", into.to_string())]
        }
        Error::MergeConflict { fields } => {
            let (fields, left) = first(fields, NAMES_BYTES);
            let more = (left > 0).then(|| ("more", left.to_string()));
            [("fields", fields.join(","))].into_iter().chain(more).collect()
        }
        _ => Vec::new(),
    }
}

fn conflict(fields: &[String]) -> String {
    let (fields, left) = first(fields, NAMES_BYTES);
    let more = if left > 0 { format!(" and {left} more") } else { String::new() };
    format!("both users have values of their own for {}{more}", fields.join(", "))
}

const fn code(error: &Error) -> Code {
    match error {
        Error::Invalid { .. } | Error::BatchTooLarge { .. } | Error::RequestIdReused => {
            Code::InvalidArgument
        }
        Error::IdentityNotFound
        | Error::NotOwned
        | Error::UserNotFound
        | Error::NotHeld
        | Error::NoticeNotFound { .. }
        | Error::TenantNotFound => Code::NotFound,
        Error::IdentityTaken { .. }
        | Error::UserExists
        | Error::TenantExists
        | Error::UserNotDeleted => Code::AlreadyExists,
        Error::IdentityHeld { .. }
        | Error::IdentityConfusable { .. }
        | Error::IdentityReserved { .. }
        | Error::UserDisabled
        | Error::UserDeleted { .. }
        | Error::UserMerged { .. }
        | Error::LastIdentity
        | Error::PrimaryIdentity
        | Error::MergeConflict { .. }
        | Error::NotMerged
        | Error::TenantNotEmpty
        | Error::NotSearchable
        | Error::IndexChanging
        | Error::NoInboxes
        | Error::BackupUnsupported
        | Error::UndoExpired => Code::FailedPrecondition,
        Error::EtagMismatch | Error::RenormalizeRunning => Code::Aborted,
        Error::TooMany { .. }
        | Error::AttributeNamesFull { .. }
        | Error::AnswerFull { .. }
        | Error::Overloaded => Code::ResourceExhausted,
        Error::Unavailable(_) | Error::ClockInDoubt | Error::Outdated(_) | Error::RulesChanging => {
            Code::Unavailable
        }
        Error::HistoryExpired { .. } | Error::UsageExpired { .. } | Error::ResumeExpired => {
            Code::OutOfRange
        }
        Error::WatchUnsupported => Code::Unimplemented,
        Error::OutcomeUnknown(_) => Code::Unknown,
        Error::Internal(_) => Code::Internal,
    }
}

/// The reason that programs can rely on.
pub const fn reason(error: &Error) -> &'static str {
    match error {
        Error::Invalid { what, .. } => invalid_reason(*what),
        Error::BatchTooLarge { .. } => "BATCH_TOO_LARGE",
        Error::AnswerFull { .. } => "ANSWER_TOO_LARGE",
        Error::TooMany { .. } => "LIMIT_EXCEEDED",
        Error::AttributeNamesFull { .. } => "ATTRIBUTE_NAMES_FULL",
        Error::NotSearchable | Error::IndexChanging => "INDEX_BUILDING",
        Error::IdentityNotFound | Error::NotOwned => "IDENTITY_NOT_FOUND",
        Error::UserNotFound => "USER_NOT_FOUND",
        Error::BackupUnsupported => "BACKUP_UNSUPPORTED",
        Error::UserExists => "USER_EXISTS",
        Error::TenantExists => "TENANT_EXISTS",
        Error::NotHeld => "HOLD_NOT_FOUND",
        Error::NoticeNotFound { .. } => "NOTICE_NOT_FOUND",
        Error::NoInboxes => "STORE_NOT_UPGRADED",
        Error::TenantNotFound => "TENANT_NOT_FOUND",
        Error::TenantNotEmpty => "TENANT_NOT_EMPTY",
        Error::IdentityTaken { .. } => "IDENTITY_TAKEN",
        Error::IdentityHeld { .. } => "IDENTITY_HELD",
        Error::IdentityConfusable { .. } => "IDENTITY_CONFUSABLE",
        Error::IdentityReserved { .. } => "IDENTITY_RESERVED",
        Error::UserDisabled => "USER_DISABLED",
        Error::UserDeleted { .. } => "USER_DELETED",
        Error::UserMerged { .. } => "USER_MERGED",
        Error::UserNotDeleted => "USER_NOT_DELETED",
        Error::LastIdentity => "LAST_IDENTITY",
        Error::PrimaryIdentity => "PRIMARY_IDENTITY",
        Error::MergeConflict { .. } => "MERGE_CONFLICT",
        Error::NotMerged => "NOT_MERGED",
        Error::RenormalizeRunning => "RENORMALIZE_RUNNING",
        Error::UndoExpired => "UNDO_EXPIRED",
        Error::EtagMismatch => "ETAG_MISMATCH",
        Error::HistoryExpired { .. } => "HISTORY_EXPIRED",
        Error::UsageExpired { .. } => "USAGE_EXPIRED",
        Error::ResumeExpired => "RESUME_EXPIRED",
        Error::WatchUnsupported => "WATCH_UNSUPPORTED",
        Error::RequestIdReused => "REQUEST_ID_REUSED",
        Error::ClockInDoubt => "CLOCK_IN_DOUBT",
        Error::Overloaded => "OVERLOADED",
        Error::Unavailable(_) => "STORE_UNAVAILABLE",
        Error::Outdated(_) => "SERVER_OUTDATED",
        Error::RulesChanging => "RULES_CHANGING",
        Error::OutcomeUnknown(_) => "OUTCOME_UNKNOWN",
        Error::Internal(_) => "INTERNAL",
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

fn at_field(code: Code, field: &str, message: &str, mut details: ErrorDetails) -> Status {
    details.add_bad_request_violation(field, message);
    Status::with_error_details(code, format!("{field}: {message}"), details)
}

/// Those of `names` that have room in so many bytes, and how many are left.
fn first(names: &[String], bytes: usize) -> (&[String], usize) {
    let mut taken = 0;
    let fits = |name: &&String| {
        taken += name.len() + 2;
        taken <= bytes
    };
    let count = names.iter().take_while(fits).count();
    (&names[..count], names.len() - count)
}

/// The throttles of log lines, one for each kind of failure.
static UNAVAILABLE: LogThrottle = LogThrottle::new();
static OUTCOME_UNKNOWN: LogThrottle = LogThrottle::new();
static INTERNAL: LogThrottle = LogThrottle::new();

fn log(pace: &LogThrottle, cause: &(dyn std::error::Error + 'static), message: &str) {
    let Some(suppressed) = pace.step() else { return };
    let causes: Vec<_> = std::iter::successors(Some(cause), |cause| cause.source())
        .map(ToString::to_string)
        .collect();
    tracing::error!(cause = %causes.join(": "), suppressed, "{message}");
}
