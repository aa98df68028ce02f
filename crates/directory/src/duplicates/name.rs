//! Display names and handles: which of them are nearly the same.

use unicode_normalization::UnicodeNormalization;

/// The fewest characters of handles of which one differs.
const SHORTEST: usize = 6;
/// The fewest characters that handles with different numbers have in common.
const STEM: usize = 3;
/// The characters at each end of a handle of which nearly equal ones share at least one end.
const END: usize = 3;
/// Latin, Greek and Cyrillic accents. Marks of other scripts are vowels, and make other names.
const ACCENTS: std::ops::RangeInclusive<char> = '\u{300}'..='\u{36f}';

/// A display name without case, accents, punctuation and the order of its words; none where
/// nothing is left of it.
pub fn name_form(display_name: &str) -> Option<String> {
    let plain: String = display_name
        .nfkd()
        .filter(|c| !ACCENTS.contains(c) && !matches!(c, '.' | '\'' | '’'))
        .flat_map(char::to_lowercase)
        .nfc()
        .collect();
    let mut words: Vec<_> = plain
        .split(|c: char| c.is_whitespace() || matches!(c, ',' | '-' | '_'))
        .filter(|word| !word.is_empty())
        .collect();
    words.sort_unstable();
    let form = words.join(" ");
    (form.chars().count() > 1).then_some(form)
}

/// A handle without the characters that only part its words.
pub fn handle_form(canonical: &str) -> String {
    canonical.chars().filter(|c| !matches!(c, '.' | '_' | '-')).collect()
}

/// Both ends of a handle in the form of [`handle_form`]. Handles that are near have one of them in
/// common, unless they are shorter than six characters.
pub fn ends(form: &str) -> [&str; 2] {
    let count = form.chars().count();
    let first = form.char_indices().nth(END).map_or(form, |(at, _)| &form[..at]);
    let last =
        form.char_indices().nth(count.saturating_sub(END)).map_or(form, |(at, _)| &form[at..]);
    [first, last]
}

/// Whether two handles in the form of [`handle_form`] are nearly the same: equal, equal but for a
/// number at the end, or of six characters or more, of which one was typed wrong, is missing, or
/// changed places with its neighbour.
pub fn is_near(a: &str, b: &str) -> bool {
    if a == b {
        return true;
    }
    let [stem, other] = [a, b].map(|form| form.trim_end_matches(|c: char| c.is_numeric()));
    if stem == other {
        return stem.chars().nth(STEM - 1).is_some();
    }
    let is_long = |form: &str| form.chars().nth(SHORTEST - 1).is_some();
    is_long(a) && is_long(b) && strsim::osa_distance(a, b) <= 1
}
