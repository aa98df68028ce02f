//! The JSON mapping of protocol buffers, for any message of the descriptors.

use std::collections::HashSet;
use std::sync::OnceLock;

use prost::{Message, Name};
use prost_reflect::{
    DescriptorPool, DynamicMessage, FieldDescriptor, Kind, MessageDescriptor, MethodDescriptor,
    SerializeOptions,
};
use serde_json::Value;

use polynym_proto as proto;

/// The message of times.
const TIMESTAMP: &str = "google.protobuf.Timestamp";

/// The JSON of `message`.
///
/// # Errors
/// The message is none of the API.
pub fn from_message(message: &impl Name) -> Result<Value, String> {
    serialize(message, &SerializeOptions::new())
}

/// The JSON of `message`, including fields with default values.
///
/// # Errors
/// The message is none of the API.
pub fn with_defaults(message: &impl Name) -> Result<Value, String> {
    serialize(message, &SerializeOptions::new().skip_default_fields(false))
}

/// The message that `json` describes.
///
/// # Errors
/// The position and the cause of the error.
pub fn to_message<M: Message + Name + Default>(json: Value) -> Result<M, String> {
    let descriptor = descriptor::<M>()?;
    check_spellings(&descriptor, &json)?;
    check_times(&descriptor, &json)?;
    let dynamic = DynamicMessage::deserialize(descriptor, json).map_err(text)?;
    dynamic.transcode_to().map_err(text)
}

/// Fails if an object has a field in both of its spellings, of which the last would count.
fn check_spellings(message: &MessageDescriptor, json: &Value) -> Result<(), String> {
    let mut seen = HashSet::new();
    for (field, value) in fields(message, json) {
        if !seen.insert(field.number()) {
            return Err(format!("{} occurs twice, in two spellings", field.name()));
        }
        let inner = messages(&field, value);
        inner.iter().try_for_each(|(message, value)| check_spellings(message, value))?;
    }
    Ok(())
}

/// Checks that all times in the JSON of a message have an offset. The mapping would read others as
/// UTC.
fn check_times(message: &MessageDescriptor, json: &Value) -> Result<(), String> {
    for (field, value) in fields(message, json) {
        for (inner, value) in messages(&field, value) {
            let text = value.as_str().filter(|_| inner.full_name() == TIMESTAMP);
            if text.is_some_and(|text| polynym_proto::time::parse(text).is_none()) {
                let form = "a time must have Z or an offset, as in 2026-01-31T12:00:00Z";
                return Err(format!("{}: {form}", field.name()));
            }
            check_times(&inner, value)?;
        }
    }
    Ok(())
}

/// The known fields of the JSON of a message, with their values.
fn fields<'v>(
    message: &MessageDescriptor,
    json: &'v Value,
) -> impl Iterator<Item = (FieldDescriptor, &'v Value)> {
    json.as_object().into_iter().flatten().filter_map(|(key, value)| {
        let field = message.get_field_by_json_name(key).or_else(|| message.get_field_by_name(key));
        Some((field?, value))
    })
}

/// The messages in the JSON of a field: its values if it is a list or a map.
fn messages<'v>(field: &FieldDescriptor, json: &'v Value) -> Vec<(MessageDescriptor, &'v Value)> {
    let kind = match field.kind() {
        Kind::Message(entry) if field.is_map() => entry.map_entry_value_field().kind(),
        kind => kind,
    };
    let Kind::Message(message) = kind else { return Vec::new() };
    let values: Vec<_> = match json {
        Value::Array(items) => items.iter().collect(),
        Value::Object(entries) if field.is_map() => entries.values().collect(),
        other => vec![other],
    };
    values.into_iter().map(|value| (message.clone(), value)).collect()
}

/// Serializes to a [`Value`], whose keys are sorted, so that equal messages print alike.
fn serialize<M: Message + Name>(message: &M, options: &SerializeOptions) -> Result<Value, String> {
    let encoded = message.encode_to_vec();
    let dynamic = DynamicMessage::decode(descriptor::<M>()?, &*encoded).map_err(text)?;
    dynamic.serialize_with_options(serde_json::value::Serializer, options).map_err(text)
}

fn descriptor<M: Name>() -> Result<MessageDescriptor, String> {
    let name = M::full_name();
    pool()?.get_message_by_name(&name).ok_or_else(|| format!("{name} has no descriptor"))
}

/// The method of the API whose request is `M`.
///
/// # Errors
/// The message is no request.
pub fn method<M: Name>() -> Result<MethodDescriptor, String> {
    let name = M::full_name();
    let has_request = |method: &MethodDescriptor| method.input().full_name() == name;
    let mut services = pool()?.services();
    let found = services.find_map(|service| service.methods().find(has_request));
    found.ok_or_else(|| format!("{name} is no request"))
}

fn pool() -> Result<&'static DescriptorPool, String> {
    static POOL: OnceLock<Result<DescriptorPool, String>> = OnceLock::new();
    let pool = POOL.get_or_init(|| DescriptorPool::decode(proto::DESCRIPTORS).map_err(text));
    pool.as_ref().map_err(Clone::clone)
}

fn text(error: impl ToString) -> String {
    error.to_string()
}
