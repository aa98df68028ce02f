//! A search that was refused: the page has the text as it was typed, and what is wrong with it.

use http::StatusCode;
use polynym_client::Kind;

use crate::advice;
use crate::change::problem::sentence;
use crate::prelude::*;

/// What a role that may not view users finds.
const IDENTIFIERS_ALONE: &str = "With your role, resolver, the box finds people by a whole \
    identifier: an email address, a phone number, a handle, an account or a profile URL.";
const ASK_A_VIEWER: &str =
    "Complete the identifier. Names, parts and filters need the role viewer: ask an admin for it.";

/// Why a search was refused.
#[derive(Clone, Debug)]
pub struct Refusal {
    pub message: String,
    /// The reason for programs; may be empty.
    pub reason: String,
    pub advice: &'static str,
    pub status: StatusCode,
}

impl Refusal {
    /// The refusal of what was typed; none of another failure.
    pub fn of(failure: &Failure) -> Option<Self> {
        let status = failure.status();
        match failure {
            Failure::Call(error) if error.reason() == "ROLE_DENIED" => Some(Self::of_role(status)),
            Failure::RoleTooLow(_) => Some(Self::of_role(status)),
            Failure::Call(error)
                if matches!(error.kind(), Kind::InvalidArgument | Kind::OutOfRange) =>
            {
                Some(Self {
                    message: sentence(error),
                    reason: error.reason().to_owned(),
                    advice: advice::of(error),
                    status,
                })
            }
            _ => None,
        }
    }

    fn of_role(status: StatusCode) -> Self {
        let (message, reason) = (IDENTIFIERS_ALONE.to_owned(), String::new());
        Self { message, reason, advice: ASK_A_VIEWER, status }
    }
}
