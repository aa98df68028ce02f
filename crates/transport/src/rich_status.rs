//! gRPC statuses with rich details (AIP-193): a reason for programs, and a message for people.

use std::collections::HashMap;
use std::time::Duration;

use tonic::{Code, Status};
use tonic_types::{ErrorDetails, StatusExt};

/// The `domain` of every `ErrorInfo`.
const DOMAIN: &str = "polynym";

/// The default delay before a retry.
const RETRY_DELAY: Duration = Duration::from_secs(1);

/// The steps of delays. Headers that repeat are sent by their number (HPACK, RFC 7541), so that
/// many refusals cost little.
const DELAY_STEP: Duration = Duration::from_millis(100);

/// The status for a bug of this program.
pub fn internal() -> Status {
    plain(Code::Internal, "INTERNAL", "internal error")
}

/// A status with a reason only.
pub fn plain(code: Code, reason: &str, message: &str) -> Status {
    detailed(code, message, info(reason, []))
}

/// A status with these details.
pub fn detailed(code: Code, message: &str, details: ErrorDetails) -> Status {
    Status::with_error_details(code, message, details)
}

/// A status with the default retry delay.
pub fn retry(code: Code, reason: &str, message: &str) -> Status {
    retry_after(code, reason, message, RETRY_DELAY)
}

/// A status with this retry delay, rounded up to tenths of a second.
pub fn retry_after(code: Code, reason: &str, message: &str, delay: Duration) -> Status {
    let mut details = info(reason, []);
    let steps = u32::try_from(delay.as_nanos().div_ceil(DELAY_STEP.as_nanos()));
    details.set_retry_info(Some(steps.unwrap_or(u32::MAX) * DELAY_STEP));
    Status::with_error_details(code, message, details)
}

/// A status for a value beyond a limit.
pub fn limited(code: Code, reason: &str, message: &str, limit: usize, value: usize) -> Status {
    let details = info(reason, [("limit", limit.to_string()), ("value", value.to_string())]);
    Status::with_error_details(code, message, details)
}

/// The `ErrorInfo` of a reason, with metadata.
pub fn info<'n>(
    reason: &str,
    metadata: impl IntoIterator<Item = (&'n str, String)>,
) -> ErrorDetails {
    let metadata: HashMap<_, _> =
        metadata.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
    ErrorDetails::with_error_info(reason, DOMAIN, metadata)
}
