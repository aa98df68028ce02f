//! Attributes: their types, definitions and values.

use polynym_proto::v1::attribute_value::Kind;
use polynym_proto::v1::{AttributeDefinition, AttributeType, AttributeValue};

/// A type of attributes.
#[derive(Clone, Copy, Debug)]
pub struct Type {
    /// The type.
    pub kind: AttributeType,
    /// The name on pages, such as `whole number`.
    pub name: &'static str,
    /// The name on the command line and in files, such as `int`; empty for any type.
    pub argument: &'static str,
    /// The label of a form's choice.
    pub label: &'static str,
}

const fn row(
    kind: AttributeType,
    name: &'static str,
    argument: &'static str,
    label: &'static str,
) -> Type {
    Type { kind, name, argument, label }
}

/// The types; the first one is any type.
pub static TYPES: [Type; 7] = [
    row(AttributeType::Unspecified, "any type", "", "Any type"),
    row(AttributeType::String, "text", "string", "Text"),
    row(AttributeType::Int, "whole number", "int", "Whole number"),
    row(AttributeType::Double, "number", "double", "Number"),
    row(AttributeType::Bool, "yes or no", "bool", "Yes or no"),
    row(AttributeType::Time, "time", "time", "Time"),
    row(AttributeType::List, "list of texts", "list", "List, one text per line"),
];

/// The words of a type.
pub fn words(kind: AttributeType) -> &'static Type {
    TYPES.iter().find(|known| known.kind == kind).unwrap_or(&TYPES[0])
}

/// The type of a value.
pub const fn type_of(value: &Kind) -> AttributeType {
    match value {
        Kind::StringValue(_) => AttributeType::String,
        Kind::IntValue(_) => AttributeType::Int,
        Kind::DoubleValue(_) => AttributeType::Double,
        Kind::BoolValue(_) => AttributeType::Bool,
        Kind::TimeValue(_) => AttributeType::Time,
        Kind::ListValue(_) => AttributeType::List,
    }
}

/// How values are written.
#[derive(Clone, Copy, Debug)]
pub struct Style {
    /// The words of false and true.
    switch: [&'static str; 2],
    /// The separator of the texts of a list.
    separator: &'static str,
}

/// The style of the command line and of files.
pub const PLAIN: Style = Style { switch: ["false", "true"], separator: ", " };
/// The style of pages and forms.
pub const PAGE: Style = Style { switch: ["no", "yes"], separator: "\n" };

/// A value as text; empty if there is none.
pub fn text(value: &AttributeValue, style: Style) -> String {
    match &value.kind {
        None => String::new(),
        Some(Kind::StringValue(text)) => text.clone(),
        Some(Kind::IntValue(number)) => number.to_string(),
        Some(Kind::DoubleValue(number)) => number.to_string(),
        Some(Kind::BoolValue(yes)) => style.switch[usize::from(*yes)].to_owned(),
        Some(Kind::TimeValue(time)) => time.to_string(),
        Some(Kind::ListValue(list)) => list.values.join(style.separator),
    }
}

/// A definition as text, after the name of its type, such as `int, indexed`.
pub fn definition(definition: &AttributeDefinition, type_name: &str) -> String {
    let indexed = if definition.indexed.unwrap_or(true) { "indexed" } else { "not indexed" };
    let evidence = if definition.evidence { ", evidence of duplicates" } else { "" };
    let find = if definition.find { ", finds users" } else { "" };
    format!("{type_name}, {indexed}{evidence}{find}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn definitions_say_what_they_are_for() {
        let own = AttributeDefinition { evidence: true, ..Default::default() };
        assert_eq!(definition(&own, "int"), "int, indexed, evidence of duplicates");
        let own = AttributeDefinition { find: true, ..Default::default() };
        assert_eq!(definition(&own, "int"), "int, indexed, finds users");
        assert_eq!(words(AttributeType::Int).argument, "int");
    }

    #[test]
    fn values_have_styles() {
        let value = AttributeValue { kind: Some(Kind::BoolValue(true)) };
        assert_eq!([text(&value, PLAIN), text(&value, PAGE)], ["true", "yes"]);
        assert_eq!(type_of(&value.kind.unwrap()), AttributeType::Bool);
    }
}
