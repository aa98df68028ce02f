//! Fields of stored messages that this program does not know. A newer program wrote them; they are
//! kept as they were encoded, and written again with the message that they belong to.

use prost::encoding::{WireType, encode_key, encode_varint};

use crate::directory::encoded::fields::{Field, fields};

/// The fields of one message whose numbers are higher than the known ones.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Unknown(Vec<u8>);

impl Unknown {
    /// The fields of `message` after the field number `last`.
    pub fn after(last: u32, message: &[u8]) -> Self {
        let unknown = fields(message).filter(|field| field.tag > last);
        Self(unknown.flat_map(|field| field.whole.iter().copied()).collect())
    }

    /// The fields of a message that stands in `message` under this number.
    pub fn within(tag: u32, last: u32, message: &[u8]) -> Self {
        let parts = fields(message).filter(|field| field.tag == tag);
        Self(parts.flat_map(|field| Self::after(last, field.bytes).0).collect())
    }

    /// Whether there are none.
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Adds them to the message that they belong to.
    pub fn write(&self, message: &mut Vec<u8>) {
        message.extend(&self.0);
    }
}

/// Adds a message to another one, as its field with this number.
pub fn write_message(tag: u32, inner: &[u8], message: &mut Vec<u8>) {
    encode_key(tag, WireType::LengthDelimited, message);
    encode_varint(inner.len() as u64, message);
    message.extend(inner);
}

/// The contents of the fields with this number.
pub fn messages(tag: u32, message: &[u8]) -> impl Iterator<Item = &[u8]> {
    fields(message).filter(move |field: &Field<'_>| field.tag == tag).map(|field| field.bytes)
}

/// Shows the length alone: it may be personal data.
impl std::fmt::Debug for Unknown {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Unknown({} bytes)", self.0.len())
    }
}
