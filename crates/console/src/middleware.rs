//! The session of every request, and the page of its failure.

use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use axum::body::{Body, HttpBody, to_bytes};
use axum::extract::{Request, State};
use axum::middleware::Next;
use futures_util::{FutureExt, StreamExt, stream};
use http::header::{CONTENT_TYPE, SET_COOKIE};
use http::{HeaderMap, HeaderValue, Method, Response};
use tokio::time::sleep;

use crate::console::Shared;
use crate::context::{self, ClientAddress, Context};
use crate::failure::Shown;
use crate::form::{MAX_FORM_BYTES, ManyFields};
use crate::frame::Frame;
use crate::pages::events::STREAM_TYPE;
use crate::pages::{error, provider, reload, sign_in};
use crate::session::Session;
use crate::strangers_form::Unread;
use crate::visit::Visit;
use crate::words::language;

/// The maximum bytes of a form that is kept while somebody signs in again.
const MAX_KEPT_BYTES: usize = 8 << 10;
/// The maximum bytes of a form of somebody who is not signed in: a kept one, encoded once more.
const MAX_STRANGERS_FORM_BYTES: usize = 4 * MAX_KEPT_BYTES;
/// The time after which a wrong token is answered: it bounds those that somebody can try.
const WRONG_TOKEN_PAUSE: Duration = Duration::from_millis(100);

/// Finds the session of a request, answers it, and shows its failure, if any, as a page.
pub async fn with_session(
    State(shared): State<Arc<Shared>>,
    request: Request,
    next: Next,
) -> Response<Body> {
    let context = context::of(&shared.base, shared.is_tls, &request);
    language::scope(context.language, answer(shared, context, request, next)).await
}

/// Answers a request in its language.
async fn answer(
    shared: Arc<Shared>,
    context: Context,
    mut request: Request,
    next: Next,
) -> Response<Body> {
    let visit = signed_in(&shared, &request, &context);
    if visit.is_none() && sends_form(&request, &context) {
        request = match whole_form(&shared, request, &context).await {
            Ok(request) => request,
            Err(refusal) => return *refusal,
        };
    }
    let permit = match &visit {
        Some(visit) => shared.requests.of_session(&visit.session, &visit.caller),
        None => shared.requests.of_stranger(),
    };
    let permit = match permit {
        Ok(permit) => permit,
        Err(busy) => return error::answer(&busy, frame(visit.as_ref(), context)),
    };
    if visit.is_none() && is_from_another_site(&request) && !provider::is_callback(&context) {
        return reload::page(context, &request);
    }
    let (visit, new_cookie) = match visit {
        Some(visit) => (Some(visit), None),
        None => anonymous(&shared, &request, &context).unzip(),
    };
    if visit.is_none() && is_form(&request) && !is_sign_in(&context) {
        return sign_in::with_form(&shared, context, kept(request).await);
    }
    request.extensions_mut().insert(context.clone());
    if let Some(visit) = &visit {
        request.extensions_mut().insert(ManyFields);
        request.extensions_mut().insert(visit.clone());
    }
    let session = visit.as_ref().map(|visit| visit.session.clone());
    let trace = context.trace.clone();
    let answer = respond(next, request, visit, context.clone());
    let mut response = context::scope(trace, answer).await;
    drop(permit);
    if response.extensions_mut().remove::<sign_in::WrongToken>().is_some() {
        return after_pause(&shared, response, context).await;
    }
    if let Some(session) = session.filter(|_| is_download(&response)) {
        response = response.map(|body| until_ended(body, shared, session));
    }
    if let Some(cookie) = new_cookie.flatten() {
        response.headers_mut().append(SET_COOKIE, cookie);
    }
    response
}

/// The answer to a wrong token, which waits; one of too many is another.
async fn after_pause(
    shared: &Shared,
    response: Response<Body>,
    context: Context,
) -> Response<Body> {
    match shared.requests.of_wrong_token() {
        Ok(_waiting) => {
            sleep(WRONG_TOKEN_PAUSE).await;
            response
        }
        Err(busy) => error::answer(&busy, frame(None, context)),
    }
}

/// The visit of somebody who is signed in.
fn signed_in(shared: &Shared, request: &Request, context: &Context) -> Option<Visit> {
    let (session, caller) = shared.signed_in(request.headers())?;
    Some(Visit { context: context.clone(), session, caller })
}

/// Opens a session if callers need no credentials. Returns its visit and its cookie.
fn anonymous(
    shared: &Shared,
    request: &Request,
    context: &Context,
) -> Option<(Visit, Option<HeaderValue>)> {
    if shared.access.requires_credentials() {
        return None;
    }
    let caller = shared.access.caller(&HeaderMap::new(), &[])?;
    let address = request.extensions().get::<ClientAddress>().and_then(|address| address.0);
    let session = shared.sessions.open(&caller, None, address).ok()?;
    let cookie = shared.cookie().set(session.id().as_str());
    Some((Visit { context: context.clone(), session, caller }, cookie))
}

/// Answers a request; with the page of its failure, if it fails.
async fn respond(
    next: Next,
    request: Request,
    visit: Option<Visit>,
    context: Context,
) -> Response<Body> {
    let mut response = next.run(request).await;
    match response.extensions_mut().remove::<Shown>() {
        Some(Shown(failure)) if failure.is_signed_out() && context.is_partial => {
            sign_in::instead_of_part()
        }
        Some(Shown(failure)) => error::answer(&failure, frame(visit.as_ref(), context)),
        None => response,
    }
}

/// The frame of the page of a failure.
fn frame(visit: Option<&Visit>, context: Context) -> Frame {
    match visit {
        Some(visit) => visit.frame(&context.tenant()),
        None => Frame::new(context, None, ""),
    }
}

/// The request of somebody who is not signed in, with its whole form; or the answer to one whose
/// form is not read.
async fn whole_form(
    shared: &Shared,
    request: Request,
    context: &Context,
) -> Result<Request, Box<Response<Body>>> {
    let needs_token = shared.access.requires_credentials();
    let max_bytes = if needs_token { MAX_STRANGERS_FORM_BYTES } else { MAX_FORM_BYTES };
    let read = shared.strangers_forms.read(request, max_bytes).await;
    read.map_err(|unread| {
        let context = context.clone();
        let is_kept = needs_token && !is_sign_in(&context);
        Box::new(match unread {
            Unread::TooLarge if is_kept => sign_in::with_form(shared, context, None),
            other => error::answer(&other.into(), frame(None, context)),
        })
    })
}

/// The form of a request, to be sent again; none if it is too large.
async fn kept(request: Request) -> Option<String> {
    let body = to_bytes(request.into_body(), MAX_KEPT_BYTES).await;
    String::from_utf8(body.ok()?.into()).ok()
}

/// Whether a request is for signing in.
fn is_sign_in(context: &Context) -> bool {
    context.path.ends_with("/sign-in") || provider::is_begin(context)
}

/// Whether the body of a request is read as a form.
fn sends_form(request: &Request, context: &Context) -> bool {
    is_form(request) || (request.method() == Method::POST && is_sign_in(context))
}

/// Whether the page of another site asks. Browsers send no cookie of a session then.
fn is_from_another_site(request: &Request) -> bool {
    request.headers().get("sec-fetch-site").is_some_and(|site| site == "cross-site")
}

/// Whether an answer is sent while it is made. Streams of events end by themselves, with a reason.
fn is_download(response: &Response<Body>) -> bool {
    let is_events = response.headers().get(CONTENT_TYPE).is_some_and(|it| it == STREAM_TYPE);
    response.body().size_hint().exact().is_none() && !is_events
}

/// A body that breaks off when its session ends: a browser does not take a part for the whole.
fn until_ended(body: Body, shared: Arc<Shared>, session: Arc<Session>) -> Body {
    let mut data = body.into_data_stream();
    let mut ended = Box::pin(async move { shared.ended(&session).await }.fuse());
    Body::from_stream(stream::poll_fn(move |cx| match data.poll_next_unpin(cx) {
        Poll::Pending => {
            ended.poll_unpin(cx).map(|()| Some(Err(axum::Error::new("the session has ended"))))
        }
        ready => ready,
    }))
}

/// Whether a request sends a form.
fn is_form(request: &Request) -> bool {
    let content_type = request.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let is_encoded =
        content_type.is_some_and(|value| value.starts_with("application/x-www-form-urlencoded"));
    request.method() == Method::POST && is_encoded
}

#[cfg(test)]
mod tests {
    use polynym_access::{Access, Caller};
    use polynym_transport::in_memory;

    use super::*;
    use crate::console::Options;

    #[tokio::test]
    async fn a_body_breaks_off_with_its_session() {
        let shared = Arc::new(Shared::new(Options {
            prefix: String::new(),
            access: Arc::new(Access::open()),
            connector: in_memory().0,
            hosts: Vec::new(),
            is_tls: false,
            metrics: Box::new(String::new),
        }));
        let session = shared.sessions.open(&Caller::anonymous(), None, None).unwrap();
        let parts = stream::iter([Ok::<_, axum::Error>("part")]).chain(stream::pending());
        let body = until_ended(Body::from_stream(parts), shared.clone(), session.clone());
        let mut data = body.into_data_stream();
        assert_eq!(data.next().await.unwrap().unwrap(), "part");
        shared.sessions.close(session.id());
        assert!(data.next().await.unwrap().is_err());
    }
}
