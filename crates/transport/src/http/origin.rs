//! Pages in browsers: which hosts and origins a request may name, and what other pages may call
//! (the CORS protocol of the Fetch standard).

use std::net::IpAddr;

use http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, ACCESS_CONTROL_REQUEST_METHOD, HOST,
    ORIGIN, VARY,
};
use http::uri::Authority;
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, Version};
use tonic::body::Body;

use crate::calls::call_protocol::Refused;
use crate::connect::error;
use crate::protocol;

/// The headers that pages may send.
const HEADERS: HeaderValue = HeaderValue::from_static(
    "authorization, baggage, connect-content-encoding, connect-protocol-version, \
     connect-timeout-ms, content-encoding, content-type, grpc-timeout, last-event-id, \
     polynym-operation-id, polynym-reason, traceparent, tracestate, x-grpc-web, x-user-agent",
);
/// The seconds for which a browser remembers what a page may do.
const MAX_AGE: HeaderValue = HeaderValue::from_static("7200");

/// The origins of other pages that may call the API.
pub struct Origins(Vec<String>);

impl Origins {
    pub const fn new(allowed: Vec<String>) -> Self {
        Self(allowed)
    }

    /// The origin of a request, if it is allowed.
    pub fn allowed(&self, headers: &HeaderMap) -> Option<HeaderValue> {
        let origin = headers.get(ORIGIN)?;
        self.0.iter().any(|allowed| origin == allowed.as_str()).then(|| origin.clone())
    }

    /// Checks a request that needs no credential: its host must be this machine, so that no page
    /// can give its own name this server's address, and its page one of this server.
    pub fn check(&self, host: Option<Authority>, headers: &HeaderMap) -> Result<(), Refused> {
        if !host.as_ref().is_some_and(|host| is_loopback(host.host())) {
            return Err(error::response(&protocol::host_denied()).into());
        }
        let is_own = |origin: &HeaderValue| {
            let text = origin.to_str().ok()?;
            let authority = text.strip_prefix("http://").or(text.strip_prefix("https://"))?;
            host.as_ref().filter(|host| host.as_str().eq_ignore_ascii_case(authority))
        };
        let origin = headers.get(ORIGIN);
        if origin.is_some_and(|origin| is_own(origin).is_none()) && self.allowed(headers).is_none()
        {
            return Err(error::response(&protocol::origin_denied()).into());
        }
        Ok(())
    }

    /// The response to a browser that asks what a page may do, if its origin is allowed.
    pub fn preflight<B>(&self, request: &Request<B>) -> Option<Response<Body>> {
        let headers = request.headers();
        let asks = request.method() == Method::OPTIONS
            && headers.contains_key(ACCESS_CONTROL_REQUEST_METHOD);
        if !asks || self.allowed(headers).is_none() {
            return None;
        }
        let mut response = Response::new(Body::empty());
        *response.status_mut() = StatusCode::NO_CONTENT;
        let headers = response.headers_mut();
        headers.insert(ACCESS_CONTROL_ALLOW_METHODS, HeaderValue::from_static("GET, POST"));
        headers.insert(ACCESS_CONTROL_ALLOW_HEADERS, HEADERS);
        headers.insert(ACCESS_CONTROL_MAX_AGE, MAX_AGE);
        Some(response)
    }
}

/// Lets a page of `origin` read a response.
pub fn allow(origin: HeaderValue, headers: &mut HeaderMap) {
    headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin);
    headers.insert(ACCESS_CONTROL_EXPOSE_HEADERS, HeaderValue::from_static("*"));
    headers.append(VARY, HeaderValue::from_static("origin"));
}

/// The host of a request. HTTP/1.1 requires exactly one.
pub fn host<B>(request: &Request<B>) -> Result<Option<Authority>, Refused> {
    let mut hosts = request.headers().get_all(HOST).iter();
    let (first, second) = (hosts.next(), hosts.next());
    let parse = |value: &HeaderValue| Authority::try_from(value.as_bytes()).ok();
    let named = match (request.uri().authority(), first) {
        (Some(authority), _) => Some(authority.clone()),
        (None, Some(value)) => Some(parse(value).ok_or_else(wrong_host)?),
        (None, None) => None,
    };
    let is_missing = first.is_none() && request.version() == Version::HTTP_11;
    if second.is_some() || is_missing { Err(wrong_host()) } else { Ok(named) }
}

/// Whether a host is this machine: a name, or an address with or without brackets.
pub fn is_loopback(host: &str) -> bool {
    let address = host.trim_start_matches('[').trim_end_matches(']');
    host.eq_ignore_ascii_case("localhost")
        || address.parse::<IpAddr>().is_ok_and(|address| address.to_canonical().is_loopback())
}

fn wrong_host() -> Refused {
    error::response(&protocol::host_invalid()).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checked(host: &str, origin: Option<&str>) -> bool {
        let origins = Origins::new(vec!["https://console.example.com".to_owned()]);
        let mut request = Request::new(());
        request.headers_mut().insert(HOST, host.parse().unwrap());
        if let Some(origin) = origin {
            request.headers_mut().insert(ORIGIN, origin.parse().unwrap());
        }
        let named = super::host(&request).unwrap();
        origins.check(named, request.headers()).is_ok()
    }

    #[test]
    fn without_credentials_hosts_are_of_this_machine() {
        for own in ["localhost", "LOCALHOST:7180", "127.0.0.1:7180", "127.1.2.3", "[::1]:7180"] {
            assert!(checked(own, None), "{own}");
        }
        for other in
            ["evil.example", "evil.example:7180", "localhost.evil.example", "10.0.0.1", "[::2]"]
        {
            assert!(!checked(other, None), "{other}");
        }
    }

    #[test]
    fn without_credentials_pages_are_of_this_server_or_allowed() {
        let host = "localhost:7180";
        assert!(checked(host, Some("http://localhost:7180")));
        assert!(checked(host, Some("https://console.example.com")));
        for foreign in [
            "null",
            "http://localhost:3000",
            "http://evil.example",
            "https://console.example.com.evil.example",
            "http://localhost:7180.evil.example",
        ] {
            assert!(!checked(host, Some(foreign)), "{foreign}");
        }
    }

    #[test]
    fn a_request_names_one_host() {
        let mut request = Request::new(());
        assert!(host(&request).is_err());
        request.headers_mut().append(HOST, "one".parse().unwrap());
        assert!(host(&request).is_ok());
        request.headers_mut().append(HOST, "two".parse().unwrap());
        assert!(host(&request).is_err());
    }
}
