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
/// use polynym_directory::search::folding::fold;
///
/// assert_eq!(fold("ŁUKASZ Weiß"), fold("Łukasz WEISS"));
/// assert_eq!(fold("María O’Brien"), "maria obrien");
/// ```
pub fn fold(text: &str) -> String {
    // An acute accent by itself is typed as an apostrophe, and decomposes to a space.
    let spelt = text.chars().filter(|c| !is_dropped(*c)).nfkd();
    let letters = spelt.filter(|c| !is_optional_mark(*c) && !is_dropped(*c));
    letters.flat_map(fold_case).flat_map(Stroke::from_char).nfc().collect()
}

/// The words of a text, folded, in order.
pub fn words(text: &str) -> Vec<String> {
    words_of(&fold(text)).map(ToOwned::to_owned).collect()
}

/// The words of a folded text.
pub fn words_of(folded: &str) -> impl Iterator<Item = &str> {
    spelt_words(folded).map(|word| shortened(word.text))
}

/// A word of a folded text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Word<'t> {
    /// The whole word.
    pub text: &'t str,
    /// Whether a hyphen joins it to the word before.
    pub is_joined: bool,
}

/// The words of a folded text, with what joins them.
pub fn spelt_words(folded: &str) -> impl Iterator<Item = Word<'_>> {
    let is_letter = |c: char| c.is_alphanumeric() || is_mark(c);
    let (mut rest, mut is_first) = (folded, true);
    std::iter::from_fn(move || {
        let (gap, after) = rest.split_at(rest.find(is_letter)?);
        let (text, next) = after.split_at(after.find(|c| !is_letter(c)).unwrap_or(after.len()));
        let is_joined = !std::mem::take(&mut is_first) && is_hyphen(gap);
        rest = next;
        Some(Word { text, is_joined })
    })
}

/// The start of a word that is compared.
pub fn shortened(word: &str) -> &str {
    &word[..word.floor_char_boundary(MAX_WORD_BYTES)]
}

fn is_hyphen(gap: &str) -> bool {
    matches!(gap, "-" | "\u{2010}" | "\u{2011}" | "\u{2012}" | "\u{2013}" | "\u{5be}")
}

/// A folded word with one form of each Arabic letter that keyboards for Arabic, Persian and Urdu
/// have in several.
pub fn fold_letters(word: &str) -> String {
    let letter = |c| match c {
        '\u{649}' | '\u{6cc}' | '\u{6d2}' => '\u{64a}',
        '\u{6a9}' | '\u{6aa}' => '\u{643}',
        '\u{629}' | '\u{6be}' | '\u{6c1}' | '\u{6c3}' | '\u{6d5}' => '\u{647}',
        '\u{671}' => '\u{627}',
        other => other,
    };
    word.chars().map(letter).collect()
}

/// Whether a script writes words without spaces between them: Han, Kana, Hangul and Bopomofo.
pub const fn is_unspaced(c: char) -> bool {
    matches!(
        c,
        '\u{1100}'..='\u{11ff}'
            | '\u{3005}'..='\u{3007}'
            | '\u{3021}'..='\u{3029}'
            | '\u{3031}'..='\u{303c}'
            | '\u{3041}'..='\u{312f}'
            | '\u{3131}'..='\u{318e}'
            | '\u{31a0}'..='\u{31bf}'
            | '\u{31f0}'..='\u{31ff}'
            | '\u{3400}'..='\u{4dbf}'
            | '\u{4e00}'..='\u{9fff}'
            | '\u{a960}'..='\u{a97c}'
            | '\u{ac00}'..='\u{d7fb}'
            | '\u{f900}'..='\u{faff}'
            | '\u{1aff0}'..='\u{1b16f}'
            | '\u{20000}'..='\u{3ffff}'
    )
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
    is_apostrophe(c)
        || matches!(
            c,
            '\u{ad}' | '\u{640}' | '\u{200b}'..='\u{200f}' | '\u{fe00}'..='\u{fe0f}'
        )
}

/// Whether a character is typed as an apostrophe.
pub const fn is_apostrophe(c: char) -> bool {
    matches!(
        c,
        '\'' | '`'
            | '\u{b4}'
            | '\u{2b9}'..='\u{2bf}'
            | '\u{2c8}'
            | '\u{2018}'..='\u{201b}'
            | '\u{2032}'
            | '\u{ff07}'
    )
}

/// The letters that a character stands for.
enum Stroke {
    Letters(std::str::Chars<'static>),
    Same(Option<char>),
}

impl Stroke {
    fn from_char(c: char) -> Self {
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
