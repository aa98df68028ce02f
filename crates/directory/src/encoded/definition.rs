//! Converts definitions of attributes to messages and back.

use std::collections::BTreeMap;

use crate::encoded::decode::read_time;
use crate::encoded::encode::time_message;
use crate::model::attribute_definition::{AttributeDefinition, ValueType};
use polynym_proto::v1;
use polynym_proto::v1::AttributeType;

const TYPES: [(ValueType, AttributeType); 6] = [
    (ValueType::String, AttributeType::String),
    (ValueType::Int, AttributeType::Int),
    (ValueType::Double, AttributeType::Double),
    (ValueType::Bool, AttributeType::Bool),
    (ValueType::Time, AttributeType::Time),
    (ValueType::List, AttributeType::List),
];

/// Definitions as messages, by name.
pub fn definition_messages(
    definitions: &BTreeMap<String, AttributeDefinition>,
) -> Vec<v1::AttributeDefinition> {
    let message = |(name, definition): (&String, &AttributeDefinition)| {
        let value_type = TYPES.iter().find(|(known, _)| Some(*known) == definition.value_type);
        v1::AttributeDefinition {
            name: name.clone(),
            indexed: Some(definition.indexed),
            r#type: value_type.map_or(0, |(_, message)| i32::from(*message)),
            evidence: definition.evidence,
            find: definition.find,
            index_change_time: definition.index_change.map(time_message),
        }
    };
    definitions.iter().map(message).collect()
}

/// The definition of a message; none if its type is unknown.
pub fn read_definition(message: &v1::AttributeDefinition) -> Option<AttributeDefinition> {
    let known = TYPES.iter().find(|(_, known)| i32::from(*known) == message.r#type);
    if known.is_none() && message.r#type != 0 {
        return None;
    }
    Some(AttributeDefinition {
        indexed: message.indexed.unwrap_or(true),
        value_type: known.map(|(value_type, _)| *value_type),
        evidence: message.evidence,
        find: message.find,
        index_change: message.index_change_time.map(|time| read_time(Some(time))),
    })
}
