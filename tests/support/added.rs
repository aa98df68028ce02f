//! Fields that a newer program might add to what is stored.

/// A field with a number that no program uses: the text "kept".
pub const FIELD: &[u8] = b"\xc2\x3e\x04kept";

/// A message with that field.
pub fn with_field(message: &[u8]) -> Vec<u8> {
    [message, FIELD].concat()
}

/// Whether a message has the field.
pub fn has_field(message: &[u8]) -> bool {
    message.windows(FIELD.len()).any(|part| part == FIELD)
}
