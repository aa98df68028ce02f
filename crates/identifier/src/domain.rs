//! Domains of email addresses and URLs.

use unicode_normalization::UnicodeNormalization;
use unicode_properties::{GeneralCategory, UnicodeGeneralCategory};
use unicode_script::{Script, UnicodeScript};

use super::unicode::character_issue;

/// The maximum bytes of a typed domain: 253 canonical characters, each typed as up to four bytes.
const MAX_BYTES: usize = 1_024;
/// The maximum characters of a typed label: 63 canonical ones, each typed as up to four.
const MAX_LABEL: usize = 4 * 63;

/// The full stops of UTS 46.
const FULL_STOPS: [char; 4] = ['.', '\u{3002}', '\u{ff0e}', '\u{ff61}'];
const ZERO_WIDTH_NON_JOINER: char = '\u{200c}';
const ZERO_WIDTH_JOINER: char = '\u{200d}';

/// Whether a typed domain is too long to be valid. The cost of Punycode (RFC 3492) grows with the
/// square of a label's length.
pub(super) fn is_too_long(typed: &str) -> bool {
    let mut labels = typed.split(FULL_STOPS);
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

/// The position of the first character that UTS 46 replaces or drops and the mapping of IDNA 2008
/// (RFC 5895) does not: a footnote sign that becomes a digit, a trade mark that becomes letters, an
/// invisible character. IDNA 2008 maps only case, width and composition.
pub(super) fn mapped_character(typed: &str) -> Option<usize> {
    typed.chars().position(|c| {
        let is_wide = matches!(c, '\u{ff01}'..='\u{ffee}') || FULL_STOPS.contains(&c);
        let is_joiner = matches!(c, ZERO_WIDTH_NON_JOINER | ZERO_WIDTH_JOINER);
        let is_compatible = || {
            c.to_lowercase()
                .any(|lower| !std::iter::once(lower).nfkc().eq(std::iter::once(lower).nfc()))
        };
        !c.is_ascii() && !is_wide && !is_joiner && (character_issue(c).is_some() || is_compatible())
    })
}

/// Whether all labels of a Unicode domain consist of the code points that IDNA 2008 allows (RFC
/// 5892), each in its context. UTS 46 has checked the contexts of joiners.
pub(super) fn has_allowed_characters(domain: &str) -> bool {
    domain.split('.').all(|label| {
        label.is_ascii() || label.char_indices().all(|(at, c)| is_allowed(label, at, c))
    })
}

/// Whether a code point is PVALID, or has its context in the label (RFC 5892, section 3 and
/// appendix A).
fn is_allowed(label: &str, at: usize, c: char) -> bool {
    let before = || label[..at].chars().next_back();
    let after = || label[at + c.len_utf8()..].chars().next();
    match c {
        // Exceptions (section 2.6).
        '\u{df}' | '\u{3c2}' | '\u{6fd}' | '\u{6fe}' | '\u{f0b}' | '\u{3007}' => true,
        '\u{640}' | '\u{7fa}' | '\u{302e}' | '\u{302f}' | '\u{3031}'..='\u{3035}' | '\u{303b}' => {
            false
        }
        // Contexts.
        ZERO_WIDTH_NON_JOINER | ZERO_WIDTH_JOINER => true,
        '\u{b7}' => before() == Some('l') && after() == Some('l'),
        '\u{375}' => after().is_some_and(|c| c.script() == Script::Greek),
        '\u{5f3}' | '\u{5f4}' => before().is_some_and(|c| c.script() == Script::Hebrew),
        '\u{30fb}' => label.chars().any(is_japanese),
        '\u{660}'..='\u{669}' => !label.contains(|c| matches!(c, '\u{6f0}'..='\u{6f9}')),
        '\u{6f0}'..='\u{6f9}' => !label.contains(|c| matches!(c, '\u{660}'..='\u{669}')),
        // Blocks (section 2.4) and old Hangul (section 2.9).
        '\u{20d0}'..='\u{20ff}' | '\u{1d100}'..='\u{1d24f}' => false,
        '\u{1100}'..='\u{11ff}' | '\u{a960}'..='\u{a97c}' | '\u{d7b0}'..='\u{d7fb}' => false,
        c if c.is_ascii() => c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-',
        c => is_letter_or_digit(c) && character_issue(c).is_none(),
    }
}

/// LetterDigits (section 2.1) without capitals.
fn is_letter_or_digit(c: char) -> bool {
    use GeneralCategory::{
        DecimalNumber, LowercaseLetter, ModifierLetter, NonspacingMark, OtherLetter, SpacingMark,
    };
    matches!(
        c.general_category(),
        LowercaseLetter
            | OtherLetter
            | DecimalNumber
            | ModifierLetter
            | NonspacingMark
            | SpacingMark
    )
}

fn is_japanese(c: char) -> bool {
    matches!(c.script(), Script::Hiragana | Script::Katakana | Script::Han)
}
