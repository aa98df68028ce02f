//! Checks of a request before it counts as a call: the HTTP side of gRPC (gRPC over HTTP/2,
//! "Requests").

use std::time::Duration;

use http::header::{ALLOW, CONTENT_TYPE};
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode};
use tonic::Status;
use tonic::body::Body;

use crate::protocol;

/// The largest list of headers, in bytes as HTTP/2 counts them.
pub const MAX_HEADER_BYTES: usize = 8 << 10;
/// The overhead of a header besides its name and value (RFC 9113, section 6.5.2).
const HEADER_OVERHEAD: usize = 32;

/// The reason why a request is not a call.
pub enum RequestRejection {
    /// The method is not POST.
    Method,
    /// The content type is not gRPC's. Browsers send others to any site without asking.
    ContentType,
    /// The call breaks the protocol.
    Call(Status),
}

impl From<RequestRejection> for Response<Body> {
    fn from(refusal: RequestRejection) -> Self {
        let mut response = Response::new(Body::empty());
        match refusal {
            RequestRejection::Method => {
                *response.status_mut() = StatusCode::METHOD_NOT_ALLOWED;
                response.headers_mut().insert(ALLOW, HeaderValue::from_static("POST"));
            }
            RequestRejection::ContentType => {
                *response.status_mut() = StatusCode::UNSUPPORTED_MEDIA_TYPE
            }
            RequestRejection::Call(status) => response = status.into_http(),
        }

        response
    }
}

/// Returns the caller's timeout, if it sets one.
pub fn validate<B>(request: &Request<B>) -> Result<Option<Duration>, RequestRejection> {
    let headers = request.headers();
    if request.method() != Method::POST {
        return Err(RequestRejection::Method);
    }

    if !headers.get(CONTENT_TYPE).is_some_and(|value| is_grpc(value.as_bytes())) {
        return Err(RequestRejection::ContentType);
    }
    let size = header_bytes(request);
    if size > MAX_HEADER_BYTES {
        return Err(RequestRejection::Call(protocol::headers_too_large(MAX_HEADER_BYTES, size)));
    }

    timeout(headers).map_err(RequestRejection::Call)
}

/// Whether this is gRPC with protocol buffers, with any parameters.
fn is_grpc(content_type: &[u8]) -> bool {
    let essence = content_type.split(|b| *b == b';').next().unwrap_or_default().trim_ascii();
    essence.eq_ignore_ascii_case(b"application/grpc")
        || essence.eq_ignore_ascii_case(b"application/grpc+proto")
}

/// The size of the path and the headers of a request, as HTTP/2 counts them.
pub fn header_bytes<B>(request: &Request<B>) -> usize {
    let path = request.uri().path_and_query().map_or(0, |path| path.as_str().len());
    path + size(request.headers())
}

/// The size of headers in bytes, as HTTP/2 counts them.
pub fn size(headers: &HeaderMap) -> usize {
    headers.iter().map(|(name, value)| name.as_str().len() + value.len() + HEADER_OVERHEAD).sum()
}

/// The caller's timeout, if it sets one: at most eight digits and a unit (gRPC over HTTP/2,
/// "Timeout").
///
/// # Errors
/// The header is malformed.
pub fn timeout(headers: &HeaderMap) -> Result<Option<Duration>, Status> {
    let Some(value) = headers.get("grpc-timeout") else { return Ok(None) };
    let (unit, digits) = value.as_bytes().split_last().ok_or_else(protocol::timeout_invalid)?;
    if !(1..=8).contains(&digits.len()) || !digits.iter().all(u8::is_ascii_digit) {
        return Err(protocol::timeout_invalid());
    }

    let number = digits.iter().fold(0, |number, digit| 10 * number + u64::from(digit - b'0'));
    Ok(Some(match unit {
        b'H' => Duration::from_secs(number * 3_600),
        b'M' => Duration::from_secs(number * 60),
        b'S' => Duration::from_secs(number),
        b'm' => Duration::from_millis(number),
        b'u' => Duration::from_micros(number),
        b'n' => Duration::from_nanos(number),
        _ => return Err(protocol::timeout_invalid()),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Option<Option<Duration>> {
        let mut headers = HeaderMap::new();
        headers.insert("grpc-timeout", text.parse().unwrap());
        timeout(&headers).ok()
    }

    #[test]
    fn specified_timeouts_are_accepted() {
        assert!(matches!(timeout(&HeaderMap::new()), Ok(None)));
        assert_eq!(parsed("100m"), Some(Some(Duration::from_millis(100))));
        assert_eq!(parsed("99999999H"), Some(Some(Duration::from_secs(99_999_999 * 3_600))));
        assert_eq!(parsed("1S"), Some(Some(Duration::from_secs(1))));
        assert_eq!(parsed("5u"), Some(Some(Duration::from_micros(5))));
        assert_eq!(parsed("0n"), Some(Some(Duration::ZERO)));
    }

    #[test]
    fn other_timeouts_are_rejected() {
        for text in ["", "m", "100", "1x", "-1S", "+1S", "1.5S", "abc", "123456789S", "1 S"] {
            assert_eq!(parsed(text), None, "{text}");
        }
    }

    #[test]
    fn only_grpc_content_types_are_accepted() {
        for accepted in [
            "application/grpc",
            "application/grpc+proto",
            "Application/gRPC",
            "application/grpc;x=y",
        ] {
            assert!(is_grpc(accepted.as_bytes()), "{accepted}");
        }
        for other in [
            "",
            "text/plain",
            "application/json",
            "application/grpc-web",
            "application/grpc+json",
            "application/grpcx",
        ] {
            assert!(!is_grpc(other.as_bytes()), "{other}");
        }
    }
}
