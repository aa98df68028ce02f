//! Signing in by a token, and signing out, also at the provider by which somebody signed in. A form
//! that was sent without a session is kept, and sent again after signing in.

use std::sync::Arc;

use axum::Extension;
use axum::body::Body;
use http::header::{AUTHORIZATION, SET_COOKIE};
use http::{HeaderMap, HeaderValue, Response, StatusCode};
use polynym_access::Caller;
use serde::Deserialize;
use url::form_urlencoded;

use super::leaving;
use crate::console::Shared;
use crate::context::{ClientAddress, Context};
use crate::prelude::*;
use crate::render::own_path;
use crate::session::Session;
use crate::views::text::cut;

const INVALID: &str =
    "This token is not valid, or has expired. Paste a whole token, which begins with pn_.";
const METRICS_ONLY: &str =
    "This token is for reading metrics, and opens no console. Paste one of another role.";

#[derive(Template)]
#[template(path = "pages/sign_in.html")]
struct SignInPage {
    frame: Frame,
    next: String,
    /// The fields of a form to send again, encoded.
    kept: String,
    error: &'static str,
    /// The name of the provider by which people sign in; empty for none.
    provider: String,
}

#[derive(Template)]
#[template(path = "pages/resume.html")]
struct ResumePage {
    frame: Frame,
    next: String,
    fields: Vec<(String, String)>,
}

impl ResumePage {
    /// What was typed into the form, without what makes it happen once, and without secrets.
    fn typed(&self) -> impl Iterator<Item = (&str, String)> {
        const HIDDEN: [&str; 6] = ["etag", "request_id", "seen", "base", "secrets", "token"];
        let own = self.fields.iter().filter(|(name, value)| {
            !value.is_empty() && HIDDEN.iter().all(|hidden| !name.starts_with(hidden))
        });
        own.take(MAX_SHOWN).map(|(name, value)| (name.as_str(), cut(value, MAX_SHOWN_CHARS)))
    }
}

/// The fields of a kept form that are shown, and the characters of each.
const MAX_SHOWN: usize = 12;
const MAX_SHOWN_CHARS: usize = 100;

/// Marks the answer to a wrong token.
#[derive(Clone, Copy, Debug)]
pub struct WrongToken;

/// The query of the page.
#[derive(Deserialize)]
pub struct Parameters {
    #[serde(default)]
    next: String,
}

/// The address of the page. It leads to `next` afterwards.
pub fn address(base: &str, next: &str) -> String {
    let query = form_urlencoded::Serializer::new(String::new()).append_pair("next", next).finish();
    format!("{base}/sign-in?{query}")
}

/// The page.
pub async fn page(
    State(shared): State<Arc<Shared>>,
    context: Context,
    Query(Parameters { next }): Query<Parameters>,
) -> Page {
    Ok(form(&shared, context, &next, String::new(), ""))
}

/// The answer to a script that asks for a part of a page, by a session that has ended: the page is
/// loaded again, which leads to signing in.
pub fn instead_of_part() -> Response<Body> {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::UNAUTHORIZED;
    response.headers_mut().insert("hx-refresh", HeaderValue::from_static("true"));
    response
}

/// A form without fields, which is kept all the same.
const NO_FIELDS: &str = "&";

/// The page for a form that was sent without a session, with the form if it is kept. While somebody
/// types, nothing: the page stays until the form is sent.
pub fn with_form(shared: &Shared, context: Context, kept: Option<String>) -> Response<Body> {
    let mut response = match kept {
        _ if context.is_partial => Response::new(Body::empty()),
        Some(kept) => {
            let next = context.path.clone();
            let kept = if kept.is_empty() { NO_FIELDS.to_owned() } else { kept };
            form(shared, context, &next, kept, "Your session has ended. Your form is kept.")
        }
        None => {
            let error = "Your session has ended. Your form is too large to keep: fill it in again.";
            form(shared, context, "", String::new(), error)
        }
    };
    *response.status_mut() = StatusCode::UNAUTHORIZED;
    response
}

fn form(
    shared: &Shared,
    context: Context,
    next: &str,
    kept: String,
    error: &'static str,
) -> Response<Body> {
    let next = next_path(&context.base, next);
    let provider = shared.access.provider().map(|provider| provider.name.clone());
    let (frame, provider) = (Frame::new(context, None, ""), provider.unwrap_or_default());
    render(&SignInPage { frame, next, kept, error, provider })
}

/// Opens a session.
pub async fn sign_in(
    State(shared): State<Arc<Shared>>,
    context: Context,
    Extension(address): Extension<ClientAddress>,
    fields: Form,
) -> Page {
    let (token, next, kept) = (fields.get("token"), fields.get("next"), fields.raw("kept"));
    let mut headers = HeaderMap::new();
    let bearer = HeaderValue::try_from(format!("Bearer {token}")).ok();
    let caller = bearer.and_then(|bearer| {
        headers.insert(AUTHORIZATION, bearer);
        shared.access.caller(&headers, &[])
    });
    let refused = |error| {
        let mut response = form(&shared, context.clone(), next, kept.to_owned(), error);
        *response.status_mut() = StatusCode::UNAUTHORIZED;
        response.extensions_mut().insert(WrongToken);
        Ok(response)
    };
    let Some(caller) = caller else { return refused(INVALID) };
    if caller.role < Role::Resolver {
        return refused(METRICS_ONLY);
    }
    let token = shared.access.requires_credentials().then_some(token);
    let session = shared.sessions.open(&caller, token, address.0);
    let session =
        session.map_err(|_| Failure::Internal("The session cannot be opened.".to_owned()))?;
    Ok(signed_in(&shared, context, (&session, &caller), next, kept))
}

/// The answer to somebody who has signed in: leads on, or offers the form to send again.
pub fn signed_in(
    shared: &Shared,
    context: Context,
    (session, caller): (&Session, &Arc<Caller>),
    next: &str,
    kept: &str,
) -> Response<Body> {
    let next = next_path(&context.base, next);
    let mut response = if kept.is_empty() {
        redirect(&next)
    } else {
        let fields = form_urlencoded::parse(kept.as_bytes()).into_owned().collect();
        let frame = Frame::new(context, Some(caller), "");
        render(&ResumePage { frame, next, fields })
    };
    if let Some(cookie) = shared.cookie().set(session.id().as_str()) {
        response.headers_mut().append(SET_COOKIE, cookie);
    }
    response
}

/// The path to lead to: signing in or out again would be a circle.
pub fn next_path(base: &str, path: &str) -> String {
    let next = own_path(base, path);
    if next.contains("/sign-") { format!("{base}/") } else { next }
}

/// Ends the session.
pub async fn sign_out(State(shared): State<Arc<Shared>>, visit: Visit) -> Page {
    shared.sessions.close(visit.session.id());
    let path = format!("{}/sign-in", shared.base);
    let end = visit.session.person().and_then(|person| person.end.as_ref());
    let end = end.and_then(|end| end.address(&format!("{}{path}", visit.context.origin)));
    let mut response = match end {
        Some(end) => {
            leaving::page(visit.context, &end, "You are signed out", "Sign out there, too")
        }
        None => redirect(&path),
    };
    if let Some(cookie) = shared.cookie().remove() {
        response.headers_mut().append(SET_COOKIE, cookie);
    }
    let headers = response.headers_mut();
    headers.insert("clear-site-data", HeaderValue::from_static("\"cache\""));
    Ok(response)
}
