//! The begin and the end of every request: its session, and the page of its failure.

use std::sync::Arc;

use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::IntoResponse;
use http::header::{CONTENT_TYPE, SET_COOKIE};
use http::{HeaderMap, HeaderValue, Method, Response};
use polynym_access::Caller;
use tokio::time::timeout;

use crate::console::Shared;
use crate::context::{self, ClientAddress};
use crate::cookies::SessionCookie;
use crate::failure::Shown;
use crate::form::FORM_TIMEOUT;
use crate::frame::Frame;
use crate::pages::{error, sign_in};
use crate::session::Session;
use crate::visit::Visit;

/// The maximum bytes of a form that is kept while somebody signs in again.
const MAX_KEPT_BYTES: usize = 64 << 10;

/// Finds the session of a request, answers it, and shows its failure, if any, as a page.
pub async fn begin(
    State(shared): State<Arc<Shared>>,
    mut request: Request,
    next: Next,
) -> Response<Body> {
    let context = context::of(&shared.base, &request);
    let cookie = SessionCookie { is_tls: shared.is_tls };
    let session = cookie.read(request.headers()).and_then(|id| shared.sessions.get(&id));
    let known = session.and_then(|session| {
        let caller = session.caller(&shared.access)?;
        Some((session, caller, None))
    });
    let known = known.or_else(|| anonymous(&shared, &request, cookie));
    let permit = match &known {
        Some((session, caller, _)) => shared.requests.of_session(session, caller),
        None => shared.requests.of_stranger(),
    };
    let _permit = match permit {
        Ok(permit) => permit,
        Err(busy) => return error::answer(&busy, Frame::new(context, None, "")),
    };
    if known.is_none() && is_form(&request) && !context.path.ends_with("/sign-in") {
        return sign_in::with_form(context, kept(request).await);
    }
    let mut new_cookie = None;
    let visit = known.map(|(session, caller, set)| {
        new_cookie = set;
        Visit { context: context.clone(), session, caller }
    });
    if let Some(visit) = visit.clone() {
        request.extensions_mut().insert(visit);
    }
    request.extensions_mut().insert(context.clone());
    let trace = context.trace.clone();
    let answer = async {
        let mut response = next.run(request).await;
        if let Some(Shown(failure)) = response.extensions_mut().remove::<Shown>() {
            let frame = match &visit {
                Some(visit) => visit.frame(&context.tenant()),
                None => Frame::new(context, None, ""),
            };
            return error::answer(&failure, frame);
        }
        response
    };
    let mut response = context::scope(trace, answer).await;
    if let Some(cookie) = new_cookie {
        response.headers_mut().append(SET_COOKIE, cookie);
    }
    response.into_response()
}

/// The form of a request, to be sent again; empty if it is too large or late.
async fn kept(request: Request) -> String {
    let body = timeout(FORM_TIMEOUT, to_bytes(request.into_body(), MAX_KEPT_BYTES)).await;
    let bytes = body.ok().and_then(Result::ok).unwrap_or_default();
    String::from_utf8(bytes.into()).unwrap_or_default()
}

/// Whether a request sends a form.
fn is_form(request: &Request) -> bool {
    let content_type = request.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let is_encoded =
        content_type.is_some_and(|value| value.starts_with("application/x-www-form-urlencoded"));
    request.method() == Method::POST && is_encoded
}

type Known = (Arc<Session>, Arc<Caller>, Option<HeaderValue>);

/// Opens a session if callers need no credentials.
fn anonymous(shared: &Shared, request: &Request, cookie: SessionCookie) -> Option<Known> {
    if shared.access.requires_credentials() {
        return None;
    }
    let caller = shared.access.caller(&HeaderMap::new(), &[])?;
    let address = request.extensions().get::<ClientAddress>().and_then(|address| address.0);
    let session = shared.sessions.open(&caller, None, address).ok()?;
    let set = cookie.set(session.id().as_str());
    Some((session, caller, set))
}
