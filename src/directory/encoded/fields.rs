//! The fields of an encoded protocol buffer, without decoding it (protobuf.dev, "Encoding").

/// A field of an encoded message.
pub struct Field<'a> {
    pub tag: u32,
    /// All of it, with its tag.
    pub whole: &'a [u8],
    /// The content of a string, bytes or message field; empty for a number.
    pub bytes: &'a [u8],
    /// The value of a field that holds a number of variable length; zero for any other.
    pub number: u64,
}

/// The fields of `message`, in order; ends early where the bytes make no sense.
pub fn fields(mut message: &[u8]) -> impl Iterator<Item = Field<'_>> {
    std::iter::from_fn(move || next(&mut message))
}

/// The content of the first field with this tag; empty where there is none, as for a field with its
/// default value.
pub fn first(message: &[u8], tag: u32) -> &[u8] {
    fields(message).find(|field| field.tag == tag).map_or(&[], |field| field.bytes)
}

/// The value of the first number with this tag; zero where there is none.
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

/// The first `length` bytes of `message`, which go on after them.
pub fn take<'a>(message: &mut &'a [u8], length: usize) -> Option<&'a [u8]> {
    let (bytes, rest) = message.split_at_checked(length)?;
    *message = rest;
    Some(bytes)
}

/// The number of variable length that `message` begins with, which goes on after it.
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
