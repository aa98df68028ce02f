//! Domains of email addresses and URLs: how long one may be as it was typed.

/// The bytes of a typed domain: a canonical one has at most 253 characters, and each may stand for one of four bytes.
const MAX_BYTES: usize = 1_024;
/// The characters of a typed label: a canonical one has at most 63, and each may have been typed in four parts.
const MAX_LABEL: usize = 4 * 63;

/// Whether a domain is longer than one that is valid is ever typed. What Punycode (RFC 3492) takes for a label grows with
/// the square of its length.
pub(super) fn is_too_long(typed: &str) -> bool {
    // The full stops of UTS 46.
    let mut labels = typed.split(['.', '\u{3002}', '\u{ff0e}', '\u{ff61}']);
    typed.len() > MAX_BYTES || labels.any(|label| label.chars().nth(MAX_LABEL).is_some())
}
