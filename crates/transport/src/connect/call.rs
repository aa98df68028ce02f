//! A call over Connect.

use std::sync::Arc;
use std::time::Duration;

use http::header::{ACCEPT_ENCODING, CONTENT_ENCODING};
use http::{HeaderMap, HeaderValue};
use tonic::Status;

use super::header;
use crate::method::messages::{Messages, Shape};
use crate::protocol;

/// The form of messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Codec {
    /// JSON.
    Json,
    /// Protocol buffers.
    Binary,
}

/// A call over Connect.
pub struct ConnectCall {
    /// The messages of its method.
    pub messages: Arc<Messages>,
    /// The form of the messages.
    pub codec: Codec,
    /// Whether the request's only message is compressed with gzip.
    pub is_gzip: bool,
    /// Whether the response's only message may be compressed with gzip.
    pub accepts_gzip: bool,
    /// The caller's timeout, if it sets one.
    pub timeout: Option<Duration>,
}

impl ConnectCall {
    /// A call with these headers, of a method with these messages.
    ///
    /// # Errors
    /// A header is malformed.
    pub fn new(messages: Arc<Messages>, codec: Codec, headers: &HeaderMap) -> Result<Self, Status> {
        let encoding = match messages.shape {
            Shape::ServerStream => header::STREAM_ENCODING,
            Shape::Unary | Shape::ClientStream => CONTENT_ENCODING.as_str(),
        };
        Self::with_encoding(encoding, messages, codec, headers)
    }

    /// A call with one message as JSON, even if the response is a stream.
    ///
    /// # Errors
    /// A header is malformed.
    pub fn with_json(messages: Arc<Messages>, headers: &HeaderMap) -> Result<Self, Status> {
        Self::with_encoding(CONTENT_ENCODING.as_str(), messages, Codec::Json, headers)
    }

    /// A call whose request is compressed as the header `encoding` says.
    fn with_encoding(
        encoding: &str,
        messages: Arc<Messages>,
        codec: Codec,
        headers: &HeaderMap,
    ) -> Result<Self, Status> {
        check_version(headers)?;
        let is_gzip = is_gzip(headers, encoding)?;
        let accepts_gzip = headers.get_all(ACCEPT_ENCODING).iter().any(accepts_gzip);
        Ok(Self { messages, codec, is_gzip, accepts_gzip, timeout: timeout(headers)? })
    }

    /// Whether the response is a stream.
    pub fn is_stream(&self) -> bool {
        self.messages.shape == Shape::ServerStream
    }
}

fn check_version(headers: &HeaderMap) -> Result<(), Status> {
    match headers.get(header::VERSION) {
        Some(version) if version != "1" => Err(protocol::connect_version_invalid()),
        _ => Ok(()),
    }
}

/// Whether messages are compressed with gzip, by the header with this name.
fn is_gzip(headers: &HeaderMap, name: &str) -> Result<bool, Status> {
    match headers.get(name).map(HeaderValue::as_bytes) {
        None | Some(b"identity" | b"") => Ok(false),
        Some(b"gzip") => Ok(true),
        Some(_) => Err(protocol::encoding_unsupported(name)),
    }
}

/// Whether a list of encodings has gzip, with a weight above zero.
pub fn accepts_gzip(list: &HeaderValue) -> bool {
    let is_gzip = |item: &str| {
        let (name, weight) = item.split_once(';').unwrap_or((item, ""));
        let weight = weight.trim().strip_prefix("q=").map_or(Ok(1.0), str::parse);
        name.trim().eq_ignore_ascii_case("gzip") && weight.is_ok_and(|weight: f32| weight > 0.0)
    };
    list.to_str().is_ok_and(|list| list.split(',').any(is_gzip))
}

/// The caller's timeout: at most ten digits (Connect protocol, "Timeout-Milliseconds").
fn timeout(headers: &HeaderMap) -> Result<Option<Duration>, Status> {
    let Some(value) = headers.get(header::TIMEOUT) else { return Ok(None) };
    let digits = value.as_bytes();
    if !(1..=10).contains(&digits.len()) || !digits.iter().all(u8::is_ascii_digit) {
        return Err(protocol::connect_timeout_invalid());
    }
    let millis = digits.iter().fold(0, |number, digit| 10 * number + u64::from(digit - b'0'));
    Ok(Some(Duration::from_millis(millis)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(name: &'static str, value: &str) -> HeaderMap {
        HeaderMap::from_iter([(http::HeaderName::from_static(name), value.parse().unwrap())])
    }

    #[test]
    fn timeouts_are_milliseconds_of_at_most_ten_digits() {
        let parsed = |text| timeout(&headers(header::TIMEOUT, text)).ok().flatten();
        assert!(timeout(&HeaderMap::new()).is_ok_and(|timeout| timeout.is_none()));
        assert_eq!(parsed("250"), Some(Duration::from_millis(250)));
        assert_eq!(parsed("9999999999"), Some(Duration::from_millis(9_999_999_999)));
        for wrong in ["", "1s", "-1", "+1", "1.5", "99999999999", " 1"] {
            assert!(timeout(&headers(header::TIMEOUT, wrong)).is_err(), "{wrong}");
        }
    }

    #[test]
    fn gzip_is_accepted_unless_its_weight_is_zero() {
        let accepts = |text: &str| accepts_gzip(&text.parse().unwrap());
        assert!(accepts("gzip") && accepts("br, GZIP;q=0.5, *") && accepts("deflate,gzip"));
        assert!(!accepts("") && !accepts("br") && !accepts("gzip;q=0") && !accepts("gzip;q=x"));
    }
}
