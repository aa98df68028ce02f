//! Names as searches compare them: the forms of a name, and the forms that words of a filter find.

use super::element::MAX_NAME_WORDS;
use super::range::Range;
use super::scalar::Scalar;
use crate::search::folding::{
    Word, fold, fold_letters, is_apostrophe, is_unspaced, shortened, spelt_words, words_of,
};
use polynym_identifier::is_mark;

/// The characters of a name without spaces at which a form begins: the first ones.
const MAX_PARTS: usize = 64;
/// The characters of a word that a filter may have apart from the next one: O Brien, Mc Donald.
const MAX_PARTICLE_CHARS: usize = 3;

/// The forms by which a name is found: its words as they are typed and with one form of each
/// letter, words that hyphens join, and the rest of a word without spaces from each of its
/// characters.
pub fn forms(name: &str) -> Vec<String> {
    let folded = fold(name);
    let words: Vec<_> = spelt_words(&folded).collect();
    let first = &words[..words.len().min(MAX_NAME_WORDS)];
    let mut forms: Vec<String> = first.iter().map(|word| shortened(word.text).to_owned()).collect();
    if folded.is_ascii() && !folded.contains('-') {
        return forms;
    }
    forms.extend(first.iter().map(|word| form_of(std::slice::from_ref(word))));
    for joined in first.chunk_by(|_, next| next.is_joined).filter(|joined| joined.len() > 1) {
        forms.extend(joined.windows(2).chain([joined]).map(form_of));
    }
    forms.extend(unspaced_parts(&words));
    forms
}

/// The words, written together.
fn form_of(words: &[Word<'_>]) -> String {
    shortened(&written_together(words)).to_owned()
}

fn written_together(words: &[Word<'_>]) -> String {
    words.iter().map(|word| fold_letters(word.text)).collect()
}

/// The rests of the words without spaces. Such words beside each other are one.
fn unspaced_parts(words: &[Word<'_>]) -> Vec<String> {
    let runs = words.chunk_by(|word, next| {
        word.text.ends_with(is_unspaced_or_mark) && next.text.starts_with(is_unspaced)
    });
    let runs = runs.filter(|run| run.iter().any(|word| word.text.contains(is_unspaced)));
    let parts = runs.flat_map(|run| {
        let text = written_together(run);
        let starts = part_starts(&text);
        starts.into_iter().map(move |at| shortened(&text[at..]).to_owned()).collect::<Vec<_>>()
    });
    parts.take(MAX_PARTS).collect()
}

fn is_unspaced_or_mark(c: char) -> bool {
    is_unspaced(c) || is_mark(c)
}

/// The offsets at which a word may begin in a text without spaces: at its start, and beside each
/// character of a script without them.
fn part_starts(text: &str) -> Vec<usize> {
    let mut follows = true;
    let mut starts = Vec::new();
    for (at, c) in text.char_indices().filter(|(_, c)| !is_mark(*c)) {
        if follows || is_unspaced(c) {
            starts.push(at);
        }
        follows = is_unspaced(c);
    }
    starts
}

/// The words of a filter's value.
#[derive(Clone, Debug, PartialEq)]
pub struct TypedName {
    folded: String,
    /// Whether the last word may go on.
    is_open: bool,
}

impl TypedName {
    /// The words of a text. Apostrophes separate words here, which may be found together.
    pub fn new(text: &str, is_open: bool) -> Self {
        let hyphen = |c| if is_apostrophe(c) { '-' } else { c };
        let folded = fold(&text.chars().map(hyphen).collect::<String>());
        Self { folded, is_open }
    }

    /// The words, folded.
    pub fn words(&self) -> impl Iterator<Item = &str> {
        words_of(&self.folded)
    }

    /// The ranges of forms for each word: a name with a form in one range of each has the words.
    pub fn ranges(&self) -> Vec<Vec<Range>> {
        let words: Vec<_> = spelt_words(&self.folded).collect();
        (0..words.len()).map(|n| self.ranges_of(&words, n)).collect()
    }

    /// The forms of one word: itself, and together with its neighbours.
    fn ranges_of(&self, words: &[Word<'_>], n: usize) -> Vec<Range> {
        let is_last = |end: usize| self.is_open && end == words.len();
        let mut start = n;
        while words[start].is_joined {
            start -= 1;
        }
        let joined = words[n + 1..].iter().take_while(|word| word.is_joined).count();
        let before = n.checked_sub(1).filter(|before| may_join(&words[*before], &words[n]));
        let after = words.get(n + 1).is_some_and(|next| may_join(&words[n], next));
        let spans = [
            Some(n..n + 1),
            before.map(|before| before..n + 1),
            after.then_some(n..n + 2),
            Some(start..n + 1 + joined),
        ];
        let ranges = spans.into_iter().flatten().map(|span| {
            let form = form_of(&words[span.clone()]);
            match is_last(span.end) || form.contains(is_unspaced) {
                true => Range::prefix(&form),
                false => Range::point(Scalar::String(form)),
            }
        });
        Range::distinct(ranges.collect())
    }

    /// Whether a name ends in the words.
    pub fn is_end_of(&self, name: &str) -> bool {
        let typed = written_together(&spelt_words(&self.folded).collect::<Vec<_>>());
        let folded = fold(name);
        let words: Vec<_> = spelt_words(&folded).collect();
        let text = written_together(&words);
        let Some(start) = text.len().checked_sub(typed.len()).filter(|_| text.ends_with(&typed))
        else {
            return false;
        };
        let mut end = 0;
        let mut word_starts = words.iter().map(|word| {
            let start = end;
            end += fold_letters(word.text).len();
            start
        });
        word_starts.any(|at| at == start) || part_starts(&text).contains(&start)
    }
}

/// Whether two words of a filter may be one word of a name.
fn may_join(word: &Word<'_>, next: &Word<'_>) -> bool {
    let is_particle = word.text.chars().nth(MAX_PARTICLE_CHARS).is_none();
    let has_spaces = |word: &Word<'_>| !word.text.contains(is_unspaced);
    (next.is_joined || is_particle) && has_spaces(word) && has_spaces(next)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::search::folding::words;

    fn sorted(name: &str) -> Vec<String> {
        let mut forms = forms(name);
        forms.sort_unstable();
        forms.dedup();
        forms
    }

    #[test]
    fn forms_are_words_joined_words_and_parts() {
        for (name, expected) in [
            ("María Müller", &["maria", "muller"][..]),
            ("John F. O’Brien", &["f", "john", "obrien"]),
            ("Anne-Marie", &["anne", "annemarie", "marie"]),
            ("A‐B-C D", &["a", "ab", "abc", "b", "bc", "c", "d"]),
            ("山田 太", &["太", "山田", "山田太", "田太"]),
            ("Ann 李", &["ann", "李"]),
            ("علی", &["علي", "علی"]),
            ("がく", &["がく", "く"]),
            ("", &[]),
        ] {
            let expected: Vec<_> = expected.iter().map(ToString::to_string).collect();
            assert_eq!(sorted(name), expected, "{name}");
        }
    }

    #[test]
    fn a_name_has_few_forms_and_all_of_its_words() {
        for letters in ["a", "a-", "a ", "山", "山 ", "김a", "ی-", "é’", "・ア"] {
            let name: String = letters.chars().cycle().take(256).collect();
            let forms = sorted(&name);
            assert!(forms.len() <= MAX_PARTS + 4 * MAX_NAME_WORDS, "{letters} {}", forms.len());
            assert!(forms.iter().all(|form| form.len() <= 64));
            let words = words(&name).into_iter().take(MAX_NAME_WORDS);
            assert!(words.into_iter().all(|word| forms.contains(&word)), "{letters}");
        }
    }

    /// Each value that is a part of a name finds it.
    #[test]
    fn parts_find_their_name() {
        for name in ["山田太郎", "山田 太郎", "毛利Anna", "김우진", "アンナ・マリア", "がくカ゚"]
        {
            let ends: Vec<_> = name.char_indices().map(|(at, c)| at + c.len_utf8()).collect();
            for (start, c) in name.char_indices().filter(|(_, c)| is_unspaced(*c) && !is_mark(*c)) {
                for end in ends.iter().filter(|end| **end > start + c.len_utf8()) {
                    let typed = TypedName::new(&name[start..*end], false);
                    let forms: Vec<_> = forms(name).into_iter().map(Scalar::String).collect();
                    let has = |ranges: &Vec<Range>| {
                        forms.iter().any(|form| ranges.iter().any(|range| range.contains(form)))
                    };
                    assert!(typed.ranges().iter().all(has), "{name}: {typed:?}");
                    assert!(*end < name.len() || typed.is_end_of(name), "{name}: {typed:?}");
                }
            }
        }
    }
}
