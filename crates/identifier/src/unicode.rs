//! Invisible and unassigned characters. Names must not differ only in these.

use unicode_properties::{GeneralCategory, UnicodeGeneralCategory};

/// The reason why a character is not accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CharacterIssue {
    /// It is not displayed, or only changes the display of others.
    Invisible,
    /// It is for private use or unassigned: it has no common meaning.
    Unassigned,
}

/// The issue of a character, if it has one. White space and control characters are not checked.
pub fn character_issue(c: char) -> Option<CharacterIssue> {
    if c.is_ascii() {
        return None;
    }
    match c.general_category() {
        GeneralCategory::PrivateUse | GeneralCategory::Unassigned => {
            Some(CharacterIssue::Unassigned)
        }
        GeneralCategory::Format => Some(CharacterIssue::Invisible),
        _ if is_blank(c) => Some(CharacterIssue::Invisible),
        _ => None,
    }
}

/// Whether a character is a combining mark.
pub fn is_mark(c: char) -> bool {
    let category = c.general_category();
    matches!(
        category,
        GeneralCategory::NonspacingMark
            | GeneralCategory::SpacingMark
            | GeneralCategory::EnclosingMark
    )
}

/// Whether a character has Default_Ignorable_Code_Point (UAX 44) beyond its category, or an empty
/// glyph: the braille blank, the null notehead, the object replacement character.
const fn is_blank(c: char) -> bool {
    matches!(
        c,
        '\u{34f}'
            | '\u{115f}'..='\u{1160}'
            | '\u{17b4}'..='\u{17b5}'
            | '\u{180b}'..='\u{180d}'
            | '\u{180f}'
            | '\u{2800}'
            | '\u{3164}'
            | '\u{fe00}'..='\u{fe0f}'
            | '\u{ffa0}'
            | '\u{fffc}'
            | '\u{1d159}'
            | '\u{e0100}'..='\u{e01ef}'
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_and_signs_of_all_scripts_are_visible() {
        for c in "aZ9é用ёשلক๛ö\u{301}€½→♥🤖\u{1f1e6}々ー".chars() {
            assert_eq!(character_issue(c), None, "{c:?}");
        }
        assert!(is_mark('\u{301}') && is_mark('\u{93e}') && is_mark('\u{20dd}') && !is_mark('é'));
    }

    #[test]
    fn invisible_and_unassigned_characters_have_an_issue() {
        let invisible = "\u{ad}\u{61c}\u{200b}\u{200d}\u{200e}\u{202a}\u{202e}\u{2060}\u{2066}\
                         \u{feff}\u{3164}\u{115f}\u{ffa0}\u{34f}\u{fe0f}\u{e0041}\u{e0100}\
                         \u{180e}\u{2800}";
        for c in invisible.chars() {
            assert_eq!(character_issue(c), Some(CharacterIssue::Invisible), "{c:?}");
        }
        for c in "\u{e000}\u{f8ff}\u{10fffd}\u{ffff}\u{fdd0}\u{378}\u{2065}\u{1ffff}".chars() {
            assert_eq!(character_issue(c), Some(CharacterIssue::Unassigned), "{c:?}");
        }
    }
}
