//! Why a caller makes a call: its reason, and the operation that the call belongs to.

use crate::error::{Error, Invalid};
use crate::text::check_text;

/// The header with the reason of a call: percent-encoded UTF-8, as in `grpc-message`.
pub const REASON_HEADER: &str = "polynym-reason";
/// The header with the id of the operation.
pub const OPERATION_ID_HEADER: &str = "polynym-operation-id";
/// The maximum number of characters of the id of an operation.
const MAX_OPERATION_CHARS: usize = 64;

const OPERATION_RULE: &str = "at most 64 letters A to Z and a to z, digits, and . _ : -";

/// Why a caller makes a call. Events keep it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Purpose<'a> {
    /// The reason in the caller's words; may be empty.
    pub reason: &'a str,
    /// The id that all calls of one operation share, such as those of a bulk change; may be empty.
    pub operation_id: &'a str,
}

impl Purpose<'_> {
    /// Checks both texts.
    ///
    /// # Errors
    /// [`Error::Invalid`] with the rule that is broken.
    pub fn check(&self) -> Result<(), Error> {
        check_text(REASON_HEADER, self.reason)?;
        check_operation_id(OPERATION_ID_HEADER, self.operation_id)
    }

    /// The reason as logs have it: without words that may be emails, phone numbers or other
    /// identifiers of people, which never appear in a log.
    pub(crate) fn logged_reason(&self) -> String {
        let words = self.reason.split_whitespace().map(|word| match is_identifying(word) {
            true => "***",
            false => word,
        });
        words.collect::<Vec<_>>().join(" ")
    }
}

/// Checks the id of an operation in this field.
///
/// # Errors
/// [`Error::Invalid`] with the rule that is broken.
pub(crate) fn check_operation_id(field: &str, id: &str) -> Result<(), Error> {
    let is_allowed = |c: u8| c.is_ascii_alphanumeric() || b"._:-".contains(&c);
    match id.len() <= MAX_OPERATION_CHARS && id.bytes().all(is_allowed) {
        true => Ok(()),
        false => Err(Error::invalid(Invalid::Field, field, OPERATION_RULE)),
    }
}

/// Whether a word has a mark of an address, a handle or a link, or the digits of a phone number.
fn is_identifying(word: &str) -> bool {
    let digits = word.chars().filter(|c| c.is_numeric()).count();
    let inner = word.trim_matches(|c: char| !c.is_alphanumeric() && c != '@');
    inner.contains(['@', '＠', '/', ':']) || digits > 6
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logs_have_the_reason_without_identifiers() {
        let reason = "ticket CRM-4711: joe@example.com, +4915112345678 and handle:joe left";
        let purpose = Purpose { reason, ..Purpose::default() };
        assert_eq!(purpose.logged_reason(), "ticket CRM-4711: *** *** and *** left");
        let purpose = Purpose { reason: "left the company, CRM-4711", ..Purpose::default() };
        assert_eq!(purpose.logged_reason(), "left the company, CRM-4711");
    }

    #[test]
    fn texts_are_bounded() {
        let check = |reason: &str, operation_id: &str| Purpose { reason, operation_id }.check();
        assert!(check("", "").is_ok());
        assert!(check("left the company: größer", "import:2026-11.a_b").is_ok());
        assert!(check(&"ü".repeat(256), &"a".repeat(64)).is_ok());
        assert!(check(&"ü".repeat(257), "").is_err());
        assert!(check("two\nlines", "").is_err());
        assert!(check("", &"a".repeat(65)).is_err());
        assert!(check("", "joe@example.com").is_err());
        assert!(check("", "two words").is_err());
    }
}
