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
use serde_json::{Map, Value, json};
use tonic::body::Body;
use tonic::{Code, Status};
use tonic_types::StatusExt;

use super::code;

/// The content type of errors, whatever that of the request.
const JSON: HeaderValue = HeaderValue::from_static("application/json");

/// The error of a status.
pub fn json(status: &Status) -> Value {
    let mut error = Map::new();
    error.insert("code".to_owned(), code::name(status.code()).into());
    if !status.message().is_empty() {
        error.insert("message".to_owned(), status.message().into());
    }
    let details = details(status);
    if !details.is_empty() {
        error.insert("details".to_owned(), details.into());
    }
    error.into()
}

/// The response to a call that failed.
pub fn response(status: &Status) -> Response<Body> {
    with_http_status(code::http_status(status.code()), status)
}

/// The response with this HTTP status to a request that failed.
pub fn with_http_status(http_status: StatusCode, status: &Status) -> Response<Body> {
    let mut response = Response::new(body(json(status).to_string()));
    *response.status_mut() = http_status;
    response.headers_mut().insert(CONTENT_TYPE, JSON);
    add_advice(status, response.headers_mut());
    response
}

/// A body of these bytes.
pub fn body(bytes: impl Into<Bytes>) -> Body {
    Body::new(Full::new(bytes.into()))
}

/// Adds what an HTTP client acts on without reading the error.
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

/// The details: their type, their bytes, and as JSON for people.
fn details(status: &Status) -> Vec<Value> {
    let decoded = tonic_types::Status::decode(status.details()).unwrap_or_default();
    let detail = |any: prost_types::Any| {
        let name = any.type_url.rsplit('/').next().unwrap_or_default();
        let value = STANDARD_NO_PAD.encode(&any.value);
        match debug(name, &any.value) {
            Some(debug) => json!({ "type": name, "value": value, "debug": debug }),
            None => json!({ "type": name, "value": value }),
        }
    };
    decoded.details.into_iter().map(detail).collect()
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
        let error = json(&status);
        assert_eq!((&error["code"], &error["message"]), (&"unavailable".into(), &"come back".into()));
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
