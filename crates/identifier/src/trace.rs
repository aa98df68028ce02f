//! Records the changes of each rule.
//!
//! The rules report to a `Trace`: `()` when parsing, which costs nothing, or a list of changes in a
//! dry run.

use std::borrow::Cow;
use std::fmt;

use unicode_normalization::{UnicodeNormalization, is_nfc};

/// A rule and its change.
#[derive(Clone, PartialEq, Eq)]
pub struct Change {
    /// The name of the rule.
    pub rule: &'static str,
    /// The part of the value before the rule.
    pub before: String,
    /// The part after the rule.
    pub after: String,
}

/// Shows only the rule: values are personal data.
impl fmt::Debug for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Change({}, …)", self.rule)
    }
}

/// Receives each step of the rules.
pub(super) trait Trace {
    /// A rule turned `before` into `after`; they may be equal.
    fn step(&mut self, rule: &'static str, before: &str, after: &str);
}

impl Trace for () {
    fn step(&mut self, _: &'static str, _: &str, _: &str) {}
}

impl Trace for Vec<Change> {
    fn step(&mut self, rule: &'static str, before: &str, after: &str) {
        if before != after {
            self.push(Change { rule, before: before.to_owned(), after: after.to_owned() });
        }
    }
}

/// Unicode normalization form C (UAX 15).
pub(super) fn nfc(text: &str) -> Cow<'_, str> {
    if is_nfc(text) { Cow::Borrowed(text) } else { text.nfc().collect::<String>().into() }
}
