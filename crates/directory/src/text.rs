//! The rules for texts that people see.

use crate::error::{Error, Invalid};
use polynym_identifier::{character_issue, is_mark};

/// The characters of a text field.
const MAX_TEXT_CHARS: usize = 256;

/// Checks a text field that people see.
///
/// # Errors
/// [`Error::Invalid`], with the rule that it breaks.
pub(crate) fn check_text(field: &str, text: &str) -> Result<(), Error> {
    let error = |rule| Err(Error::invalid(Invalid::Field, field, rule));
    if text.chars().nth(MAX_TEXT_CHARS).is_some() {
        return error("at most 256 characters");
    }
    if !text.chars().all(|c| is_displayable(&c)) {
        return error("no control, invisible or unassigned characters");
    }
    if !text.is_empty() && text.chars().all(|c| c.is_whitespace() || character_issue(c).is_some()) {
        return error("not blank: leave it empty");
    }
    if text.starts_with(is_mark) {
        return error("no combining mark at the start");
    }
    Ok(())
}

/// Whether a character may appear in displayed text. Of the invisible characters, only those that
/// scripts and emoji need: joiners, direction marks, variation selectors and tags.
pub(crate) fn is_displayable(c: &char) -> bool {
    let is_needed = matches!(
        c,
        '\u{200c}'..='\u{200f}' | '\u{61c}' | '\u{fe00}'..='\u{fe0f}' | '\u{e0020}'..='\u{e007f}' | '\u{e0100}'..='\u{e01ef}'
    );
    is_needed
        || !(c.is_control()
            || matches!(c, '\u{2028}' | '\u{2029}')
            || character_issue(*c).is_some())
}
