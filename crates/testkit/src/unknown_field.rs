//! A field of a later version of the program, for stored documents.

/// A field of an unassigned number with the text "kept".
pub const FIELD: &[u8] = b"\xc2\x3e\x04kept";

/// Appends [`FIELD`] to an encoded message.
pub fn with_field(message: &[u8]) -> Vec<u8> {
    [message, FIELD].concat()
}

/// Returns true if an encoded message contains [`FIELD`].
pub fn has_field(message: &[u8]) -> bool {
    message.windows(FIELD.len()).any(|part| part == FIELD)
}
