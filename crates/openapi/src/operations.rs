//! The operations: one for each method.

use prost_reflect::MethodDescriptor;
use serde_json::{Map, Value, json};

use crate::comments::Comments;
use crate::component::reference;
use crate::{errors, ndjson, schemas};

/// The content type of the envelopes of a stream.
const STREAM_JSON: &str = "application/connect+json";

/// The parameters that every method has, with their descriptions and schemas.
fn common() -> [(&'static str, &'static str, Value); 4] {
    let timeout = json!({ "type": "integer", "minimum": 1, "maximum": 9_999_999_999_u64 });
    [
        ("Connect-Timeout-Ms", "The time that the caller waits, in milliseconds.", timeout),
        (
            "Connect-Protocol-Version",
            "The version of the Connect protocol. Optional.",
            json!({ "type": "string", "enum": ["1"] }),
        ),
        (
            "polynym-reason",
            "Why the call is made, in the caller's words: at most 256 characters, percent-encoded. \
             The history keeps it with each change.",
            json!({ "type": "string", "examples": ["ticket%204711"] }),
        ),
        (
            "polynym-operation-id",
            "The id of the operation, such as an import, that the call belongs to. The history \
             keeps it with each change.",
            json!({ "type": "string", "pattern": "^[A-Za-z0-9._:-]{1,64}$" }),
        ),
    ]
}

/// The common parameters as components.
pub fn parameters() -> Map<String, Value> {
    let parameter = |(name, description, schema): (&str, &str, Value)| {
        let parameter =
            json!({ "name": name, "in": "header", "description": description, "schema": schema });
        (name.to_owned(), parameter)
    };
    common().map(parameter).into_iter().collect()
}

/// The operation of a method.
pub fn operation(method: &MethodDescriptor, comments: &Comments) -> Value {
    let comment = comments.of_method(method);
    let mut parameters: Vec<_> =
        common().map(|(name, ..)| reference("parameters", name)).into_iter().collect();
    let mut description = comment.to_owned();
    if method.is_client_streaming() {
        parameters.extend(ndjson::import_parameters(comments, &method.input()));
    }
    if let Some(lines) = ndjson::description(method) {
        description += lines;
    } else if method.is_server_streaming() {
        description += "\n\nThe messages are envelopes of the Connect protocol: a byte of flags, \
            the length in four bytes, and the JSON of a message. The last one, with the flag 2, \
            has the error, if there was one.";
    }
    let has_only_envelopes = method.is_server_streaming() && !ndjson::has_lines(method);
    let mut responses =
        if has_only_envelopes { errors::references_of_streams() } else { errors::references() };
    responses.insert("200".to_owned(), answer(method));
    json!({
        "operationId": method.name(),
        "summary": summary(method.name()),
        "description": description,
        "tags": [method.parent_service().name()],
        "parameters": parameters,
        "requestBody": { "required": true, "content": request(method) },
        "responses": responses,
    })
}

fn request(method: &MethodDescriptor) -> Value {
    if method.is_client_streaming() {
        return ndjson::import_lines();
    }
    let message = schemas::of_message(&method.input());
    match method.is_server_streaming() {
        true if ndjson::has_lines(method) => {
            let envelopes = envelopes(message.clone());
            json!({ STREAM_JSON: envelopes, "application/json": { "schema": message } })
        }
        true => json!({ STREAM_JSON: envelopes(message) }),
        false => json!({ "application/json": { "schema": message } }),
    }
}

fn answer(method: &MethodDescriptor) -> Value {
    let message = schemas::of_message(&method.output());
    let content = match method.is_client_streaming() {
        true => ndjson::import_report(),
        false if ndjson::has_lines(method) => {
            let mut content = ndjson::stream(method);
            content[STREAM_JSON] = envelopes(message);
            content
        }
        _ if method.is_server_streaming() => json!({ STREAM_JSON: envelopes(message) }),
        _ => json!({ "application/json": { "schema": message } }),
    };
    json!({ "description": "The response.", "content": content })
}

/// The envelopes of messages.
fn envelopes(message: Value) -> Value {
    schemas::sequence(STREAM_JSON, "Envelopes, each with a message.", message)
}

/// The name of a method in words.
fn summary(name: &str) -> String {
    let mut words = String::new();
    for (at, letter) in name.char_indices() {
        match letter.is_ascii_uppercase() && at > 0 {
            true => words.extend([' ', letter.to_ascii_lowercase()]),
            false => words.push(letter),
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_summary_is_the_name_in_words() {
        assert_eq!(summary("BatchGetUsers"), "Batch get users");
        assert_eq!(summary("Watch"), "Watch");
    }
}
