//! The protection of all pages: the hosts that they have, and the headers of responses.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::middleware::Next;
use base64::Engine;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, REFERRER_POLICY,
    STRICT_TRANSPORT_SECURITY, X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
};
use http::{HeaderValue, Response, StatusCode};
use polynym_transport::http::is_loopback;

use crate::console::Shared;
use crate::context::{Nonce, host};

/// Makes browsers use TLS alone for a year (RFC 6797). They ignore it without TLS.
const TLS_ALONE: &str = "max-age=31536000";

/// Refuses requests to other hosts, and adds the headers that protect pages.
pub async fn protect(
    State(shared): State<Arc<Shared>>,
    mut request: Request,
    next: Next,
) -> Response<Body> {
    let mut bytes = [0; 16];
    if getrandom::fill(&mut bytes).is_err() {
        return plain(StatusCode::INTERNAL_SERVER_ERROR, "the system has no random bytes\n");
    }
    let nonce = STANDARD_NO_PAD.encode(bytes);
    let mut response = if is_known_host(&shared, &request) {
        request.extensions_mut().insert(Nonce(nonce.clone()));
        next.run(request).await
    } else {
        plain(
            StatusCode::MISDIRECTED_REQUEST,
            "The console has no such host: start the server with --console-host HOST\n",
        )
    };
    let policy = format!(
        "default-src 'none'; script-src 'nonce-{nonce}'; style-src 'nonce-{nonce}'; \
         img-src 'self' data:; connect-src 'self'; form-action 'self'; base-uri 'none'; \
         frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types htmx"
    );
    let headers = response.headers_mut();
    if let Ok(policy) = HeaderValue::try_from(policy) {
        headers.insert(CONTENT_SECURITY_POLICY, policy);
    }
    headers.entry(CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    for (name, value) in [
        // With no-referrer, browsers send the origin `null` with forms, which is nobody's.
        (REFERRER_POLICY, "same-origin"),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (X_FRAME_OPTIONS, "DENY"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    if shared.is_tls {
        headers.insert(STRICT_TRANSPORT_SECURITY, HeaderValue::from_static(TLS_ALONE));
    }
    headers.insert("cross-origin-opener-policy", HeaderValue::from_static("same-origin"));
    headers.insert("cross-origin-resource-policy", HeaderValue::from_static("same-origin"));
    response
}

/// Whether a request names a host of the console, so that no page of another host can give its own
/// name this server's address.
fn is_known_host(shared: &Shared, request: &Request) -> bool {
    host(request).is_some_and(|authority| {
        let host = authority.host();
        is_loopback(host)
            || shared.hosts.iter().any(|known| {
                known.eq_ignore_ascii_case(host) || known.eq_ignore_ascii_case(authority.as_str())
            })
    })
}

fn plain(status: StatusCode, text: &'static str) -> Response<Body> {
    let mut response = Response::new(Body::from(text));
    *response.status_mut() = status;
    let content_type = HeaderValue::from_static("text/plain; charset=utf-8");
    response.headers_mut().insert(CONTENT_TYPE, content_type);
    response
}
