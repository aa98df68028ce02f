//! The messages and enums that the methods of the API use.

use std::collections::{BTreeMap, BTreeSet};

use prost_reflect::{EnumDescriptor, Kind, MessageDescriptor, ServiceDescriptor};

/// The messages of an import, which over HTTP has lines.
const IMPORT_MESSAGES: [&str; 2] =
    ["polynym.v1.ImportUsersRequest", "polynym.v1.ImportUsersResponse"];
/// The options of an import, which over HTTP are parameters.
const IMPORT_OPTIONS: &str = "polynym.v1.ImportUsersRequest.Options";

/// Everything that has a schema of its own.
#[derive(Default)]
pub struct Reached {
    pub messages: BTreeMap<String, MessageDescriptor>,
    pub enums: BTreeMap<String, EnumDescriptor>,
    /// The names of the messages that a response may contain.
    pub responded: BTreeSet<String>,
}

/// The messages of requests and responses, and those inside them.
pub fn reach(services: &[ServiceDescriptor]) -> Reached {
    let mut reached = Reached::default();
    for method in services.iter().flat_map(ServiceDescriptor::methods) {
        reached.add(&method.output());
    }
    reached.responded = reached.messages.keys().cloned().collect();
    for method in services.iter().flat_map(ServiceDescriptor::methods) {
        reached.add(&method.input());
    }
    for name in IMPORT_MESSAGES {
        reached.messages.remove(name);
    }
    reached
}

impl Reached {
    fn add(&mut self, message: &MessageDescriptor) {
        let name = message.full_name();
        if is_well_known(name) || name == IMPORT_OPTIONS || self.messages.contains_key(name) {
            return;
        }
        self.messages.insert(name.to_owned(), message.clone());
        for field in message.fields() {
            let kind = match field.kind() {
                Kind::Message(entry) if field.is_map() => entry.map_entry_value_field().kind(),
                kind => kind,
            };
            match kind {
                Kind::Message(inner) => self.add(&inner),
                Kind::Enum(choices) => {
                    self.enums.insert(choices.full_name().to_owned(), choices);
                }
                _ => {}
            }
        }
    }
}

/// Whether a message has a JSON form of its own.
pub fn is_well_known(name: &str) -> bool {
    name.starts_with("google.protobuf.")
}
