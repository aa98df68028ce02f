//! The purpose of a call: the reason for it, and the operation that the call belongs to.

use std::time::Duration;

use crate::error::{Error, Invalid};
use crate::text::check_text;
use crate::timestamp::Timestamp;

/// The header with the reason of a call: percent-encoded UTF-8, as in `grpc-message`.
pub const REASON_HEADER: &str = "polynym-reason";
/// The header with the id of the operation.
pub const OPERATION_ID_HEADER: &str = "polynym-operation-id";
/// The maximum number of characters of the id of an operation.
const MAX_OPERATION_CHARS: usize = 64;

/// The beginning of the ids that the command and the console give to imports.
const IMPORT_PREFIX: &str = "import-";

const IMPORT_RULE: &str = "begins with `import-`, as the ids of imports do: choose another";

const OPERATION_RULE: &str = "at most 64 letters A to Z and a to z, digits, and . _ : -";

/// The most that the time in the id of an operation may be ahead when it begins.
const MAX_AHEAD: Duration = Duration::from_secs(300);
/// The most that a change may be older than the time in the id of its operation: servers' clocks
/// differ, too.
const SLACK: Duration = Duration::from_secs(600);

const TIME_RULE: &str = "ends in a UUID whose time is more than 5 minutes ahead of the server's";

/// The reason why a caller makes a call. Events keep it.
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

    /// Checks both texts before events get them.
    ///
    /// # Errors
    /// [`Error::Invalid`] with the rule that is broken.
    pub(crate) fn check_new(&self, now: Timestamp) -> Result<(), Error> {
        self.check()?;
        check_operation_time(OPERATION_ID_HEADER, self.operation_id, now)
    }

    /// The reason as logs have it: without words that may be emails, phone numbers or other
    /// identifiers of people, which never appear in a log.
    pub fn logged_reason(&self) -> String {
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

/// Checks that the id of a bulk change is not one of imports, whose undoing it would hold up.
///
/// # Errors
/// [`Error::Invalid`] with the rule that is broken.
pub(crate) fn check_bulk_id(field: &str, id: &str) -> Result<(), Error> {
    match id.starts_with(IMPORT_PREFIX) {
        true => Err(Error::invalid(Invalid::Field, field, IMPORT_RULE)),
        false => Ok(()),
    }
}

/// Checks the time in the id of an operation that makes changes now. An undo skips users that
/// changed before [`began_after`], so it would miss the changes of an operation with a later time.
///
/// # Errors
/// [`Error::Invalid`] with the rule that is broken.
pub(crate) fn check_operation_time(field: &str, id: &str, now: Timestamp) -> Result<(), Error> {
    match operation_time(id).is_some_and(|time| time > now.plus(MAX_AHEAD)) {
        true => Err(Error::invalid(Invalid::Field, field, TIME_RULE)),
        false => Ok(()),
    }
}

/// A time before all changes of an operation whose id has a time; none for other ids.
pub(crate) fn began_after(operation_id: &str) -> Option<Timestamp> {
    operation_time(operation_id).map(|time| time.minus(SLACK))
}

/// The time in an id that ends in a UUID with one (version 7, RFC 9562).
fn operation_time(id: &str) -> Option<Timestamp> {
    let uuid = id.get(id.len().checked_sub(36)?..)?;
    let (high, rest) = uuid.split_once('-')?;
    let (low, rest) = rest.split_once('-')?;
    let is_timed = rest.starts_with('7') && high.len() == 8 && low.len() == 4;
    let millis = i64::from_str_radix(&format!("{high}{low}"), 16).ok().filter(|_| is_timed)?;
    Some(Timestamp::from_millis(millis))
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

    #[test]
    fn ids_with_a_time_bound_the_operation() {
        // The example of RFC 9562, appendix A.6.
        let time = began_after("import-017f22e2-79b0-7cc3-98c4-dc0c0c07398f").unwrap();
        assert_eq!(time, Timestamp::from_millis(1_645_557_742_000 - 600_000));
        for id in ["", "import-2026", "import-919108f7-52d1-4320-9bac-f847db4148a8"] {
            assert_eq!(began_after(id), None);
        }
    }

    #[test]
    fn an_operation_does_not_begin_long_before_the_time_in_its_id() {
        let time = Timestamp::from_millis(1_645_557_742_000);
        let check =
            |operation_id: &str, now| Purpose { operation_id, ..Purpose::default() }.check_new(now);
        let id = "import-017f22e2-79b0-7cc3-98c4-dc0c0c07398f";
        assert!(check(id, time.minus(MAX_AHEAD)).is_ok());
        assert!(check(id, time.plus(MAX_AHEAD)).is_ok());
        assert!(check(id, time.minus(MAX_AHEAD + Duration::from_millis(1))).is_err());
        assert!(check("x-fffffffe-0000-7000-8000-000000000000", time).is_err());
        assert!(check("x-fffffffe-0000-4000-8000-000000000000", time).is_ok());
    }
}
