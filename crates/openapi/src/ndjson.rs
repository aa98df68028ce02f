//! Imports and exports as lines of JSON.

use prost_reflect::{FieldDescriptor, Kind, MessageDescriptor, MethodDescriptor};
use serde_json::{Value, json};

use crate::comments::Comments;
use crate::component::reference;
use crate::schemas;

const NDJSON: &str = "application/x-ndjson";

/// The description of an import over HTTP, after the comment of the method.
const IMPORT: &str = "\n\nOver HTTP the body is a file of lines as `polynym export` writes \
    them and `polynym import` reads them, and the options are parameters. The response has a line \
    for each reject and, with `validate_only`, for each change; the last line is the report, or \
    the error that ended the import. Another content type fails with 415.";

/// The description of an export over HTTP, after the comment of the method.
const EXPORT: &str = "\n\nOver HTTP, a request as `application/json` is answered with lines as \
    `polynym export` writes them; a line with an error ends an export that failed. A request as \
    `application/connect+json` is answered with envelopes of the Connect protocol.";

/// The description of a watch over HTTP, after the comment of the method.
const WATCH: &str = "\n\n\
    Over HTTP, a request as `application/json` is answered with lines, each a response; a line \
    with an error ends a watch that failed. With `accept: text/event-stream` they are server-sent \
    events: the data is a response, the id its resume token, and the header `last-event-id` \
    resumes; heartbeats are events `heartbeat`, an error is an event `failure`. Then the request \
    may also be a GET with the fields `tenant`, `user_ids`, `types` and `resume_token` as \
    parameters, as `EventSource` sends it. A request as `application/connect+json` is answered \
    with envelopes of the Connect protocol.";

/// The description of the lines of a method; none if it has none.
pub fn description(method: &MethodDescriptor) -> Option<&'static str> {
    match method.name() {
        "ImportUsers" => Some(IMPORT),
        "ExportUsers" => Some(EXPORT),
        "Watch" => Some(WATCH),
        _ => None,
    }
}

/// Whether a method takes or returns lines.
pub fn has_lines(method: &MethodDescriptor) -> bool {
    description(method).is_some()
}

/// The options of an import as parameters of the query.
pub fn import_parameters(comments: &Comments, request: &MessageDescriptor) -> Vec<Value> {
    let Some(Kind::Message(options)) = request.get_field_by_name("options").map(|it| it.kind())
    else {
        return Vec::new();
    };
    let parameter = |field: FieldDescriptor| {
        let mut schema = match field.kind() {
            Kind::Enum(choices) => schemas::short_enum(&choices),
            _ => schemas::of_field(comments, &field),
        };
        if let Some(schema) = schema.as_object_mut() {
            schema.remove("description");
        }
        let description = comments.of_field(&field);
        json!({ "name": field.name(), "in": "query", "description": description, "schema": schema })
    };
    options.fields().map(parameter).collect()
}

/// The body of an import.
pub fn import_lines() -> Value {
    json!({ NDJSON: lines("ImportLine") })
}

/// The response of an import.
pub fn import_report() -> Value {
    json!({ NDJSON: lines("ImportResult") })
}

/// The response of an export or a watch.
pub fn stream(method: &MethodDescriptor) -> Value {
    match method.name() {
        "Watch" => {
            let message = schemas::of_message(&method.output());
            let lines = schemas::sequence(NDJSON, "Lines, each with a response.", message);
            json!({ NDJSON: lines, "text/event-stream": { "schema": { "type": "string" } } })
        }
        _ => json!({ NDJSON: lines("ImportLine") }),
    }
}

fn lines(name: &str) -> Value {
    schemas::sequence(NDJSON, "Lines, each with an object.", reference("schemas", name))
}

/// The schemas of lines.
pub fn schemas() -> [(String, Value); 2] {
    let schema = |name: &str| reference("schemas", name);
    let only = |name: &str, schema: Value| {
        json!({
            "type": "object",
            "title": name,
            "properties": { name: schema },
            "required": [name],
        })
    };
    let user = json!({
        "title": "user",
        "description": "A user; `internals` has what responses do not show of it.",
        "allOf": [schema("User")],
        "properties": { "internals": schema("UserInternals") },
    });
    let line = json!({
        "description": "A line of an import or export: a user, a tenant, or a hold.",
        "anyOf": [
            user,
            only("tenant_record", schema("Tenant")),
            only("ownerless_hold", schema("OwnerlessHold")),
        ],
    });
    let result = json!({
        "description": "A line of the response to an import. The last one is a report or an error.",
        "oneOf": [
            only("reject", schema("ImportUsersResponse.Reject")),
            only("change", schema("ImportUsersResponse.Change")),
            only("report", schema("ImportUsersResponse.Progress")),
            only("error", schema("Error")),
        ],
    });
    [("ImportLine".to_owned(), line), ("ImportResult".to_owned(), result)]
}
