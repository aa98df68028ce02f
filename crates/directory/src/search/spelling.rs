//! Other spellings of names: umlauts as one letter and as two, and words with one letter wrong.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;

use unicode_normalization::UnicodeNormalization;

/// Umlauts: the letter, its base letter, and its spelling with two letters.
const UMLAUTS: [(char, &str, &str); 5] =
    [('ä', "a", "ae"), ('ö', "o", "oe"), ('ü', "u", "ue"), ('ø', "o", "oe"), ('å', "a", "aa")];

/// The letters that may replace a wrong one, by script.
const ALPHABETS: [RangeInclusive<char>; 3] = ['a'..='z', 'α'..='ω', 'а'..='я'];
/// The lengths of words that are varied. A shorter word is one letter away from too many others.
const COMPARED_CHARS: RangeInclusive<usize> = 4..=12;

/// The other spellings of a text: each umlaut as two letters, and each such pair as the base
/// letter, as which the index has names with the umlaut. Leaves out a spelling that is the text.
///
/// ```
/// use polynym_directory::search::other_umlauts;
///
/// assert_eq!(other_umlauts("Jörg Müller"), ["joerg mueller"]);
/// assert_eq!(other_umlauts("Mueller"), ["muller"]);
/// assert_eq!(other_umlauts("Schmidt"), [""; 0]);
/// ```
pub fn other_umlauts(text: &str) -> Vec<String> {
    let lower = text.nfc().collect::<String>().to_lowercase();
    let mut apart = lower.clone();
    for (letter, _, pair) in UMLAUTS {
        apart = apart.replace(letter, pair);
    }
    [apart, joined_umlauts(&lower)].into_iter().filter(|other| *other != lower).collect()
}

/// A text in which each pair that spells an umlaut is the base letter: `muller` of `mueller`.
pub fn joined_umlauts(lower: &str) -> String {
    UMLAUTS.iter().fold(lower.to_owned(), |text, (_, base, pair)| text.replace(pair, base))
}

/// The words from which a folded word differs by a letter that is wrong, missing, too much, or
/// exchanged with the next one: at most 700 in Latin script. None of a short or a long word.
///
/// ```
/// use polynym_directory::search::one_letter_variants;
///
/// let words = one_letter_variants("jonh");
/// assert!(["john", "jon", "jonah", "joni"].iter().all(|word| words.contains(*word)));
/// assert!(one_letter_variants("joe").is_empty() && !words.contains("jonh"));
/// ```
pub fn one_letter_variants(word: &str) -> BTreeSet<String> {
    let letters: Vec<char> = word.chars().collect();
    let mut words = BTreeSet::new();
    if !COMPARED_CHARS.contains(&letters.len()) {
        return words;
    }
    let alphabet = ALPHABETS.into_iter().find(|alphabet| alphabet.contains(&letters[0]));
    let alphabet: Vec<char> = alphabet.into_iter().flatten().collect();
    for at in 0..=letters.len() {
        let (before, after) = letters.split_at(at);
        let mut add = |middle: &[char], rest: &[char]| {
            words.insert([before, middle, rest].concat().into_iter().collect());
        };
        alphabet.iter().for_each(|letter| add(&[*letter], after));
        let Some((first, rest)) = after.split_first() else { break };
        add(&[], rest);
        alphabet.iter().for_each(|letter| add(&[*letter], rest));
        if let Some((second, rest)) = rest.split_first() {
            add(&[*second, *first], rest);
        }
    }
    words.remove(word);
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_letter_is_wrong_missing_too_much_or_exchanged() {
        for word in ["schmidt", "иванов", "παπας"] {
            let letters: Vec<char> = word.chars().collect();
            let words = one_letter_variants(word);
            let added = letters.len() + 1;
            let mut without = letters.clone();
            without.remove(1);
            let mut exchanged = letters.clone();
            exchanged.swap(1, 2);
            for other in [without, exchanged, [&letters[..], &letters[..1]].concat()] {
                assert!(words.contains(&other.into_iter().collect::<String>()), "{word}");
            }
            assert!(words.iter().all(|other| other.chars().count() <= added));
        }
        assert_eq!(one_letter_variants("山田太郎").len(), 7, "no alphabet");
    }

    #[test]
    fn spellings_are_bounded() {
        let longest = "abcdefghijkl";
        assert!(one_letter_variants(longest).len() <= 700);
        assert!(
            one_letter_variants(&"a".repeat(13)).is_empty() && one_letter_variants("").is_empty()
        );
    }

    #[test]
    fn umlauts_have_one_letter_or_two() {
        for (text, expected) in [
            ("Müller", &["mueller"][..]),
            ("Mu\u{308}ller", &["mueller"]),
            ("Mueller-Jörgensen", &["mueller-joergensen", "muller-jörgensen"]),
            ("Søren Åse", &["soeren aase"]),
            ("Anna", &[]),
        ] {
            assert_eq!(other_umlauts(text), expected, "{text}");
        }
    }
}
