//! The advice of the console about errors of the API.

use polynym_client::{Error, Kind};

/// The advice if the caller's role is too low.
pub const HIGHER_ROLE: &str = "Sign in with a credential of a higher role.";
/// The advice if the server failed.
pub const REPORT: &str = "Try again. If it fails again, give the trace id to an administrator.";
/// The advice if the server is busy.
pub const RETRY: &str = "Try again in a moment.";

/// The advice about an error.
pub fn of(error: &Error) -> &'static str {
    match error.reason() {
        "IDENTITY_TAKEN" => {
            "Look at its owner. Move the identity, or merge the users if they are one person."
        }
        "IDENTITY_HELD" => "Wait until then, or have an admin release the hold.",
        "IDENTITY_CONFUSABLE" => "Choose one that looks different.",
        "IDENTITY_RESERVED" => "Choose another. The policies of the tenant list them.",
        "IDENTITY_NOT_FOUND" => "The user no longer has it: look at the identities of the user.",
        "LAST_IDENTITY" => "Link another identity first. The policies of the tenant require one.",
        "PRIMARY_IDENTITY" => "Make another one of its kind primary first.",
        "USER_DELETED" => "Restore the user first.",
        "USER_MERGED" => "Open the user that it was merged into.",
        "ETAG_MISMATCH" => {
            "Nothing was changed by you. Apply your change again if it is still right."
        }
        "LIMIT_EXCEEDED" | "ATTRIBUTE_NAMES_FULL" => "Remove something first.",
        "MESSAGE_TOO_LARGE" => "Shorten it.",
        "TOO_MANY_BULK_CHANGES" => "Wait until a bulk change of the tenant ends, or stop one.",
        "REQUEST_ID_REUSED" => "This form did something else before. Send it again to do this.",
        "TENANT_DENIED" => "Choose a tenant of your credential: “Tenants” lists them.",
        "ROLE_DENIED" => HIGHER_ROLE,
        "DISK_FULL" => "The administrator of the server must free space on its disk.",
        _ => of_kind(error.kind()),
    }
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
