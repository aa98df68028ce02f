//! The folding of names: spellings that people take for one are equal.

use std::ops::RangeInclusive;

use polynym_identifier::is_mark;
use unicode_normalization::UnicodeNormalization;

/// The maximum size of a word. The rest of a longer one is dropped.
const MAX_WORD_BYTES: usize = 64;

/// The marks that spellings omit: accents, and the vowel points of Hebrew and Arabic. Other marks
/// are vowels and voiced consonants, which distinguish names.
const OPTIONAL_MARKS: [RangeInclusive<char>; 9] = [
    '\u{300}'..='\u{36f}',
    '\u{591}'..='\u{5c7}',
    '\u{610}'..='\u{61a}',
    '\u{64b}'..='\u{65f}',
    '\u{670}'..='\u{670}',
    '\u{6d6}'..='\u{6ed}',
    '\u{1ab0}'..='\u{1aff}',
    '\u{1dc0}'..='\u{1dff}',
    '\u{20d0}'..='\u{20ff}',
];

/// Letters with strokes and ligatures, which Unicode does not decompose.
const STROKES: [(char, &str); 23] = [
    ('æ', "ae"),
    ('ð', "d"),
    ('ø', "o"),
    ('þ', "th"),
    ('đ', "d"),
    ('ħ', "h"),
    ('ł', "l"),
    ('œ', "oe"),
    ('ŧ', "t"),
    ('ƀ', "b"),
    ('ƚ', "l"),
    ('ƶ', "z"),
    ('ǥ', "g"),
    ('ȼ', "c"),
    ('ɇ', "e"),
    ('ɉ', "j"),
    ('ɍ', "r"),
    ('ɏ', "y"),
    ('ɨ', "i"),
    ('ɵ', "o"),
    ('ʉ', "u"),
    ('ⱥ', "a"),
    ('ⱦ', "t"),
];

/// A text without case, accents, width, strokes and apostrophes. Texts that are equal by Unicode's
/// full case folding are equal.
///
/// ```
/// use polynym_directory::folding::fold;
///
/// assert_eq!(fold("ŁUKASZ Weiß"), fold("Łukasz WEISS"));
/// assert_eq!(fold("María O’Brien"), "maria obrien");
/// ```
pub fn fold(text: &str) -> String {
    // An acute accent by itself is typed as an apostrophe, and decomposes to a space.
    let spelt = text.chars().filter(|c| !is_dropped(*c)).nfkd();
    let letters = spelt.filter(|c| !is_optional_mark(*c) && !is_dropped(*c));
    letters.flat_map(fold_case).flat_map(Stroke::of).nfc().collect()
}

/// The words of a text, folded, in order.
pub fn words(text: &str) -> Vec<String> {
    words_of(&fold(text)).map(ToOwned::to_owned).collect()
}

/// The words of a folded text.
pub fn words_of(folded: &str) -> impl Iterator<Item = &str> {
    folded
        .split(|c: char| !c.is_alphanumeric() && !is_mark(c))
        .filter(|word| !word.is_empty())
        .map(|word| &word[..word.floor_char_boundary(MAX_WORD_BYTES)])
}

/// The letters of a character without case: in lower case again, since ẞ has no capitals, and SS
/// no small letter.
fn fold_case(c: char) -> impl Iterator<Item = char> {
    c.to_lowercase().flat_map(char::to_uppercase).flat_map(char::to_lowercase)
}

fn is_optional_mark(c: char) -> bool {
    OPTIONAL_MARKS.iter().any(|marks| marks.contains(&c)) && is_mark(c)
}

/// Apostrophes, which people type in many ways or not at all, and characters without a width.
const fn is_dropped(c: char) -> bool {
    matches!(
        c,
        '\'' | '`'
            | '\u{ad}'
            | '\u{b4}'
            | '\u{2b9}'..='\u{2bf}'
            | '\u{2c8}'
            | '\u{640}'
            | '\u{200b}'..='\u{200f}'
            | '\u{2018}'..='\u{201b}'
            | '\u{2032}'
            | '\u{ff07}'
            | '\u{fe00}'..='\u{fe0f}'
    )
}

/// The letters that a character stands for.
enum Stroke {
    Letters(std::str::Chars<'static>),
    Same(Option<char>),
}

impl Stroke {
    fn of(c: char) -> Self {
        match STROKES.binary_search_by_key(&c, |(letter, _)| *letter) {
            Ok(n) => Self::Letters(STROKES[n].1.chars()),
            Err(_) => Self::Same(Some(c)),
        }
    }
}

impl Iterator for Stroke {
    type Item = char;

    fn next(&mut self) -> Option<char> {
        match self {
            Self::Letters(letters) => letters.next(),
            Self::Same(c) => c.take(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spellings_of_a_name_have_equal_words() {
        for spellings in [
            &["María", "MARIA", "maria", "Mari\u{301}a", "ｍａｒｉａ"][..],
            &["Weiß", "WEISS", "weiss", "WEIẞ"],
            &["Łukasz", "ŁUKASZ", "Lukasz"],
            &["Øystein Đorđe", "oystein dorde"],
            &["ΓΙΏΡΓΟΣ", "Γιώργος", "γιωργοσ"],
            &["O'Brien", "O’Brien", "OBRIEN", "O´Brien", "O＇Brien"],
            &["Anna-Maria", "Anna\u{2011}Maria", "anna maria", "(Anna) „Maria“", "Anna・Maria"],
            &["İbrahim", "ibrahim", "IBRAHIM", "ıbrahim"],
            &["שָׁלוֹם", "שלום"],
            &["مُحَمَّد", "محمد", "محـمد"],
            &["ﬁnn", "FINN"],
        ] {
            let first = words(spellings[0]);
            assert!(!first.is_empty());
            for spelling in spellings {
                assert_eq!(words(spelling), first, "{spelling}");
            }
        }
    }

    #[test]
    fn vowels_and_voiced_consonants_distinguish_names() {
        for [a, b] in [["राम", "रमा"], ["がく", "かく"], ["김", "기"], ["Jo", "Joe"]]
        {
            assert_ne!(words(a), words(b));
        }
        assert_eq!(words("अन्ना").len(), 1, "a virama joins consonants");
    }

    #[test]
    fn texts_without_letters_have_no_words() {
        for text in ["", "…", "★ ★", "- -"] {
            assert_eq!(words(text), [""; 0], "{text}");
        }
        assert_eq!(words(&"é".repeat(300)), ["e".repeat(MAX_WORD_BYTES)]);
    }

    /// Full case folding maps characters whose lower and upper cases are equal; so does this.
    #[test]
    fn folding_is_stable_and_ignores_case() {
        assert!(STROKES.is_sorted());
        for c in '\u{a0}'..='\u{1ffff}' {
            let text = c.to_string();
            let folded = fold(&text);
            assert_eq!(fold(&folded), folded, "{:x}", u32::from(c));
            assert_eq!(fold(&text.to_lowercase()), folded, "{:x}", u32::from(c));
        }
    }
}
