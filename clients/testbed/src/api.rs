//! The methods and messages of the API, by their descriptors.

use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use prost::Message;
use prost_reflect::{DescriptorPool, DynamicMessage, MessageDescriptor, MethodDescriptor};
use prost_reflect::{ReflectMessage, Value as FieldValue};
use serde_json::Value;

use crate::{Outcome, context};

/// The package of the services.
pub const PACKAGE: &str = "polynym.v1";

/// The maximum time of a call of the testbed itself.
pub const DIRECT_TIMEOUT: Duration = Duration::from_secs(60);

/// The descriptors.
pub struct Api(DescriptorPool);

impl Api {
    /// Decodes the descriptors.
    pub fn new() -> Outcome<Self> {
        DescriptorPool::decode(polynym_proto::DESCRIPTORS).map(Self).map_err(context("descriptors"))
    }

    /// The method of a name: its service and its own, with a slash between them.
    pub fn method(&self, name: &str) -> Outcome<MethodDescriptor> {
        let (service, method) = name.split_once('/').ok_or_else(|| format!("no method {name}"))?;
        let service = self.0.get_service_by_name(&format!("{PACKAGE}.{service}"));
        service
            .and_then(|service| service.methods().find(|found| found.name() == method))
            .ok_or_else(|| format!("no method {name}"))
    }

    /// The message of a name such as `User`.
    pub fn message(&self, name: &str) -> Outcome<MessageDescriptor> {
        let full = format!("{PACKAGE}.{name}");
        self.0.get_message_by_name(&full).ok_or_else(|| format!("no message {name}"))
    }

    /// The services and their methods.
    pub fn methods(&self) -> impl Iterator<Item = MethodDescriptor> {
        let services = self.0.services().filter(|service| service.package_name() == PACKAGE);
        services.flat_map(|service| service.methods().collect::<Vec<_>>())
    }
}

/// Whether the method changes nothing.
pub fn only_reads(method: &MethodDescriptor) -> bool {
    use prost_reflect::prost_types::method_options::IdempotencyLevel;
    let options = method.method_descriptor_proto().options.as_ref();
    options.is_some_and(|options| options.idempotency_level() == IdempotencyLevel::NoSideEffects)
}

/// A message from JSON.
pub fn parse(descriptor: MessageDescriptor, json: &Value) -> Outcome<DynamicMessage> {
    DynamicMessage::deserialize(descriptor, json).map_err(context("a request of the scenario"))
}

/// The message as JSON.
pub fn json(message: &DynamicMessage) -> Outcome<Value> {
    serde_json::to_value(message).map_err(context("a message"))
}

/// The message in base64.
pub fn encode(message: &DynamicMessage) -> Value {
    Value::from(STANDARD.encode(message.encode_to_vec()))
}

/// A message from base64.
pub fn decode(descriptor: MessageDescriptor, text: &Value) -> Outcome<DynamicMessage> {
    let text = text.as_str().ok_or_else(|| format!("no message: {text}"))?;
    let bytes = STANDARD.decode(text).map_err(context("base64"))?;
    DynamicMessage::decode(descriptor, bytes.as_slice()).map_err(context("a message"))
}

/// Sets an empty text field, if the message has it.
pub fn set_if_empty(message: &mut DynamicMessage, field: &str, text: &str) {
    if let Some(field) = message.descriptor().get_field_by_name(field)
        && !message.has_field(&field)
    {
        message.set_field(&field, FieldValue::String(text.to_owned()));
    }
}

/// The text of a field; empty if there is none.
pub fn text(message: &DynamicMessage, field: &str) -> String {
    let value = message.get_field_by_name(field);
    value.and_then(|value| value.as_str().map(str::to_owned)).unwrap_or_default()
}

/// The messages of a repeated field.
pub fn list(message: &DynamicMessage, field: &str) -> Vec<DynamicMessage> {
    let value = message.get_field_by_name(field);
    let items = value.as_ref().and_then(|value| value.as_list()).unwrap_or_default();
    items.iter().filter_map(|item| item.as_message().cloned()).collect()
}
