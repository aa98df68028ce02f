//! Messages as JSON, in the mapping of protocol buffers.

use prost::Message;
use prost_reflect::{DynamicMessage, MessageDescriptor};
use tonic::Status;

use super::unique::UniqueKeys;
use crate::memory_budget::Reservation;
use crate::protocol;
use crate::request_body::{PREFIX, reserve};
use crate::rich_status::internal;

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
    let wrong = |error: serde_json::Error| protocol::message_invalid(&error.to_string());
    let mut json = serde_json::Deserializer::from_slice(text);
    let decoded = DynamicMessage::deserialize(message.clone(), &mut json).map_err(wrong)?;
    json.end().map_err(wrong)?;
    serde_json::from_slice::<UniqueKeys>(text).map_err(wrong)?;
    let mut framed = vec![0; PREFIX];
    decoded.encode(&mut framed).map_err(|_| internal())?;
    set_length(&mut framed);
    Ok(framed)
}

/// Writes the length of a message into the prefix in front of it.
pub fn set_length(framed: &mut [u8]) {
    let length = (framed.len() - PREFIX) as u32;
    framed[1..PREFIX].copy_from_slice(&length.to_be_bytes());
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
