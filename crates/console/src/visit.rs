//! A request of somebody who is signed in.

use std::cell::Cell;
use std::sync::Arc;
use std::time::Instant;

use axum::body::{Body, to_bytes};
use axum::extract::{FromRequestParts, Request, State};
use axum::middleware::Next;
use axum::response::IntoResponse;
use http::header::{ACCEPT_LANGUAGE, CONTENT_TYPE, SET_COOKIE};
use http::request::Parts;
use http::{HeaderMap, Method, Response, Uri};
use polynym_access::{Caller, Role};
use polynym_client::Client;
use tonic::metadata::MetadataMap;
use uuid::Uuid;

use crate::console::Shared;
use crate::failure::{Failure, Shown};
use crate::frame::Frame;
use crate::pages::sign_in;
use crate::security::Nonce;
use crate::session::{Session, SessionCookie, preference};
use crate::site::ClientAddress;

/// The maximum bytes of a form that is kept while somebody signs in again.
const MAX_KEPT_BYTES: usize = 64 << 10;

tokio::task_local! {
    /// The current request.
    static CURRENT: Current;
}

struct Current {
    /// The calls of the API that it has made.
    calls: Cell<u32>,
    trace: String,
}

/// Counts a call of the API, and gives it the trace id of the request.
pub fn on_call(metadata: &mut MetadataMap) {
    let _ = CURRENT.try_with(|current| {
        current.calls.set(current.calls.get() + 1);
        let span = &current.trace[..16];
        if let Ok(parent) = format!("00-{}-{span}-00", current.trace).parse() {
            metadata.insert("traceparent", parent);
        }
    });
}

/// The calls of the API that the current request has made.
pub fn calls() -> u32 {
    CURRENT.try_with(|current| current.calls.get()).unwrap_or_default()
}

/// A new trace id: 32 hexadecimal digits, of which not all are zero.
fn trace_id() -> String {
    Uuid::new_v4().simple().to_string()
}

/// What every page knows of its request, signed in or not.
#[derive(Clone)]
pub struct Context {
    pub base: String,
    pub nonce: String,
    /// `light` or `dark`; empty for that of the system.
    pub theme: String,
    /// The country of numbers in national form: ISO 3166, alpha-2.
    pub region: String,
    /// The path of the page, for the navigation and for returning after signing in.
    pub path: String,
    pub began: Instant,
    /// The id of the request in traces and logs (W3C Trace Context).
    pub trace: String,
    /// Whether a script asks for a part of a page.
    pub is_partial: bool,
}

/// A request of somebody who is signed in.
#[derive(Clone)]
pub struct Visit {
    pub context: Context,
    pub session: Arc<Session>,
    pub caller: Arc<Caller>,
}

impl Visit {
    /// A client of the API for a tenant.
    pub fn client(&self, tenant: &str) -> Client {
        self.session.client().with_tenant(tenant)
    }

    /// The frame of a page of a tenant.
    pub fn frame(&self, tenant: &str) -> Frame {
        Frame::new(self.context.clone(), Some(&self.caller), tenant)
    }

    /// Checks that the caller may open a page. The API checks each call again.
    ///
    /// # Errors
    /// The role is lower than `role`.
    pub fn require(&self, role: Role) -> Result<(), Failure> {
        if self.caller.role >= role { Ok(()) } else { Err(Failure::RoleTooLow(role)) }
    }
}

impl FromRequestParts<Arc<Shared>> for Visit {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, _: &Arc<Shared>) -> Result<Self, Failure> {
        parts.extensions.get::<Self>().cloned().ok_or(Failure::SignedOut)
    }
}

impl FromRequestParts<Arc<Shared>> for Context {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, _: &Arc<Shared>) -> Result<Self, Failure> {
        parts.extensions.get::<Self>().cloned().ok_or(Failure::SignedOut)
    }
}

/// Finds the session of a request, answers it, and shows its failure, if any, as a page.
pub async fn begin(
    State(shared): State<Arc<Shared>>,
    mut request: Request,
    next: Next,
) -> Response<Body> {
    let context = context(&shared, &request);
    let cookie = SessionCookie { is_tls: shared.is_tls };
    let session = cookie.read(request.headers()).and_then(|id| shared.sessions.get(&id));
    let known = session.and_then(|session| {
        let caller = session.caller(&shared.access)?;
        Some((session, caller, None))
    });
    let known = known.or_else(|| anonymous(&shared, &request, cookie));
    if known.is_none() && is_form(&request) && !context.path.ends_with("/sign-in") {
        let bytes = to_bytes(request.into_body(), MAX_KEPT_BYTES).await.unwrap_or_default();
        let kept = String::from_utf8(bytes.into()).unwrap_or_default();
        return sign_in::with_form(context, kept);
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
    let current = Current { calls: Cell::new(0), trace: context.trace.clone() };
    let answer = async {
        let mut response = next.run(request).await;
        if let Some(Shown(failure)) = response.extensions_mut().remove::<Shown>() {
            let frame = match &visit {
                Some(visit) => visit.frame(&context.tenant()),
                None => Frame::new(context, None, ""),
            };
            return failure.page(frame);
        }
        response
    };
    let mut response = CURRENT.scope(current, answer).await;
    if let Some(cookie) = new_cookie {
        response.headers_mut().append(SET_COOKIE, cookie);
    }
    response.into_response()
}

/// Whether a request sends a form.
fn is_form(request: &Request) -> bool {
    let content_type = request.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let is_encoded =
        content_type.is_some_and(|value| value.starts_with("application/x-www-form-urlencoded"));
    request.method() == Method::POST && is_encoded
}

type Known = (Arc<Session>, Arc<Caller>, Option<http::HeaderValue>);

/// Opens a session if callers need no credentials.
fn anonymous(shared: &Shared, request: &Request, cookie: SessionCookie) -> Option<Known> {
    if shared.access.requires_credentials() {
        return None;
    }
    let caller = shared.access.caller(&HeaderMap::new(), &[])?;
    let address = request.extensions().get::<ClientAddress>().and_then(|address| address.0);
    let session = shared.sessions.open(&caller, None, address).ok()?;
    let set = cookie.set(session.id());
    Some((session, caller, set))
}

impl Context {
    /// The tenant in the path of the page; empty if it has none.
    pub fn tenant(&self) -> String {
        let rest = self.path.strip_prefix(&self.base).and_then(|rest| rest.strip_prefix("/t/"));
        rest.and_then(|rest| rest.split('/').next()).unwrap_or_default().to_owned()
    }
}

fn context(shared: &Shared, request: &Request) -> Context {
    let headers = request.headers();
    let theme = preference(headers, "polynym_theme");
    let theme = theme.filter(|theme| theme == "light" || theme == "dark").unwrap_or_default();
    let region = preference(headers, "polynym_region").filter(|region| is_region(region));
    let nonce = request.extensions().get::<Nonce>().map(|nonce| nonce.0.clone());
    Context {
        base: shared.base.clone(),
        nonce: nonce.unwrap_or_default(),
        theme,
        region: region.unwrap_or_else(|| region_of(headers)),
        path: path(&shared.base, request.uri()),
        began: Instant::now(),
        trace: trace_id(),
        is_partial: headers.contains_key("hx-request"),
    }
}

/// The path of a page, with that of the console.
fn path(base: &str, uri: &Uri) -> String {
    format!("{base}{}", uri.path())
}

/// Whether a text may be a region.
pub fn is_region(text: &str) -> bool {
    text.len() == 2 && text.bytes().all(|byte| byte.is_ascii_uppercase())
}

/// The region of the first language that names one, as in `de-AT`.
fn region_of(headers: &HeaderMap) -> String {
    let languages = headers.get(ACCEPT_LANGUAGE).and_then(|value| value.to_str().ok());
    let tags = languages.unwrap_or_default().split(',').filter_map(|tag| tag.split(';').next());
    let mut regions = tags.filter_map(|tag| tag.trim().rsplit('-').next()).map(str::to_uppercase);
    let named = |region: &String| is_region(region);
    let has_language = languages.is_some_and(|text| text.contains('-'));
    regions.find(named).filter(|_| has_language).unwrap_or_else(|| "US".to_owned())
}
