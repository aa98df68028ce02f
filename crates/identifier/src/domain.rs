//! Domains of email addresses and URLs.

/// The maximum bytes of a typed domain: 253 canonical characters, each typed as up to four bytes.
const MAX_BYTES: usize = 1_024;
/// The maximum characters of a typed label: 63 canonical ones, each typed as up to four.
const MAX_LABEL: usize = 4 * 63;

/// Whether a typed domain is too long to be valid. The cost of Punycode (RFC 3492) grows with the
/// square of a label's length.
pub(super) fn is_too_long(typed: &str) -> bool {
    // The full stops of UTS 46.
    let mut labels = typed.split(['.', '\u{3002}', '\u{ff0e}', '\u{ff61}']);
    typed.len() > MAX_BYTES || labels.any(|label| label.chars().nth(MAX_LABEL).is_some())
}

/// Whether an ASCII domain parses as an IPv4 address: the check "ends in a number" of WHATWG's URL
/// standard, section 3.5.
pub(super) fn ends_in_a_number(domain: &str) -> bool {
    let last = domain.rsplit('.').next().unwrap_or_default();
    match last.strip_prefix("0x") {
        Some(digits) => digits.bytes().all(|b| b.is_ascii_hexdigit()),
        None => !last.is_empty() && last.bytes().all(|b| b.is_ascii_digit()),
    }
}
