//! Messages as JSON, in the mapping of protocol buffers.

use prost::Message;
use prost_reflect::{DynamicMessage, MessageDescriptor};
use tonic::Status;

use super::unique::UniqueKeys;
use crate::budgets::state::Reservation;
use crate::protocol;
use crate::request_body::{PREFIX, reserve, set_length};
use crate::rich_status::internal;

/// The maximum characters of an error.
const MAX_ERROR_CHARS: usize = 500;

/// The byte order mark that some programs put in front of a text (RFC 8259, section 8.1).
const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();

/// The maximum memory of a value while a message is decoded.
const VALUE_BYTES: usize = 160;

/// The framed message of a JSON text. The memory of its values is reserved while it is decoded:
/// empty objects have two bytes as text, and many times that when decoded.
pub fn to_framed(
    text: &[u8],
    message: &MessageDescriptor,
    limit: usize,
    reservation: &mut Reservation,
) -> Result<Vec<u8>, Status> {
    let text = text.strip_prefix(BYTE_ORDER_MARK).unwrap_or(text);
    let decoding = values(text) * VALUE_BYTES;
    reserve(reservation, decoding)?;
    let framed = decode(text, message);
    reservation.release(decoding);
    let framed = framed?;
    let length = framed.len() - PREFIX;
    if length > limit {
        return Err(protocol::message_too_large(limit, length));
    }
    Ok(framed)
}

fn decode(text: &[u8], message: &MessageDescriptor) -> Result<Vec<u8>, Status> {
    let wrong =
        |error: serde_json::Error| protocol::message_invalid(&without_values(&error.to_string()));
    let mut json = serde_json::Deserializer::from_slice(text);
    let decoded = DynamicMessage::deserialize(message.clone(), &mut json).map_err(wrong)?;
    json.end().map_err(wrong)?;
    serde_json::from_slice::<UniqueKeys>(text).map_err(wrong)?;
    let mut framed = vec![0; PREFIX];
    decoded.encode(&mut framed).map_err(|_| internal())?;
    set_length(&mut framed);
    Ok(framed)
}

/// The starts and the ends of what errors quote, and whether it is a name.
const QUOTES: [(&str, char, bool); 7] = [
    ("string \"", '"', false),
    ("integer `", '`', false),
    ("floating point `", '`', false),
    ("character `", '`', false),
    ("enum value '", '\'', false),
    ("field name '", '\'', true),
    ("\"", '"', true),
];

/// The text of an error without the value that it quotes, which may be personal data, and without
/// the end of a long name. A name of letters and digits stays, as of a field that is misspelt.
pub fn without_values(text: &str) -> String {
    let quotes = QUOTES.into_iter().filter_map(|(start, end, is_name)| {
        let (before, value) = text.split_once(start)?;
        let (value, after) = value.split_at(value.rfind(end)?);
        Some((before, start, after, is_name && is_field_name(value)))
    });
    // The value itself may have quotes.
    let text = match quotes.min_by_key(|(before, ..)| before.len()) {
        Some((before, start, after, false)) => format!("{before}{start}…{after}"),
        _ => text.to_owned(),
    };
    text.chars().take(MAX_ERROR_CHARS).collect()
}

/// Whether a text has the form of a field's name, which no address and no number has.
fn is_field_name(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

/// Appends the JSON text of a message to `text`.
pub fn write(message: &MessageDescriptor, bytes: &[u8], text: &mut Vec<u8>) -> Result<(), Status> {
    let decoded = DynamicMessage::decode(message.clone(), bytes).map_err(|_| internal())?;
    serde_json::to_writer(text, &decoded).map_err(|_| internal())
}

/// An upper bound of the number of values in a JSON text.
fn values(text: &[u8]) -> usize {
    text.iter().filter(|byte| matches!(byte, b',' | b'{' | b'[')).count() + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_quote_no_value() {
        for (text, shown) in [
            (
                "invalid type: string \"joe@example.com\", expected a boolean at line 1 column 9",
                "invalid type: string \"…\", expected a boolean at line 1 column 9",
            ),
            ("unrecognized enum value 'joe' at line 1", "unrecognized enum value '…' at line 1"),
            (
                "invalid type: integer `14155552671`, expected a string at line 1 column 40",
                "invalid type: integer `…`, expected a string at line 1 column 40",
            ),
            (
                "invalid type: floating point `1415.5`, expected a string",
                "invalid type: floating point `…`, expected a string",
            ),
            (
                "invalid type: boolean `true`, expected a map",
                "invalid type: boolean `true`, expected a map",
            ),
            ("unrecognized field name 'nam'", "unrecognized field name 'nam'"),
            ("unrecognized field name 'o'neil@x.org' at", "unrecognized field name '…' at"),
            ("unrecognized field name 'a string \"b\"'", "unrecognized field name '…'"),
            ("unrecognized field name '14155552671'", "unrecognized field name '…'"),
            (r#""showDisabled" occurs twice"#, r#""showDisabled" occurs twice"#),
            (r#""a\"b@example.com" occurs twice"#, r#""…" occurs twice"#),
        ] {
            assert_eq!(without_values(text), shown);
        }
        assert_eq!(without_values(&"x".repeat(10_000)).len(), MAX_ERROR_CHARS);
    }
}
