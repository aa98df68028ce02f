//! Values of attributes in forms: a type, and a text.

use polynym_presentation::attribute::{self, TYPES};
use polynym_proto::time;
use polynym_proto::v1::attribute_value::Kind;
use polynym_proto::v1::{AttributeValue, StringList};

/// The maximum bytes of a list in a form.
const MAX_TEXT: usize = 16 << 10;

/// The types that a form offers: the name and the label.
pub fn types() -> impl Iterator<Item = (&'static str, &'static str)> {
    TYPES.iter().skip(1).map(|known| (known.argument, known.label))
}

/// Reads a value of a type.
///
/// # Errors
/// The expected form of the value, as a sentence.
pub fn parse(type_name: &str, text: &str) -> Result<AttributeValue, &'static str> {
    // Browsers send line breaks as CR and LF.
    let text = text.replace("\r\n", "\n");
    let trimmed = text.trim();
    let kind = match type_name {
        "int" => {
            let number = trimmed.parse().map_err(|_| "Type a whole number, such as 42.")?;
            Kind::IntValue(number)
        }
        "double" => Kind::DoubleValue(trimmed.parse().map_err(|_| "Type a number, such as 0.5.")?),
        "bool" => Kind::BoolValue(match &*trimmed.to_lowercase() {
            "yes" | "true" => true,
            "no" | "false" => false,
            _ => return Err("Type yes or no."),
        }),
        "time" => {
            let expected = "Type a time, such as 2026-01-31T12:00:00Z.";
            Kind::TimeValue(time::parse(trimmed).ok_or(expected)?)
        }
        "list" => {
            let values = text.lines().filter(|line| !line.is_empty()).map(str::to_owned);
            Kind::ListValue(StringList { values: values.collect() })
        }
        "string" => Kind::StringValue(text),
        _ => return Err("Choose a type."),
    };
    Ok(AttributeValue { kind: Some(kind) })
}

/// The type and the text of a value, which `parse` reads again. None for a list that a form cannot
/// show: one that is long, or that has line breaks or an empty text.
pub fn editable(value: &AttributeValue) -> Option<(&'static str, String)> {
    let kind = value.kind.as_ref()?;
    let text = attribute::text(value, attribute::PAGE);
    if let Kind::ListValue(list) = kind {
        let is_odd = |text: &String| text.is_empty() || text.contains(['\n', '\r']);
        if list.values.iter().any(is_odd) || text.len() > MAX_TEXT {
            return None;
        }
    }
    Some((attribute::words(attribute::type_of(kind)).argument, text))
}

/// The attribute as an argument of the command line: `NAME:TYPE=VALUE`. None for a list with commas
/// in its texts.
pub fn argument(name: &str, value: &AttributeValue) -> Option<String> {
    let (type_name, text) = editable(value)?;
    let text = match type_name {
        "bool" => if text == "yes" { "true" } else { "false" }.to_owned(),
        "list" if text.contains(',') => return None,
        "list" => text.replace('\n', ","),
        _ => text,
    };
    Some(format!("{name}:{type_name}={text}")).filter(|_| !name.contains('='))
}

/// The path of an attribute in an update mask. Names that the JSON of a mask would change are
/// written in hexadecimal digits.
pub fn mask_path(name: &str) -> String {
    if name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit()) {
        return format!("attributes.{name}");
    }
    let digits: String = name.bytes().map(|byte| format!("{byte:02x}")).collect();
    format!("attributes_hex.x{digits}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_survive_a_form() {
        for (type_name, text) in [
            ("string", "a\nb "),
            ("int", "-3"),
            ("double", "0.5"),
            ("bool", "no"),
            ("time", "2026-01-31T12:00:00.500Z"),
            ("list", "a\nb c"),
            ("list", ""),
        ] {
            let sent = text.replace('\n', "\r\n");
            let value = parse(type_name, &sent).unwrap();
            assert_eq!(editable(&value), Some((type_name, text.to_owned())));
        }
        for (type_name, text) in [("int", "3.5"), ("bool", "maybe"), ("time", "now"), ("", "a")] {
            assert!(parse(type_name, text).is_err(), "{type_name}");
        }
    }

    #[test]
    fn arguments_and_masks_name_the_attribute() {
        let list = parse("list", "a\nb").unwrap();
        assert_eq!(argument("tags", &list).unwrap(), "tags:list=a,b");
        assert_eq!(argument("tags", &parse("list", "a,b").unwrap()), None);
        assert_eq!(mask_path("team"), "attributes.team");
        assert_eq!(mask_path("loginCount"), "attributes_hex.x6c6f67696e436f756e74");
    }
}
