//! Attributes: the data of a user besides its identities.

use std::collections::BTreeMap;

use unicode_normalization::is_nfc;

use crate::error::{Error, Invalid};
use crate::text::place_of;
use crate::timestamp::Timestamp;

/// The value of an attribute.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// A text.
    String(String),
    /// An integer.
    Int(i64),
    /// A finite number.
    Double(f64),
    /// A bool.
    Bool(bool),
    /// An instant.
    Time(Timestamp),
    /// A list of texts.
    List(Vec<String>),
}

const MAX_NAME_BYTES: usize = 256;
const MAX_TEXT_BYTES: usize = 4_096;
const MAX_LIST_ITEMS: usize = 100;

/// Checks names and values. The error names `field` and the attribute: a bad name by its position.
pub(crate) fn check(attributes: &BTreeMap<String, Value>, field: &str) -> Result<(), Error> {
    for (n, (name, value)) in attributes.iter().enumerate() {
        check_name(n, name, field)?;
        let checked = check_value(value).map_err(str::to_owned).and_then(|()| check_texts(value));
        checked.map_err(|rule| invalid(&format!("{field}.{name}"), &rule))?;
    }
    Ok(())
}

/// Checks names. The error names `field` and the position of a bad name.
pub(crate) fn check_names<'n>(
    names: impl Iterator<Item = &'n String>,
    field: &str,
) -> Result<(), Error> {
    names.enumerate().try_for_each(|(n, name)| check_name(n, name, field))
}

fn check_name(n: usize, name: &str, field: &str) -> Result<(), Error> {
    if is_name(name) {
        return Ok(());
    }
    Err(invalid(&format!("{field} (name {n} in order)"), NAME_RULE))
}

pub(crate) const NAME_RULE: &str = "an attribute's name has 1 to 256 bytes in Unicode's \
    normalisation form C, and no control characters";

/// Whether `name` is a valid name of an attribute.
pub(crate) fn is_name(name: &str) -> bool {
    (1..=MAX_NAME_BYTES).contains(&name.len()) && !name.contains(char::is_control) && is_nfc(name)
}

const CONTROL_RULE: &str = "a text has no control characters except tabs and line breaks";

/// Control characters drive terminals. Line breaks are common.
fn is_forbidden(c: char) -> bool {
    c.is_control() && !matches!(c, '\t' | '\n' | '\r')
}

fn check_value(value: &Value) -> Result<(), &'static str> {
    match value {
        Value::String(text) if text.len() > MAX_TEXT_BYTES => Err("a text has at most 4,096 bytes"),
        Value::Double(number) if !number.is_finite() => Err("a number must be finite"),
        Value::List(items) if items.len() > MAX_LIST_ITEMS => Err("a list has at most 100 texts"),
        Value::List(items) if items.iter().any(|text| text.len() > MAX_TEXT_BYTES) => {
            Err("a text has at most 4,096 bytes")
        }
        _ => Ok(()),
    }
}

/// Names the first forbidden character of the texts of a value, and its place.
fn check_texts(value: &Value) -> Result<(), String> {
    let texts = match value {
        Value::String(text) => std::slice::from_ref(text),
        Value::List(items) => items,
        _ => &[],
    };
    let found = texts.iter().find_map(|text| place_of(text, is_forbidden));
    found.map_or(Ok(()), |place| Err(format!("{CONTROL_RULE}: {place}")))
}

fn invalid(field: &str, rule: &str) -> Error {
    Error::invalid(Invalid::Attribute, field, rule)
}
