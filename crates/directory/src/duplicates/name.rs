//! The similarity of display names and of handles.

use crate::search::folding::{fold, is_unspaced, words_of};
use crate::search::joined_umlauts;

/// The minimum length of handles that may differ in one character.
const MIN_TYPO_LENGTH: usize = 6;
/// The minimum length of handles apart from different numbers at their ends.
const MIN_STEM_LENGTH: usize = 3;
/// The length of each end of a handle. Near handles share at least one end.
const END_LENGTH: usize = 3;

/// A display name [folded](fold), without punctuation, the order of its words and the two spellings
/// of umlauts; `None` if nothing is left. Full stops separate no words: J.R. is JR.
pub fn name_form(display_name: &str) -> Option<String> {
    let folded = joined_umlauts(&fold(display_name)).replace('.', "");
    let mut words: Vec<_> = words_of(&folded).collect();
    words.sort_unstable();
    let form = words.join(" ");
    (form.chars().count() > 1).then_some(form)
}

/// Whether a name in the form of [`name_form`] is a full one: it has several words, or characters
/// of a script without spaces.
pub fn is_full(form: &str) -> bool {
    form.contains(' ') || form.chars().filter(|c| is_unspaced(*c)).nth(1).is_some()
}

/// A handle without the separators of its words.
pub fn handle_form(canonical: &str) -> String {
    canonical.chars().filter(|c| !matches!(c, '.' | '_' | '-')).collect()
}

/// Both ends of a handle in the form of [`handle_form`]. Near handles of six characters or more
/// have one of them in common.
pub fn ends(form: &str) -> [&str; 2] {
    let count = form.chars().count();
    let index = |n: usize| form.char_indices().nth(n).map(|(index, _)| index);
    let first = &form[..index(END_LENGTH).unwrap_or(form.len())];
    [first, &form[index(count.saturating_sub(END_LENGTH)).unwrap_or(0)..]]
}

/// Whether two handles in the form of [`handle_form`] are nearly the same: equal, equal apart from
/// a number that one of them has at the end, or of six characters or more with one typo: a wrong,
/// missing or transposed character.
pub fn is_near(a: &str, b: &str) -> bool {
    if a == b {
        return true;
    }
    let [stem, other] = [a, b].map(|form| form.trim_end_matches(|c: char| c.is_numeric()));
    if stem == other && (a == stem || b == stem) {
        return stem.chars().nth(MIN_STEM_LENGTH - 1).is_some();
    }
    let is_long = |form: &str| form.chars().nth(MIN_TYPO_LENGTH - 1).is_some();
    is_long(a) && is_long(b) && strsim::osa_distance(a, b) <= 1
}
