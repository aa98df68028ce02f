//! The errors of the Connect protocol: one form, with an HTTP status for each code.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use crate::component::reference;

/// The codes, their HTTP statuses, and what they mean here.
const CODES: [(&str, u16, &str); 16] = [
    ("canceled", 499, "the caller cancelled the call"),
    ("unknown", 500, "a mutation may have happened: retry it with the same `requestId`"),
    ("invalid_argument", 400, "a field is malformed: `BadRequest` names it"),
    ("deadline_exceeded", 504, "the time is over; a mutation may still happen"),
    ("not_found", 404, "nobody owns the identifier, or there is no such user or tenant"),
    ("already_exists", 409, "another user owns the identifier, or the id is taken"),
    ("permission_denied", 403, "the caller lacks the role or the tenant"),
    ("resource_exhausted", 429, "too much at once, or too large"),
    ("failed_precondition", 400, "the state of the user or tenant does not permit it"),
    ("aborted", 409, "the etag is not the current one: read again"),
    ("out_of_range", 400, "the history does not reach back to that time"),
    ("unimplemented", 501, "the compression, or the number of messages, is not supported"),
    ("internal", 500, "a fault of the server"),
    ("unavailable", 503, "the server cannot answer now; nothing was written"),
    ("data_loss", 500, "a fault of the server"),
    ("unauthenticated", 401, "the call has no valid token"),
];

/// The statuses whose responses may have a `Retry-After`.
const RETRIABLE: [u16; 2] = [429, 503];
const UNSUPPORTED_MEDIA_TYPE: u16 = 415;
const HEADERS_TOO_LARGE: u16 = 431;

/// The statuses of requests that are refused before they count as calls.
const BEFORE_CALLS: [u16; 2] = [UNSUPPORTED_MEDIA_TYPE, HEADERS_TOO_LARGE];

/// The errors of each HTTP status, as components.
pub fn responses() -> Map<String, Value> {
    let mut by_status: BTreeMap<u16, Vec<String>> = BTreeMap::new();
    for (code, status, meaning) in CODES {
        by_status.entry(status).or_default().push(format!("`{code}`: {meaning}."));
    }
    let content_type = "The content type is none of this method's; `Accept-Post` lists them.";
    by_status.insert(UNSUPPORTED_MEDIA_TYPE, vec![content_type.to_owned()]);
    by_status.insert(HEADERS_TOO_LARGE, vec!["The headers exceed 8 KiB.".to_owned()]);
    let response = |(status, texts): (u16, Vec<String>)| {
        let mut response = json!({
            "description": texts.join("\n\n"),
            "content": { "application/json": { "schema": reference("schemas", "Error") } },
        });
        if RETRIABLE.contains(&status) {
            response["headers"] = json!({ "Retry-After": reference("headers", "RetryAfter") });
        }
        if status == UNSUPPORTED_MEDIA_TYPE {
            response["headers"] = json!({ "Accept-Post": reference("headers", "AcceptPost") });
        }
        (name(status), response)
    };
    by_status.into_iter().map(response).collect()
}

/// References to the errors that any method may answer.
pub fn references() -> Map<String, Value> {
    let statuses = CODES.iter().map(|(_, status, _)| *status).chain(BEFORE_CALLS);
    statuses.map(as_reference).collect()
}

/// References to the errors before a stream begins: the stream itself has the others.
pub fn references_of_streams() -> Map<String, Value> {
    BEFORE_CALLS.into_iter().map(as_reference).collect()
}

fn as_reference(status: u16) -> (String, Value) {
    (status.to_string(), reference("responses", &name(status)))
}

fn name(status: u16) -> String {
    format!("Error{status}")
}

/// The headers of errors.
pub fn headers() -> Value {
    json!({
        "RetryAfter": {
            "description": "The seconds before a retry, if the server says when.",
            "schema": { "type": "integer", "minimum": 1 },
        },
        "AcceptPost": {
            "description": "The content types of the method.",
            "schema": { "type": "string" },
        },
    })
}

/// The schemas of errors.
pub fn schemas() -> [(String, Value); 2] {
    let codes = CODES.map(|(code, ..)| code);
    let error = json!({
        "type": "object",
        "description": "An error, by the Connect protocol.",
        "properties": {
            "code": { "type": "string", "enum": codes, "description": "The code." },
            "message": {
                "type": "string",
                "description": "What is wrong and what to do, for people. It may change.",
            },
            "details": {
                "type": "array",
                "items": reference("schemas", "ErrorDetail"),
                "description": "Details for programs.",
            },
        },
        "required": ["code"],
    });
    let detail = json!({
        "type": "object",
        "description": "A detail of an error. Every error of the server has a \
            `google.rpc.ErrorInfo`, whose `debug` has the `reason` that programs can rely on, such \
            as `IDENTITY_NOT_FOUND`, the `domain` `polynym` and `metadata`. \
            `google.rpc.BadRequest` names the invalid field, and `google.rpc.RetryInfo` has the \
            delay before a retry.",
        "properties": {
            "type": {
                "type": "string",
                "description": "The type of the detail.",
                "examples": ["google.rpc.ErrorInfo"],
            },
            "value": {
                "type": "string",
                "contentEncoding": "base64",
                "description": "The message in binary form.",
            },
            "debug": { "type": "object", "description": "The same message as JSON." },
        },
        "required": ["type", "value"],
    });
    [("Error".to_owned(), error), ("ErrorDetail".to_owned(), detail)]
}
