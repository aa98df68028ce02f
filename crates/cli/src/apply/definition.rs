//! Reads definitions of attributes.

use std::collections::BTreeMap;

use polynym_presentation::attribute::TYPES;
use polynym_proto::v1::AttributeDefinition;

use super::node::{Data, Node};
use super::reader::{NAME, Reader, text};

/// The maximum number of definitions.
pub const MAX_DEFINITIONS: usize = 200;
/// The maximum bytes of an attribute's name.
pub const MAX_NAME_BYTES: usize = 256;
/// The type of the values.
pub const TYPE: &str = "type";
/// Whether the attribute is indexed.
pub const INDEXED: &str = "indexed";
/// Whether the attribute is evidence of duplicates.
pub const EVIDENCE: &str = "evidence";
/// Whether FindUsers finds users by the attribute.
pub const FIND: &str = "find";

impl Reader<'_> {
    /// The definitions of a tenant, by name.
    pub fn definitions(&mut self, node: Node) -> Vec<AttributeDefinition> {
        let position = node.position;
        let mut definitions = BTreeMap::new();
        for node in self.items(node) {
            let position = node.position;
            let Some(definition) = self.definition(node) else { continue };
            let name = definition.name.clone();
            if definitions.insert(name.clone(), definition).is_some() {
                self.fault(position, format!("attribute {name} is defined twice"));
            }
        }
        if definitions.len() > MAX_DEFINITIONS {
            self.fault(position, format!("at most {MAX_DEFINITIONS} definitions"));
        }
        definitions.into_values().collect()
    }

    /// A definition; none if it has no valid name.
    fn definition(&mut self, node: Node) -> Option<AttributeDefinition> {
        let position = node.position;
        let mut definition = AttributeDefinition { indexed: Some(true), ..Default::default() };
        let mut has_name = false;
        for (key, value) in self.entries(node, &[NAME, TYPE, INDEXED, EVIDENCE, FIND]) {
            match key.text.as_str() {
                NAME => {
                    has_name = true;
                    definition.name = self.attribute_name(&value);
                }
                TYPE => definition.r#type = self.value_type(&value),
                INDEXED => definition.indexed = Some(self.switch(&value)),
                EVIDENCE => definition.evidence = self.switch(&value),
                _ => definition.find = self.switch(&value),
            }
        }
        if !has_name {
            self.fault(position, "a definition needs the `name` of its attribute");
        }
        Some(definition).filter(|definition| !definition.name.is_empty())
    }

    /// The name of an attribute; empty if it is none.
    fn attribute_name(&mut self, node: &Node) -> String {
        let is_name = |name: &&str| {
            (1..=MAX_NAME_BYTES).contains(&name.len()) && !name.contains(char::is_control)
        };
        let name = text(node).filter(is_name);
        if name.is_none() {
            let rule = "an attribute's name is a text of 1 to 256 bytes without control \
                        characters; write one that looks like a number in quotes";
            self.fault(node.position, rule);
        }
        name.unwrap_or_default().to_owned()
    }

    fn value_type(&mut self, node: &Node) -> i32 {
        let name = text(node).filter(|name| !name.is_empty());
        let known = name.and_then(|name| TYPES.iter().find(|known| known.argument == name));
        if known.is_none() {
            let names: Vec<_> = type_names().collect();
            self.fault(node.position, format!("write one of {}", names.join(", ")));
        }
        known.map_or(0, |known| known.kind.into())
    }

    fn switch(&mut self, node: &Node) -> bool {
        let Data::Switch(on) = node.data else {
            self.fault(node.position, "write true or false");
            return false;
        };
        on
    }
}

/// The names of the types.
pub fn type_names() -> impl Iterator<Item = &'static str> {
    TYPES.iter().map(|known| known.argument).filter(|name| !name.is_empty())
}
