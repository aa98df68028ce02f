//! The record that a dry run keeps of what each rule changed.
//!
//! The rules run once, over a `Trace`: `()` for a parse, where it costs nothing, and a list of
//! changes for the dry run.

use std::borrow::Cow;
use std::fmt;

use unicode_normalization::{UnicodeNormalization, is_nfc};

/// One rule and what it changed. The rules' words are listed in `docs/identifiers.md`.
#[derive(Clone, PartialEq, Eq)]
pub struct Change {
    /// The rule's word.
    pub rule: &'static str,
    /// The part of the value that the rule looked at.
    pub before: String,
    /// The value after the rule.
    pub after: String,
}

/// Shows the rule alone: values are personal data.
impl fmt::Debug for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Change({}, …)", self.rule)
    }
}

/// Receives each step of the rules.
pub(super) trait Trace {
    /// A rule made `after` of `before`; they may be equal.
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
