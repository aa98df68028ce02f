//! Unknown fields of stored messages, written by a newer program. They are kept in encoded form and
//! written again with their message.

use prost::encoding::{WireType, encode_key, encode_varint};

/// The fields of one message with numbers above the known ones.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Unknown(Vec<u8>);

impl Unknown {
    /// The fields of `message` after the field number `last`.
    pub fn after(last: u32, message: &[u8]) -> Self {
        let unknown = fields(message).filter(|field| field.tag > last);
        Self(unknown.flat_map(|field| field.whole.iter().copied()).collect())
    }

    /// The unknown fields of the nested message with this number.
    pub fn within(tag: u32, last: u32, message: &[u8]) -> Self {
        Self(messages(tag, message).flat_map(|inner| Self::after(last, inner).0).collect())
    }

    /// Whether the message has no unknown fields.
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Appends them to their message.
    pub fn write(&self, message: &mut Vec<u8>) {
        message.extend(&self.0);
    }
}

/// Appends a nested message as the field with this number.
pub fn write_message(tag: u32, inner: &[u8], message: &mut Vec<u8>) {
    encode_key(tag, WireType::LengthDelimited, message);
    encode_varint(inner.len() as u64, message);
    message.extend(inner);
}

/// The contents of the fields with this number.
pub fn messages(tag: u32, message: &[u8]) -> impl Iterator<Item = &[u8]> {
    fields(message).filter(move |field| field.tag == tag).map(|field| field.bytes)
}

/// Shows only the length: the content may be personal data.
impl std::fmt::Debug for Unknown {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Unknown({} bytes)", self.0.len())
    }
}

/// A field of an encoded message.
pub struct Field<'a> {
    /// The number of the field.
    pub tag: u32,
    /// The whole field, with its tag.
    pub whole: &'a [u8],
    /// The content of a string, bytes or message field; empty for a number.
    pub bytes: &'a [u8],
    /// The value of a varint field; zero for any other.
    pub number: u64,
}

/// The fields of `message`, in order. Ends at the first malformed one.
pub fn fields(mut message: &[u8]) -> impl Iterator<Item = Field<'_>> {
    std::iter::from_fn(move || next(&mut message))
}

/// The content of the first field with this tag; empty by default.
pub fn first(message: &[u8], tag: u32) -> &[u8] {
    fields(message).find(|field| field.tag == tag).map_or(&[], |field| field.bytes)
}

/// The value of the first number with this tag; zero by default.
pub fn first_number(message: &[u8], tag: u32) -> u64 {
    fields(message).find(|field| field.tag == tag).map_or(0, |field| field.number)
}

fn next<'a>(message: &mut &'a [u8]) -> Option<Field<'a>> {
    let start = *message;
    let key = varint(message)?;
    let mut number = 0;
    let bytes: &[u8] = match key & 7 {
        0 => {
            number = varint(message)?;
            &[]
        }
        1 => take(message, 8).map(|_| &[][..])?,
        2 => {
            let length = varint(message)?;
            take(message, usize::try_from(length).ok()?)?
        }
        5 => take(message, 4).map(|_| &[][..])?,
        _ => return None,
    };
    let whole = &start[..start.len() - message.len()];

    Some(Field { tag: u32::try_from(key >> 3).ok()?, whole, bytes, number })
}

/// Takes the first `length` bytes off `message`.
pub fn take<'a>(message: &mut &'a [u8], length: usize) -> Option<&'a [u8]> {
    let (bytes, rest) = message.split_at_checked(length)?;
    *message = rest;
    Some(bytes)
}

/// Takes a varint off `message`.
pub fn varint(message: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let (byte, rest) = message.split_first()?;
        *message = rest;
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}
