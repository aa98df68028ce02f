//! The rules for texts that people see.

use std::borrow::Cow;

use crate::error::{Error, Invalid};
use polynym_identifier::{character_issue, is_mark};

/// The characters of a text field.
const MAX_TEXT_CHARS: usize = 256;

/// A place where a word may be broken. It shows nothing, and is no part of a name.
const SOFT_HYPHEN: char = '\u{ad}';

/// Returns a name as it is kept: without isolates or embeddings around the whole of it, which
/// programs add to text of another direction, and without soft hyphens.
///
/// # Errors
/// [`Error::Invalid`], with the rule that it breaks.
pub(crate) fn name<'t>(field: &str, text: &'t str) -> Result<Cow<'t, str>, Error> {
    let (inner, before) = unwrapped(text);
    check_characters(field, inner, before, |c| c == SOFT_HYPHEN)?;
    let kept = match inner.contains(SOFT_HYPHEN) {
        true => Cow::Owned(inner.replace(SOFT_HYPHEN, "")),
        false => Cow::Borrowed(inner),
    };
    check_text(field, &kept)?;
    Ok(kept)
}

/// Checks a text field that people see.
///
/// # Errors
/// [`Error::Invalid`], with the rule that it breaks.
pub(crate) fn check_text(field: &str, text: &str) -> Result<(), Error> {
    let error = |rule| Err(Error::invalid(Invalid::Field, field, rule));
    if text.chars().nth(MAX_TEXT_CHARS).is_some() {
        return error("at most 256 characters");
    }
    check_characters(field, text, 0, |_| false)?;
    if !text.is_empty() && text.chars().all(|c| c.is_whitespace() || character_issue(c).is_some()) {
        return error("not blank: leave it empty");
    }
    if text.starts_with(is_mark) {
        return error("no combining mark at the start");
    }
    Ok(())
}

/// Rejects characters that no displayed text has. `before` characters are in front of the text.
fn check_characters(
    field: &str,
    text: &str,
    before: usize,
    is_dropped: fn(char) -> bool,
) -> Result<(), Error> {
    let is_wrong = |c: char| !is_dropped(c) && !is_displayable(&c);
    let Some(place) = place_after(before, text, is_wrong) else { return Ok(()) };
    let message = format!("no control, invisible or unassigned characters: {place}");
    Err(Error::invalid(Invalid::Field, field, message))
}

/// The name and the place of the first wrong character of a text, in words.
pub(crate) fn place_of(text: &str, is_wrong: impl Fn(char) -> bool) -> Option<String> {
    place_after(0, text, is_wrong)
}

fn place_after(before: usize, text: &str, is_wrong: impl Fn(char) -> bool) -> Option<String> {
    let (at, c) = text.chars().enumerate().find(|(_, c)| is_wrong(*c))?;
    Some(format!("{} at character {}", character_name(c), before + at + 1))
}

/// The text between isolates or embeddings that are around the whole of it, and how many.
fn unwrapped(text: &str) -> (&str, usize) {
    let (mut inner, mut count) = (text, 0);
    while let Some(rest) = without_pair(inner) {
        (inner, count) = (rest, count + 1);
    }
    (inner, count)
}

/// The text between its first and its last character, if these are a pair of direction marks.
fn without_pair(text: &str) -> Option<&str> {
    let (is_start, end): (fn(char) -> bool, _) = match text.chars().next()? {
        '\u{202a}' | '\u{202b}' => (|c| matches!(c, '\u{202a}' | '\u{202b}'), '\u{202c}'),
        '\u{2066}'..='\u{2068}' => (|c| matches!(c, '\u{2066}'..='\u{2068}'), '\u{2069}'),
        _ => return None,
    };
    let inner = text.strip_prefix(is_start)?.strip_suffix(end)?;
    let mut open = 0;
    let mut is_inside = |c: char| {
        open += i32::from(is_start(c)) - i32::from(c == end);
        open >= 0
    };
    inner.chars().all(&mut is_inside).then_some(inner)
}

/// The code point of a character, with the name that Unicode gives it if it is a common one.
fn character_name(c: char) -> String {
    let code = u32::from(c);
    let name = NAMES.iter().find(|(known, _)| *known == c);
    name.map_or_else(|| format!("U+{code:04X}"), |(_, name)| format!("U+{code:04X} ({name})"))
}

/// Unicode's names of characters that texts are often copied with.
const NAMES: [(char, &str); 21] = [
    ('\0', "null"),
    ('\t', "tabulation"),
    ('\n', "line feed"),
    ('\r', "carriage return"),
    ('\u{7f}', "delete"),
    (SOFT_HYPHEN, "soft hyphen"),
    ('\u{200b}', "zero width space"),
    ('\u{2028}', "line separator"),
    ('\u{2029}', "paragraph separator"),
    ('\u{202a}', "left-to-right embedding"),
    ('\u{202b}', "right-to-left embedding"),
    ('\u{202c}', "pop directional formatting"),
    ('\u{202d}', "left-to-right override"),
    ('\u{202e}', "right-to-left override"),
    ('\u{2060}', "word joiner"),
    ('\u{2066}', "left-to-right isolate"),
    ('\u{2067}', "right-to-left isolate"),
    ('\u{2068}', "first strong isolate"),
    ('\u{2069}', "pop directional isolate"),
    ('\u{feff}', "zero width no-break space"),
    ('\u{fffc}', "object replacement character"),
];

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

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(text: &str) -> String {
        name("display_name", text).unwrap_err().to_string()
    }

    #[test]
    fn names_lose_marks_around_them_and_soft_hyphens() {
        for (typed, kept) in [
            ("Ann Lee", "Ann Lee"),
            ("", ""),
            ("\u{2068}Ann Lee\u{2069}", "Ann Lee"),
            ("\u{2066}\u{202a}Ann\u{202c}\u{2069}", "Ann"),
            ("\u{202b}شيرين\u{202c}", "شيرين"),
            ("\u{2067}\u{2069}", ""),
            ("Öster\u{ad}reicher", "Österreicher"),
            ("\u{2068}\u{ad}Ann\u{ad}\u{2069}", "Ann"),
            // Marks that scripts need stay.
            ("نامه\u{200c}ای", "نامه\u{200c}ای"),
            ("\u{200f}شيرين\u{200e}", "\u{200f}شيرين\u{200e}"),
        ] {
            assert_eq!(name("display_name", typed).unwrap(), kept, "{typed:?}");
            assert_eq!(name("display_name", kept).unwrap(), kept);
        }
        let long = format!("\u{2068}{}\u{ad}\u{2069}", "é".repeat(256));
        assert_eq!(name("display_name", &long).unwrap().chars().count(), 256);
    }

    #[test]
    fn refusals_name_the_character_and_its_place() {
        for (typed, part) in [
            ("Ann \u{202e}Lee", "U+202E (right-to-left override) at character 5"),
            ("\u{202e}Ann\u{202c}", "U+202E (right-to-left override) at character 1"),
            ("Ann \u{2068}Lee\u{2069}", "U+2068 (first strong isolate) at character 5"),
            (
                "\u{2068}Ann\u{2069} \u{2068}Lee\u{2069}",
                "U+2068 (first strong isolate) at character 1",
            ),
            ("\u{2068}Ann", "U+2068 (first strong isolate) at character 1"),
            ("Ann\u{202c}", "U+202C (pop directional formatting) at character 4"),
            ("\u{2068}Ann\u{200b}\u{2069}", "U+200B (zero width space) at character 5"),
            ("A\u{ad}n\u{ad}n\tLee", "U+0009 (tabulation) at character 6"),
            ("Ann\u{e000}", "U+E000 at character 4"),
            ("Ann\u{1}", "U+0001 at character 4"),
        ] {
            let message = refused(typed);
            assert!(message.ends_with(part), "{typed:?}: {message}");
            assert!(!message.contains("Ann"), "{message}");
        }
        let blank = "not blank: leave it empty";
        assert!(refused(" ").ends_with(blank) && refused("\u{2068} \u{2069}").ends_with(blank));
        assert!(refused(&"é".repeat(257)).ends_with("at most 256 characters"));
        // A reason has no soft hyphen, and no mark around it.
        assert!(check_text("reason", "\u{2068}Ann\u{2069}").is_err());
        assert!(check_text("reason", "so\u{ad}ft").is_err());
    }
}
