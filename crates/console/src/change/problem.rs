//! Why a change was refused, and what can be done.

use std::ops::{Deref, DerefMut};

use http::StatusCode;
use polynym_client::{Client, Error, Kind};
use polynym_proto::v1;
use prost_types::Timestamp;

use crate::advice;
use crate::failure::Failure;
use crate::views::event::EventView;
use crate::views::text::capitalized;
use crate::views::{Time, UserView};

/// The reason why a change was refused.
#[derive(Clone, Debug, Default)]
pub struct Problem(Box<Details>);

/// The fields of a problem.
#[derive(Clone, Debug, Default)]
pub struct Details {
    /// The error message, as a sentence.
    pub message: String,
    /// The reason for programs, such as `IDENTITY_TAKEN`; empty for an error of the form.
    pub reason: String,
    /// The field that it is about; may be empty.
    pub field: String,
    /// The value that the form offers for the field; empty if there is none.
    pub offer: String,
    /// The advice to the person.
    pub advice: &'static str,
    /// The user who owns the identifier.
    pub owner: Option<UserView>,
    /// The end of the hold on the identifier.
    pub until: Option<Time>,
    /// The changes by others since the page was loaded, newest first.
    pub changes: Vec<EventView>,
    /// The identifier, as text.
    pub identifier: String,
    /// The user who was to get it; empty for a new user.
    pub target: String,
    /// The status of the page.
    pub status: StatusCode,
}

impl From<Details> for Problem {
    fn from(details: Details) -> Self {
        Self(Box::new(details))
    }
}

impl Deref for Problem {
    type Target = Details;

    fn deref(&self) -> &Details {
        &self.0
    }
}

impl DerefMut for Problem {
    fn deref_mut(&mut self) -> &mut Details {
        &mut self.0
    }
}

impl Problem {
    /// An error of the form.
    pub fn form(field: &str, message: &str) -> Self {
        Self::from(Details {
            message: message.to_owned(),
            field: field.to_owned(),
            advice: "Correct it and send the form again.",
            status: StatusCode::UNPROCESSABLE_ENTITY,
            ..Details::default()
        })
    }

    /// Offers another value for the field.
    pub fn with_offer(mut self, value: &str) -> Self {
        value.clone_into(&mut self.offer);
        self.advice = "Check it and send the form again.";
        self
    }

    /// The problem of a call that failed; none if a form cannot help. For an identifier that is
    /// taken it has the owner.
    pub async fn of_call(client: &Client, error: &Error) -> Option<Self> {
        if !can_correct(error) {
            return None;
        }
        let owner = match error.owner() {
            Some(id) => get(client, id).await.ok(),
            None => None,
        };
        let until = error.metadata().get("until");
        let until = until.and_then(|text| text.parse::<Timestamp>().ok());
        Some(Self::from(Details {
            message: match error.reason() {
                "ETAG_MISMATCH" => {
                    "You in another tab, or somebody else, changed the user since you opened \
                     the form."
                        .to_owned()
                }
                _ => sentence(error),
            },
            reason: error.reason().to_owned(),
            field: error.field().unwrap_or_default().to_owned(),
            advice: advice::of(error),
            owner: owner.as_ref().map(UserView::of),
            until: Time::of(until.as_ref()),
            status: Failure::Call(error.clone()).status(),
            ..Details::default()
        }))
    }

    /// Names the identifier that it is about, and the user who was to get it.
    pub fn about(mut self, identifier: &str, target: &str) -> Self {
        identifier.clone_into(&mut self.identifier);
        target.clone_into(&mut self.target);
        self
    }

    /// Whether somebody else changed the user since the person saw it.
    pub fn is_stale(&self) -> bool {
        self.reason == "ETAG_MISMATCH"
    }

    /// Whether to send the same form with its request id again: the change may have happened, or
    /// the server was busy.
    pub fn keeps_request_id(&self) -> bool {
        matches!(
            self.status,
            StatusCode::GATEWAY_TIMEOUT
                | StatusCode::SERVICE_UNAVAILABLE
                | StatusCode::TOO_MANY_REQUESTS
        )
    }
}

/// The user with this id, or the one that it was merged into.
pub async fn get(client: &Client, id: &str) -> Result<v1::User, Failure> {
    let request = v1::GetUserRequest { user_id: id.to_owned(), ..Default::default() };
    client.directory().get_user(request).await?.user.ok_or(Failure::NotFound)
}

/// Whether the form can be corrected, or sent again.
fn can_correct(error: &Error) -> bool {
    match error.kind() {
        Kind::NotFound => matches!(error.reason(), "IDENTITY_NOT_FOUND" | "HOLD_NOT_FOUND"),
        Kind::InvalidArgument => error.reason() != "USER_ID_INVALID",
        Kind::AlreadyExists
        | Kind::FailedPrecondition
        | Kind::Aborted
        | Kind::OutOfRange
        | Kind::ResourceExhausted
        | Kind::Unavailable
        | Kind::DeadlineExceeded
        | Kind::OutcomeUnknown => true,
        _ => false,
    }
}

/// The message of an error as a sentence, without the field that it is about.
pub fn sentence(error: &Error) -> String {
    let prefix = error.field().map(|field| format!("{field}: ")).unwrap_or_default();
    as_sentence(error.message().strip_prefix(&prefix).unwrap_or(error.message()))
}

fn as_sentence(message: &str) -> String {
    format!("{}.", capitalized(message.trim_end_matches('.')))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_sentences() {
        assert_eq!(as_sentence("is taken"), "Is taken.");
        assert_eq!(as_sentence(""), ".");
    }
}
