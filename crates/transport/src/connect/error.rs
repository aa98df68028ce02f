//! Errors in the form of Connect: a code, a message and details, as JSON.

use std::sync::OnceLock;

use base64::Engine;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use bytes::Bytes;
use http::header::{CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use http::{HeaderMap, HeaderValue, Response, StatusCode};
use http_body_util::Full;
use prost::Message;
use prost_reflect::{DescriptorPool, DynamicMessage};
use serde::Serialize;
use serde_json::Value;
use tonic::body::Body;
use tonic::{Code, Status};
use tonic_types::StatusExt;

use super::code;

/// The content type of all errors, also if the request was not JSON.
const JSON: HeaderValue = HeaderValue::from_static("application/json");

/// An error as JSON.
#[derive(Serialize)]
pub struct Error<'s> {
    code: &'static str,
    #[serde(skip_serializing_if = "str::is_empty")]
    message: &'s str,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    details: Vec<Detail>,
}

/// A detail: its type, its bytes, and, if its type is known here, its JSON for people.
#[derive(Serialize)]
struct Detail {
    r#type: String,
    value: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    debug: Option<Value>,
}

impl<'s> From<&'s Status> for Error<'s> {
    fn from(status: &'s Status) -> Self {
        let rich = tonic_types::Status::decode(status.details()).unwrap_or_default();
        let details = rich.details.into_iter().map(Detail::from).collect();
        Self { code: code::name(status.code()), message: status.message(), details }
    }
}

impl From<prost_types::Any> for Detail {
    fn from(any: prost_types::Any) -> Self {
        let name = any.type_url.rsplit('/').next().unwrap_or_default();
        let (value, debug) = (STANDARD_NO_PAD.encode(&any.value), debug(name, &any.value));
        Self { r#type: name.to_owned(), value, debug }
    }
}

/// The response to a call that failed.
pub fn response(status: &Status) -> Response<Body> {
    with_http_status(code::http_status(status.code()), status)
}

/// The response with this HTTP status to a request that failed.
pub fn with_http_status(http_status: StatusCode, status: &Status) -> Response<Body> {
    let error = serde_json::to_vec(&Error::from(status)).unwrap_or_default();
    let mut response = Response::new(body(error));
    *response.status_mut() = http_status;
    response.headers_mut().insert(CONTENT_TYPE, JSON);
    add_advice(status, response.headers_mut());
    response
}

/// A body of these bytes.
pub fn body(bytes: impl Into<Bytes>) -> Body {
    Body::new(Full::new(bytes.into()))
}

/// Adds the headers that HTTP clients act on: `www-authenticate` and `retry-after`.
fn add_advice(status: &Status, headers: &mut HeaderMap) {
    if status.code() == Code::Unauthenticated {
        headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    }
    let delay = status.get_details_retry_info().and_then(|info| info.retry_delay);
    if let Some(delay) = delay {
        let seconds = delay.as_secs() + u64::from(delay.subsec_nanos() > 0);
        headers.insert(RETRY_AFTER, seconds.max(1).into());
    }
}

/// The JSON of a detail; none if its type is unknown here.
fn debug(name: &str, value: &[u8]) -> Option<Value> {
    static POOL: OnceLock<DescriptorPool> = OnceLock::new();
    let pool = POOL.get_or_init(|| {
        DescriptorPool::decode(tonic_types::pb::FILE_DESCRIPTOR_SET).unwrap_or_default()
    });
    let message = DynamicMessage::decode(pool.get_message_by_name(name)?, value).ok()?;
    serde_json::to_value(message).ok()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::rich_status;

    #[test]
    fn errors_have_a_code_a_message_and_details_for_programs_and_people() {
        let delay = Duration::from_millis(1_200);
        let status = rich_status::retry_after(Code::Unavailable, "BUSY", "come back", delay);
        let error = serde_json::to_value(Error::from(&status)).unwrap();
        assert_eq!(
            (&error["code"], &error["message"]),
            (&"unavailable".into(), &"come back".into())
        );
        let info = &error["details"][0];
        assert_eq!(info["type"], "google.rpc.RetryInfo");
        assert_eq!(info["debug"]["retryDelay"], "1.200s");
        let info = &error["details"][1];
        assert_eq!(info["type"], "google.rpc.ErrorInfo");
        assert_eq!(info["debug"]["reason"], "BUSY");
        assert!(!info["value"].as_str().unwrap().ends_with('='));
        assert_eq!(response(&status).headers()[RETRY_AFTER], "2");
    }
}
