//! The advice of the console about errors of the API.

use polynym_client::{Error, Kind};
use polynym_presentation::advice;
pub use polynym_presentation::advice::HIGHER_ROLE;

/// The advice if the server failed.
pub const REPORT: &str = "Try again. If it fails again, give the trace id to an administrator.";
/// The advice if the server is busy.
pub const RETRY: &str = "Try again in a moment.";

/// The advice about an error.
pub fn of(error: &Error) -> &'static str {
    advice::page(error.reason()).unwrap_or_else(|| of_kind(error.kind()))
}

const fn of_kind(kind: Kind) -> &'static str {
    match kind {
        Kind::NotFound => "Check the spelling and the tenant.",
        Kind::PermissionDenied => "Sign in with another credential.",
        Kind::OutcomeUnknown | Kind::DeadlineExceeded => {
            "It may have happened. Send the same form again: it happens once."
        }
        Kind::ResourceExhausted | Kind::Unavailable => RETRY,
        Kind::Internal => REPORT,
        _ => "Correct it and send the form again.",
    }
}
