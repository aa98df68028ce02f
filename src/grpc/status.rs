//! Converts directory errors to gRPC statuses with rich details (AIP-193): one reason for each
//! error, for programs to act on.

use tonic::{Code, Status};
use tonic_types::{ErrorDetails, StatusExt};

use polynym_directory::{BulkError, Category, DeliveryError, Error, timestamp::time_text};
use polynym_transport::log_throttle::LogThrottle;
use polynym_transport::rich_status::{detailed, info, internal, retry};

/// The bytes of field names in a status, which lists them in its message and in its details:
/// clients refuse headers over 8 KiB.
const FIELDS_BYTES: usize = 1_536;

/// The refusal of a call, made by `?` of an error of the directory or of a status.
#[derive(Debug)]
pub struct Refusal(Status);

impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        Self(status(error))
    }
}

impl From<Status> for Refusal {
    fn from(status: Status) -> Self {
        Self(status)
    }
}

impl From<Refusal> for Status {
    fn from(refusal: Refusal) -> Self {
        refusal.0
    }
}

/// The status of an error. Logs the causes that only operators may see.
pub fn status(error: Error) -> Status {
    let (code, reason) = (code(error.category()), error.reason());
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
        Error::Delivery(DeliveryError::NotFound | DeliveryError::Exists) => Some("delivery_id"),
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
        | Error::Bulk(BulkError::TooMany { limit })
        | Error::Delivery(
            DeliveryError::TooMany { limit } | DeliveryError::TooManyHeld { limit },
        ) => {
            vec![("limit", limit.to_string())]
        }
        Error::IdentityTaken { owner, .. } => vec![("owner", owner.to_string())],
        Error::HistoryExpired { earliest } | Error::UsageExpired { earliest } => {
            vec![("earliest", time_text(*earliest))]
        }
        Error::IdentityHeld { until, .. } => vec![("until", time_text(*until))],
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

const fn code(category: Category) -> Code {
    match category {
        Category::InvalidArgument => Code::InvalidArgument,
        Category::NotFound => Code::NotFound,
        Category::AlreadyExists => Code::AlreadyExists,
        Category::FailedPrecondition => Code::FailedPrecondition,
        Category::Aborted => Code::Aborted,
        Category::ResourceExhausted => Code::ResourceExhausted,
        Category::Unavailable => Code::Unavailable,
        Category::OutOfRange => Code::OutOfRange,
        Category::Unimplemented => Code::Unimplemented,
        Category::Unknown => Code::Unknown,
        Category::Internal => Code::Internal,
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
