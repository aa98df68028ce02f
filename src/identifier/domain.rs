//! Domains of email addresses and URLs: how long one may be as it was typed.

/// The bytes of a typed domain: a canonical one has at most 253 characters, and each may stand for
/// one of four bytes.
const MAX_BYTES: usize = 1_024;
/// The characters of a typed label: a canonical one has at most 63, and each may have been typed in
/// four parts.
const MAX_LABEL: usize = 4 * 63;

/// Whether a domain is longer than one that is valid is ever typed. What Punycode (RFC 3492) takes
/// for a label grows with the square of its length.
pub(super) fn is_too_long(typed: &str) -> bool {
    // The full stops of UTS 46.
    let mut labels = typed.split(['.', '\u{3002}', '\u{ff0e}', '\u{ff61}']);
    typed.len() > MAX_BYTES || labels.any(|label| label.chars().nth(MAX_LABEL).is_some())
}

/// Whether resolvers read an ASCII domain as an IPv4 address: the check "ends in a number" of
/// WHATWG's URL standard, section 3.5.
pub(super) fn ends_in_a_number(domain: &str) -> bool {
    let last = domain.rsplit('.').next().unwrap_or_default();
    let is = |digits: &str, test: fn(&u8) -> bool| digits.bytes().all(|b| test(&b));
    match last.strip_prefix("0x") {
        Some(digits) => is(digits, u8::is_ascii_hexdigit),
        None => !last.is_empty() && is(last, u8::is_ascii_digit),
    }
}
