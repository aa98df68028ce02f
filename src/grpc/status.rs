//! From a directory error to a gRPC status with rich details (AIP-193): one reason for each case, for programs to act on.

use std::collections::HashMap;
use std::time::Duration;

use tonic::{Code, Status};
use tonic_types::{ErrorDetails, StatusExt};

use super::pace::Pace;
use crate::directory::{Error, Invalid};

const DOMAIN: &str = "polynym";

/// When to try again where the server or its store is short of something.
const RETRY: Duration = Duration::from_secs(1);

/// The status for an error of the directory. What only the operator may know goes to the log.
pub fn status(error: Error) -> Status {
    let message = error.to_string();
    match error {
        Error::Invalid { what, field, message } => invalid(what, &field, &message),
        Error::BatchTooLarge { limit, count } => {
            limited(Code::InvalidArgument, "BATCH_TOO_LARGE", &message, limit, count)
        }
        Error::TooMany { what: _, limit, count } => {
            limited(Code::ResourceExhausted, "LIMIT_EXCEEDED", &message, limit, count)
        }
        Error::AnswerFull { limit } => {
            let details = info("ANSWER_TOO_LARGE", [("limit", limit.to_string())]);
            Status::with_error_details(Code::ResourceExhausted, message, details)
        }
        Error::IdentityNotFound | Error::NotOwned => plain(Code::NotFound, "IDENTITY_NOT_FOUND", &message),
        Error::UserNotFound => plain(Code::NotFound, "USER_NOT_FOUND", &message),
        Error::IdentityTaken { owner, field } => {
            let mut details = info("IDENTITY_TAKEN", [("owner", owner.to_string())]);
            details.add_bad_request_violation(&field, &message);
            Status::with_error_details(Code::AlreadyExists, format!("{field}: {message}"), details)
        }
        Error::EtagMismatch => plain(Code::Aborted, "ETAG_MISMATCH", &message),
        Error::RequestIdReused => violation("REQUEST_ID_REUSED", "request_id", &message),
        Error::Unavailable(cause) => {
            log(&UNAVAILABLE, &*cause, &message);
            retry(Code::Unavailable, "STORE_UNAVAILABLE", &message)
        }
        Error::OutcomeUnknown(cause) => {
            log(&OUTCOME_UNKNOWN, &*cause, &message);
            plain(Code::Unknown, "OUTCOME_UNKNOWN", &message)
        }
        Error::Internal(cause) => {
            log(&INTERNAL, &*cause, &message);
            internal()
        }
    }
}

/// The status for a request field that is malformed.
pub fn invalid(what: Invalid, field: &str, message: &str) -> Status {
    let reason = match what {
        Invalid::Identifier => "IDENTIFIER_INVALID",
        Invalid::DuplicateIdentifier => "IDENTIFIER_DUPLICATE",
        Invalid::UserId => "USER_ID_INVALID",
        Invalid::Tenant => "TENANT_INVALID",
        Invalid::RequestId => "REQUEST_ID_INVALID",
        Invalid::UpdateMask => "UPDATE_MASK_INVALID",
        Invalid::Attribute => "ATTRIBUTE_INVALID",
        Invalid::Field => "FIELD_INVALID",
    };
    violation(reason, field, message)
}

/// The status for a fault of this program.
pub fn internal() -> Status {
    plain(Code::Internal, "INTERNAL", "internal error")
}

/// A status with a reason and nothing else.
pub fn plain(code: Code, reason: &str, message: &str) -> Status {
    Status::with_error_details(code, message, info(reason, []))
}

/// A status that says when to come again.
pub fn retry(code: Code, reason: &str, message: &str) -> Status {
    let mut details = info(reason, []);
    details.set_retry_info(Some(RETRY));
    Status::with_error_details(code, message, details)
}

/// A status for what is over a limit.
pub fn limited(code: Code, reason: &str, message: &str, limit: usize, value: usize) -> Status {
    let details = info(reason, [("limit", limit.to_string()), ("value", value.to_string())]);
    Status::with_error_details(code, message, details)
}

fn violation(reason: &str, field: &str, message: &str) -> Status {
    let mut details = info(reason, []);
    details.add_bad_request_violation(field, message);
    Status::with_error_details(Code::InvalidArgument, format!("{field}: {message}"), details)
}

fn info<const N: usize>(reason: &str, metadata: [(&str, String); N]) -> ErrorDetails {
    let metadata: HashMap<_, _> = metadata.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
    ErrorDetails::with_error_info(reason, DOMAIN, metadata)
}

/// What has been told of calls that failed in the same way.
static UNAVAILABLE: Pace = Pace::new();
static OUTCOME_UNKNOWN: Pace = Pace::new();
static INTERNAL: Pace = Pace::new();

fn log(pace: &Pace, cause: &(dyn std::error::Error + 'static), message: &str) {
    let Some(untold) = pace.step() else { return };
    let causes: Vec<_> = std::iter::successors(Some(cause), |cause| cause.source()).map(ToString::to_string).collect();
    tracing::error!(cause = %causes.join(": "), untold, "{message}");
}
