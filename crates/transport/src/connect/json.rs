//! Messages as JSON, in the mapping of protocol buffers.

use prost::Message;
use prost_reflect::{DynamicMessage, MessageDescriptor};
use tonic::Status;

use super::unique::UniqueKeys;
use crate::memory_budget::Reservation;
use crate::protocol;
use crate::request_body::{PREFIX, reserve, set_length};
use crate::rich_status::internal;

/// The maximum characters of an error.
const MAX_ERROR_CHARS: usize = 500;

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

/// The text of an error without the value that it quotes, which may be personal data, and without
/// the end of a long name.
fn without_values(text: &str) -> String {
    let quoted =
        [("string \"", '"'), ("enum value '", '\'')].into_iter().find_map(|(start, end)| {
            let (before, value) = text.split_once(start)?;
            Some((before, start, &value[value.rfind(end)?..]))
        });
    let text = match quoted {
        Some((before, start, after)) => format!("{before}{start}…{after}"),
        None => text.to_owned(),
    };
    text.chars().take(MAX_ERROR_CHARS).collect()
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
            ("unrecognized field name 'nam'", "unrecognized field name 'nam'"),
        ] {
            assert_eq!(without_values(text), shown);
        }
        assert_eq!(without_values(&"x".repeat(10_000)).len(), MAX_ERROR_CHARS);
    }
}
