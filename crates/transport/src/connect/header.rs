//! The headers of Connect, and the headers of gRPC that it does not use.

use http::header::{CONTENT_LENGTH, CONTENT_TYPE, TE, TRAILER};
use http::{HeaderMap, HeaderName, HeaderValue};

/// The protocol's version, `1`.
pub const VERSION: &str = "connect-protocol-version";
/// The time that the caller allows, in milliseconds.
pub const TIMEOUT: &str = "connect-timeout-ms";
/// The compression of the messages of a stream.
pub const STREAM_ENCODING: &str = "connect-content-encoding";
/// The prefix of trailers among the headers of a response with one message.
const TRAILER_PREFIX: &str = "trailer-";

/// Removes gRPC's headers, which a client of Connect must not set.
pub fn remove_grpc(headers: &mut HeaderMap) {
    let grpc: Vec<_> = headers.keys().filter(|name| is_grpc(name)).cloned().collect();
    for name in grpc {
        headers.remove(name);
    }
}

/// The headers of a response that are not gRPC's own.
pub fn leading(grpc: &HeaderMap) -> HeaderMap {
    grpc.iter().filter(|(name, _)| is_metadata(name)).map(owned).collect()
}

/// Adds the trailers of a response to its headers.
pub fn add_trailers(trailers: &HeaderMap, headers: &mut HeaderMap) {
    for (name, value) in trailers.iter().filter(|(name, _)| is_metadata(name)) {
        if let Ok(prefixed) = HeaderName::try_from(format!("{TRAILER_PREFIX}{name}")) {
            headers.append(prefixed, value.clone());
        }
    }
}

/// Whether a header of gRPC is metadata of the call.
pub fn is_metadata(name: &HeaderName) -> bool {
    !is_grpc(name) && ![CONTENT_TYPE, CONTENT_LENGTH, TE, TRAILER].contains(name)
}

fn is_grpc(name: &HeaderName) -> bool {
    name.as_str().starts_with("grpc-")
}

fn owned((name, value): (&HeaderName, &HeaderValue)) -> (HeaderName, HeaderValue) {
    (name.clone(), value.clone())
}
