//! The JSON schemas of messages and enums, by the JSON mapping of protocol buffers.

use prost_reflect::{EnumDescriptor, FieldDescriptor, Kind, MessageDescriptor, OneofDescriptor};
use serde_json::{Map, Value, json};

use crate::comments::Comments;
use crate::component::{PACKAGE, reference};
use crate::reach::Reached;

/// The schemas, by their names.
pub struct Schemas(Map<String, Value>);

impl Schemas {
    pub fn new(comments: &Comments, reached: &Reached) -> Self {
        let messages = reached.messages.values().map(|message| {
            let is_open = reached.responded.contains(message.full_name());
            (name(message.full_name()), message_schema(comments, message, is_open))
        });
        let enums = reached.enums.values().map(|choices| {
            let schema = enum_schema(comments, choices);
            (name(choices.full_name()), schema)
        });
        Self(messages.chain(enums).collect())
    }

    pub fn into_map(self) -> Map<String, Value> {
        self.0
    }
}

/// A reference to the schema of a message.
pub fn of_message(message: &MessageDescriptor) -> Value {
    reference("schemas", &name(message.full_name()))
}

/// The name of a schema: the full name without the package of the API.
pub fn name(full_name: &str) -> String {
    let own = full_name.strip_prefix(PACKAGE).and_then(|rest| rest.strip_prefix('.'));
    own.unwrap_or(full_name).to_owned()
}

/// The schema of a message. Clients must ignore unknown fields of responses, and the server refuses
/// those of requests.
fn message_schema(comments: &Comments, message: &MessageDescriptor, is_open: bool) -> Value {
    let choices: Vec<_> = message.oneofs().filter(|oneof| !oneof.is_synthetic()).collect();
    let plain: Vec<_> = message.fields().filter(|field| choice(field).is_none()).collect();
    let mut schema = match &choices[..] {
        [] => object(comments, &plain, is_open),
        [only] if plain.is_empty() => json!({ "oneOf": branches(comments, only, false) }),
        [only] => {
            let mut schema = object(comments, &plain, true);
            schema["oneOf"] = branches(comments, only, true).into();
            if !is_open {
                schema["unevaluatedProperties"] = false.into();
            }
            schema
        }
        several => {
            let choices = several.iter();
            let choices = choices.map(|one| json!({ "oneOf": branches(comments, one, true) }));
            let mut schema = object(comments, &plain, true);
            schema["allOf"] = choices.collect();
            schema
        }
    };
    describe(&mut schema, comments.of_message(message));
    schema
}

/// The `oneof` that a field belongs to; none for an optional field.
fn choice(field: &FieldDescriptor) -> Option<OneofDescriptor> {
    field.containing_oneof().filter(|oneof| !oneof.is_synthetic())
}

/// One schema for each member of a choice, of which a message has exactly one.
fn branches(comments: &Comments, choice: &OneofDescriptor, is_open: bool) -> Vec<Value> {
    let branch = |field: FieldDescriptor| {
        let name = field.json_name().to_owned();
        let mut schema = object(comments, &[field], is_open);
        schema["title"] = name.clone().into();
        schema["required"] = json!([name]);
        schema
    };
    choice.fields().map(branch).collect()
}

fn object(comments: &Comments, fields: &[FieldDescriptor], is_open: bool) -> Value {
    let properties: Map<_, _> = fields
        .iter()
        .map(|field| (field.json_name().to_owned(), of_field(comments, field)))
        .collect();
    let mut schema = json!({ "type": "object" });
    if !properties.is_empty() {
        schema["properties"] = properties.into();
    }
    if !is_open {
        schema["additionalProperties"] = false.into();
    }
    schema
}

/// The schema of a field, with its description.
pub fn of_field(comments: &Comments, field: &FieldDescriptor) -> Value {
    let mut schema = match field.kind() {
        Kind::Message(entry) if field.is_map() => {
            let value = value_schema(&entry.map_entry_value_field().kind());
            json!({ "type": "object", "additionalProperties": value })
        }
        kind if field.is_list() => json!({ "type": "array", "items": value_schema(&kind) }),
        kind => value_schema(&kind),
    };
    describe(&mut schema, comments.of_field(field));
    schema
}

fn value_schema(kind: &Kind) -> Value {
    match kind {
        Kind::Double => json!({ "type": "number", "format": "double" }),
        Kind::Float => json!({ "type": "number", "format": "float" }),
        Kind::Int32 | Kind::Sint32 | Kind::Sfixed32 => {
            json!({ "type": "integer", "format": "int32" })
        }
        Kind::Uint32 | Kind::Fixed32 => json!({ "type": "integer", "minimum": 0 }),
        Kind::Int64 | Kind::Sint64 | Kind::Sfixed64 => {
            let pattern = "^-?[0-9]+$";
            json!({ "type": ["string", "integer"], "format": "int64", "pattern": pattern })
        }
        Kind::Uint64 | Kind::Fixed64 => {
            json!({ "type": ["string", "integer"], "pattern": "^[0-9]+$", "minimum": 0 })
        }
        Kind::Bool => json!({ "type": "boolean" }),
        Kind::String => json!({ "type": "string" }),
        Kind::Bytes => json!({ "type": "string", "contentEncoding": "base64" }),
        Kind::Enum(choices) => reference("schemas", &name(choices.full_name())),
        Kind::Message(message) => {
            well_known(message.full_name()).unwrap_or_else(|| of_message(message))
        }
    }
}

/// The schema of a message with a JSON form of its own.
fn well_known(full_name: &str) -> Option<Value> {
    Some(match full_name {
        "google.protobuf.Timestamp" => json!({ "type": "string", "format": "date-time" }),
        "google.protobuf.Duration" => {
            let pattern = r"^-?[0-9]+(\.[0-9]{1,9})?s$";
            json!({ "type": "string", "pattern": pattern, "examples": ["1.5s"] })
        }
        "google.protobuf.FieldMask" => {
            json!({ "type": "string", "examples": ["displayName"] })
        }
        "google.protobuf.Any" => json!({
            "type": "object",
            "properties": { "@type": { "type": "string", "description": "The URL of the type." } },
            "required": ["@type"],
        }),
        _ => return None,
    })
}

/// The content of a body with several messages. OpenAPI has no schema for it before version 3.2:
/// `contentSchema` is that of each message.
pub fn sequence(content_type: &str, description: &str, message: Value) -> Value {
    json!({
        "schema": {
            "type": "string",
            "description": description,
            "contentMediaType": content_type,
            "contentSchema": message,
        },
    })
}

fn enum_schema(comments: &Comments, choices: &EnumDescriptor) -> Value {
    let names: Vec<_> = choices.values().map(|value| value.name().to_owned()).collect();
    let mut description = comments.of_enum(choices).to_owned();
    description.push('\n');
    for value in choices.values() {
        description += &format!("\n- `{}`: {}", value.name(), comments.of_value(&value));
    }
    json!({ "type": "string", "enum": names, "description": description })
}

/// The values of an enum in lower case and without their common prefix, for parameters. The first
/// one, which means that none is given, is left out.
pub fn short_enum(choices: &EnumDescriptor) -> Value {
    let values: Vec<_> = choices.values().map(|value| value.name().to_owned()).collect();
    let prefix = values.first().and_then(|first| first.strip_suffix("UNSPECIFIED")).unwrap_or("");
    let short = |value: &String| value.strip_prefix(prefix).unwrap_or(value).to_ascii_lowercase();
    json!({ "type": "string", "enum": values.iter().skip(1).map(short).collect::<Vec<_>>() })
}

fn describe(schema: &mut Value, description: &str) {
    if !description.is_empty() {
        schema["description"] = description.into();
    }
}
