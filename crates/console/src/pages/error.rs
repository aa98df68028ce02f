//! The page of a failure: its reason, what to do, and a trace id to copy.

use axum::body::Body;
use http::Response;
use polynym_client::{Error, Kind};

use super::sign_in;
use crate::advice;
use crate::change::problem::sentence;
use crate::prelude::*;

const CHANGE_BY_COMMAND: &str =
    "Change the file by polynym token where it comes from, and distribute it.";

const SEARCH_AGAIN: &str = "Search again, or ask for what was searched for: no address has it, \
    for it may name people. A browser with scripts adds it behind the # of the address, and that \
    link can be passed on.";

#[derive(Template)]
#[template(path = "pages/error.html")]
struct ErrorPage {
    frame: Frame,
    title: &'static str,
    message: String,
    reason: String,
    /// The user who has the identifier, if the caller may know.
    owner: String,
    advice: &'static str,
}

/// The answer to a request that failed: a page, or the way to sign in.
pub fn answer(failure: &Failure, mut frame: Frame) -> Response<Body> {
    if failure.is_without_tenant() {
        frame.tenant.clear();
    }
    if failure.is_signed_out() {
        return redirect(&sign_in::address(frame.base(), &frame.address()));
    }
    page(failure, frame)
}

fn page(failure: &Failure, frame: Frame) -> Response<Body> {
    let call = match failure {
        Failure::Call(error) => Some(error),
        _ => None,
    };
    let (title, advice) = texts(failure);
    let page = ErrorPage {
        title,
        message: message(failure),
        reason: call.map(|error| error.reason().to_owned()).unwrap_or_default(),
        owner: call.and_then(|error| error.owner()).unwrap_or_default().to_owned(),
        advice,
        frame,
    };
    render_with_status(&page, failure.status())
}

fn message(failure: &Failure) -> String {
    match failure {
        Failure::Call(error) => sentence(error),
        Failure::RoleTooLow(role) => {
            format!("This page needs the role {role}: your credential has a lower one.")
        }
        Failure::TenantsTooFew => {
            "This page is about all tenants, and your credential is limited to some.".to_owned()
        }
        Failure::TenantDenied => "Your credential is not for this tenant.".to_owned(),
        Failure::TooManyStreams => "You already follow events on two pages.".to_owned(),
        Failure::SignedOut => "You are not signed in.".to_owned(),
        Failure::PersonDenied => "People who sign in by a provider change no credentials: a token \
            would stay when somebody leaves."
            .to_owned(),
        Failure::CredentialsFixed(message) => message.clone(),
        Failure::NotFound => "There is no such page.".to_owned(),
        Failure::NoTenant => "There is no such tenant.".to_owned(),
        Failure::WrongAddress => "This page does not understand its address.".to_owned(),
        Failure::Form(message) | Failure::Internal(message) => message.clone(),
        Failure::SearchGone => {
            "The address stands for a search of another session, or of one that has ended."
                .to_owned()
        }
        Failure::Busy => "The console is busy.".to_owned(),
        Failure::FileGone => "Your session does not have this file.".to_owned(),
    }
}

/// The title, and what to do.
fn texts(failure: &Failure) -> (&'static str, &'static str) {
    match failure {
        Failure::Call(error) => (title(error), advice::of(error)),
        Failure::RoleTooLow(_) => ("Not allowed", advice::HIGHER_ROLE),
        Failure::TenantsTooFew => ("Not allowed", "Sign in with a credential of all tenants."),
        Failure::TenantDenied => ("Not allowed", "Choose one of the tenants of your credential."),
        Failure::TooManyStreams => ("Busy", "Close another page of events, or refresh this one."),
        Failure::SignedOut => ("Signed out", "Sign in again."),
        Failure::PersonDenied => ("Not allowed", "Sign in with a token of an admin."),
        Failure::CredentialsFixed(_) => ("Credentials are changed elsewhere", CHANGE_BY_COMMAND),
        Failure::NotFound => ("Not found", "Choose a page from the menu, or search."),
        Failure::NoTenant => ("Not found", "Choose one of the tenants."),
        Failure::WrongAddress => {
            ("Wrong address", "Choose a page from the menu, or follow a link of the page before.")
        }
        Failure::Form(_) => ("That did not work", "Go back and correct it."),
        Failure::Internal(_) => ("The server failed", advice::REPORT),
        Failure::Busy => ("Busy", advice::RETRY),
        Failure::FileGone => (
            "File not found",
            "Upload it again: an import continues where it stopped, and imports no user twice.",
        ),
        Failure::SearchGone => ("Search expired", SEARCH_AGAIN),
    }
}

/// The title of the page of an error.
fn title(error: &Error) -> &'static str {
    match error.kind() {
        Kind::NotFound => "Not found",
        Kind::Aborted => "Somebody else changed this",
        Kind::AlreadyExists => "Taken",
        Kind::PermissionDenied => "Not allowed",
        Kind::ResourceExhausted if error.retry_after().is_none() => "Too many",
        Kind::ResourceExhausted | Kind::Unavailable => "Busy",
        Kind::DeadlineExceeded | Kind::OutcomeUnknown => "No answer in time",
        _ => "That did not work",
    }
}
