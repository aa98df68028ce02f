//! The context of a request, which every page has.

use std::cell::Cell;
use std::net::SocketAddr;
use std::time::Instant;

use axum::extract::{FromRequestParts, Request};
use http::header::{ACCEPT_LANGUAGE, HOST};
use http::request::Parts;
use http::uri::Authority;
use http::{HeaderMap, Uri};
use polynym_client::purpose::{REASON, encode};
use polynym_presentation::pasted::is_region;
use tonic::metadata::MetadataMap;
use uuid::Uuid;

use crate::cookies::preference;
use crate::failure::Failure;
use crate::words::Language;

/// The address of a browser, or of a proxy in front of it.
#[derive(Clone, Copy, Debug)]
pub struct ClientAddress(pub Option<SocketAddr>);

/// The value that marks the scripts of one response (CSP level 3, "nonce").
#[derive(Clone, Debug)]
pub struct Nonce(pub String);

/// The maximum bytes of the name of a zone.
const MAX_ZONE_BYTES: usize = 40;

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

/// Makes a new request the current one while `answer` is computed.
pub async fn scope<T>(trace: String, answer: impl Future<Output = T>) -> T {
    CURRENT.scope(Current { calls: Cell::new(0), trace }, answer).await
}

/// A new trace id: 32 hexadecimal digits, of which not all are zero.
fn trace_id() -> String {
    Uuid::new_v4().simple().to_string()
}

/// The context of a request, signed in or not.
#[derive(Clone)]
pub struct Context {
    pub base: String,
    pub nonce: String,
    /// `light` or `dark`; empty for that of the system.
    pub theme: String,
    /// The name of the zone of times, such as that of Vienna; empty for the browser.
    pub zone: String,
    /// Whether single keys are shortcuts.
    pub has_keys: bool,
    /// The language of pages.
    pub language: Language,
    /// The country of numbers in national form: ISO 3166, alpha-2.
    pub region: String,
    /// The scheme and the host by which the browser knows the console.
    pub origin: String,
    /// The path of the page, for the navigation and for returning after signing in.
    pub path: String,
    /// The query of the page; empty for none.
    pub query: String,
    pub began: Instant,
    /// The id of the request in traces and logs (W3C Trace Context).
    pub trace: String,
    /// Whether a script asks for a part of a page.
    pub is_partial: bool,
}

impl<S: Sync> FromRequestParts<S> for Context {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Failure> {
        parts.extensions.get::<Self>().cloned().ok_or(Failure::SignedOut)
    }
}

impl Context {
    /// The tenant in the path of the page; empty if it has none.
    pub fn tenant(&self) -> String {
        let rest = self.path.strip_prefix(&self.base).and_then(|rest| rest.strip_prefix("/t/"));
        rest.and_then(|rest| rest.split('/').next()).unwrap_or_default().to_owned()
    }
}

/// The context of a request to the console at `base`.
pub fn of(base: &str, is_tls: bool, request: &Request) -> Context {
    let headers = request.headers();
    let theme = preference(headers, "polynym_theme");
    let theme = theme.filter(|theme| theme == "light" || theme == "dark").unwrap_or_default();
    let zone = preference(headers, "polynym_zone").filter(|zone| is_zone(zone));
    let region = preference(headers, "polynym_region").filter(|region| is_region(region));
    let language = preference(headers, "polynym_language").and_then(|code| Language::of(&code));
    let nonce = request.extensions().get::<Nonce>().map(|nonce| nonce.0.clone());
    Context {
        base: base.to_owned(),
        nonce: nonce.unwrap_or_default(),
        theme,
        zone: zone.unwrap_or_default(),
        has_keys: preference(headers, "polynym_keys").as_deref() != Some("off"),
        language: language.unwrap_or_else(|| Language::preferred(headers)),
        region: region.unwrap_or_else(|| region_of(headers)),
        origin: origin(request, is_tls),
        path: path(base, request.uri()),
        query: request.uri().query().unwrap_or_default().to_owned(),
        began: Instant::now(),
        trace: trace_id(),
        is_partial: headers.contains_key("hx-request"),
    }
}

/// Whether a text has the form of the name of a zone, or is empty.
pub fn is_zone(text: &str) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '/' | '_' | '-' | '+');
    text.len() <= MAX_ZONE_BYTES && text.chars().all(is_part)
}

/// The origin of a request to a host of the console.
fn origin(request: &Request, is_tls: bool) -> String {
    let scheme = if is_tls { "https" } else { "http" };
    let host = host(request).map(|host| match host.port() {
        Some(port) => format!("{}:{port}", host.host()),
        None => host.host().to_owned(),
    });
    format!("{scheme}://{}", host.unwrap_or_default())
}

/// The host that a request names.
pub fn host(request: &Request) -> Option<Authority> {
    let header = request.headers().get(HOST);
    let named = header.and_then(|host| Authority::try_from(host.as_bytes()).ok());
    request.uri().authority().cloned().or(named)
}

/// The path of a page, with that of the console.
fn path(base: &str, uri: &Uri) -> String {
    format!("{base}{}", uri.path())
}

/// The region of the first language that names one, as in `de-AT`.
fn region_of(headers: &HeaderMap) -> String {
    let languages = headers.get(ACCEPT_LANGUAGE).and_then(|value| value.to_str().ok());
    let tags = languages.unwrap_or_default().split(',').filter_map(|tag| tag.split(';').next());
    let last_parts = tags.filter_map(|tag| tag.trim().rsplit_once('-'));
    let mut regions = last_parts.map(|(_, region)| region.to_uppercase());
    regions.find(|region| is_region(region)).unwrap_or_else(|| "US".to_owned())
}

/// A call with a reason, if one is given.
///
/// # Errors
/// The reason has characters that cannot be sent.
pub fn with_reason<T>(message: T, reason: &str) -> Result<tonic::Request<T>, Failure> {
    let mut request = tonic::Request::new(message);
    if !reason.is_empty() {
        let wrong = |_| Failure::Form("The reason has characters that cannot be sent.".to_owned());
        request.metadata_mut().insert(REASON, encode(reason).map_err(wrong)?);
    }
    Ok(request)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_region_is_that_of_the_first_language_with_one() {
        let region = |languages: &'static str| {
            let value = http::HeaderValue::from_static(languages);
            region_of(&[(ACCEPT_LANGUAGE, value)].into_iter().collect())
        };
        assert_eq!(region("de-AT,de;q=0.9,en-US;q=0.8"), "AT");
        assert_eq!(region("en, de-at;q=0.5"), "AT");
        assert_eq!(region("zh-Hant, zh-Hant-TW"), "TW");
        assert_eq!(region("en"), "US");
        assert_eq!(region_of(&HeaderMap::new()), "US");
    }
}
