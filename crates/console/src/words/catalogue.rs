//! The words of a language: messages in English, and what they are in the language.

use std::collections::{HashMap, HashSet};
use std::sync::LazyLock;

use super::pattern::Pattern;
use crate::views::text::capitalized;

/// The levels of messages in messages. This bounds the work: each level can be read in several
/// ways.
const MAX_DEPTH: usize = 3;

/// The messages of a language.
#[derive(Debug, Default)]
pub struct Catalogue {
    entries: HashMap<&'static str, &'static str>,
    /// The messages that differ by the element that they are in.
    by_element: HashSet<&'static str>,
    /// The messages with data in them, the most exact ones first.
    patterns: Vec<(Pattern, &'static str)>,
}

/// German.
pub static GERMAN: LazyLock<Catalogue> =
    LazyLock::new(|| Catalogue::of(include_str!("../../words/de.txt")));

/// The messages of a file: each is a line, and the next line, indented, is its translation.
pub fn entries(file: &str) -> impl Iterator<Item = (&str, &str)> {
    let lines = file.lines().filter(|line| !line.is_empty() && !line.starts_with("# "));
    let mut message = "";
    lines.filter_map(move |line| match line.strip_prefix("  ") {
        Some(translation) => Some((message, translation)),
        None => {
            message = line;
            None
        }
    })
}

impl Catalogue {
    fn of(file: &'static str) -> Self {
        let mut catalogue = Self::default();
        for (message, translation) in entries(file) {
            catalogue.entries.insert(message, translation);
            if let Some((_, message)) = message.strip_prefix('[').and_then(|m| m.split_once("] ")) {
                catalogue.by_element.insert(message);
            }
            if message.contains('{') {
                catalogue.patterns.push((Pattern::of(message), translation));
            }
        }
        catalogue.patterns.sort_by_key(|(pattern, _)| std::cmp::Reverse(pattern.exactness()));
        catalogue
    }

    /// The translation of a message of a template, in an element of this name.
    pub fn message(&self, element: &str, message: &str) -> Option<&'static str> {
        if self.by_element.contains(message) {
            let own = self.entries.get(format!("[{element}] {message}").as_str());
            return own.or_else(|| self.entries.get(message)).copied();
        }
        self.entries.get(message).copied()
    }

    /// The translation of words, with the data in them. An error is a sentence on some pages, and
    /// a part of one on others: each form finds the message of the other.
    pub fn words(&self, words: &str) -> Option<String> {
        self.words_in(words, 0)
    }

    fn words_in(&self, words: &str, depth: usize) -> Option<String> {
        self.same_words(words, depth).or_else(|| match words.strip_suffix('.') {
            Some(part) => {
                let part = with_first(part, |c| c.to_lowercase().collect());
                Some(capitalized(&self.same_words(&part, depth)?) + ".")
            }
            None => {
                let found = self.same_words(&format!("{}.", capitalized(words)), depth)?;
                Some(found.strip_suffix('.').unwrap_or(&found).to_owned())
            }
        })
    }

    fn same_words(&self, words: &str, depth: usize) -> Option<String> {
        if let Some(translation) = self.entries.get(words) {
            return Some((*translation).to_owned());
        }
        if depth == MAX_DEPTH {
            return None;
        }
        self.patterns.iter().find_map(|(pattern, translation)| {
            let parts = pattern.parts(words)?;
            let mut translated = Vec::with_capacity(parts.len());
            for (part, is_words) in parts {
                let part = if is_words { self.words_in(part, depth + 1)? } else { part.to_owned() };
                translated.push(part);
            }
            Some(filled(translation, &translated))
        })
    }
}

/// A piece of a translation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Piece<'t> {
    /// Words.
    Text(&'t str),
    /// The place of the data with this index.
    Data(usize),
    /// The beginning of an element with this name.
    Open(&'t str),
    /// The end of an element with this name.
    Close(&'t str),
}

/// The pieces of a translation: `{}` is the next of the data, `{2}` the second one.
pub fn pieces(translation: &str) -> Vec<Piece<'_>> {
    let (mut pieces, mut rest, mut next) = (Vec::new(), translation, 0);
    while let Some(at) = rest.find(['{', '<']) {
        let end = if rest[at..].starts_with('{') { '}' } else { '>' };
        let Some(length) = rest[at..].find(end) else { break };
        if at > 0 {
            pieces.push(Piece::Text(&rest[..at]));
        }
        let inner = &rest[at + 1..at + length];
        pieces.push(match (end, inner.strip_prefix('/')) {
            ('}', _) => {
                let index = inner.parse().map_or(next, |number: usize| number.saturating_sub(1));
                next = index + 1;
                Piece::Data(index)
            }
            (_, Some(name)) => Piece::Close(name),
            _ => Piece::Open(inner),
        });
        rest = &rest[at + length + 1..];
    }
    if !rest.is_empty() {
        pieces.push(Piece::Text(rest));
    }
    pieces
}

/// A text with another first character.
fn with_first(text: &str, change: impl Fn(char) -> String) -> String {
    let mut chars = text.chars();
    let first = chars.next().map(change).unwrap_or_default();
    first + chars.as_str()
}

/// A translation with its data.
fn filled(translation: &str, data: &[String]) -> String {
    let text = pieces(translation).into_iter().map(|piece| match piece {
        Piece::Text(text) => text,
        Piece::Data(index) => data.get(index).map_or("", String::as_str),
        Piece::Open(_) | Piece::Close(_) => "",
    });
    text.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "# Words.\n[button] Change\n  Ändern\nChange\n  Änderung\ndays\n  Tage\n\
                        {n} days ago\n  vor {} Tagen\nThe {w} of {} is {}\n  {3}: {1} von {2}\n";

    #[test]
    fn messages_are_found() {
        let catalogue = Catalogue::of(FILE);
        assert_eq!(catalogue.message("button", "Change"), Some("Ändern"));
        assert_eq!(catalogue.message("th", "Change"), Some("Änderung"));
        assert_eq!(catalogue.message("th", "Chang"), None);
        assert_eq!(catalogue.words("3 days ago").as_deref(), Some("vor 3 Tagen"));
        assert_eq!(catalogue.words("some days ago"), None);
        assert_eq!(catalogue.words("The days of {2} is <b>").as_deref(), Some("<b>: Tage von {2}"));
        assert_eq!(catalogue.words("The name of x is y"), None, "a part is no word");
    }

    #[test]
    fn sentences_and_parts_of_sentences_find_each_other() {
        let catalogue = Catalogue::of("The {w} is gone.\n  {} fehlt.\na day\n  der Tag\n");
        let words = |text: &str| catalogue.words(text);
        assert_eq!(words("the a day is gone").as_deref(), Some("der Tag fehlt"));
        assert_eq!(words("A day.").as_deref(), Some("Der Tag."));
        assert_eq!(words("A night."), None);
    }

    #[test]
    fn a_text_with_many_parts_ends() {
        let catalogue = Catalogue::of("{w}, {w}\n  {} {}\n{w}: {w}\n  {}: {}\na\n  das\n");
        assert_eq!(catalogue.words("a: a: a").as_deref(), Some("das: das: das"));
        for separator in [": ", ", "] {
            assert_eq!(catalogue.words(&vec!["b"; 1_000].join(separator)), None);
            assert_eq!(catalogue.words(&vec!["a"; 1_000].join(separator)), None);
        }
    }

    #[test]
    fn the_catalogue_is_sorted_and_complete() {
        let file = include_str!("../../words/de.txt");
        let messages: Vec<_> = entries(file).collect();
        let lines = file.lines().filter(|line| !line.is_empty() && !line.starts_with("# "));
        assert_eq!(lines.count(), 2 * messages.len(), "each message has one translation");
        for pair in messages.windows(2) {
            assert!(pair[0].0 < pair[1].0, "{} is before {}", pair[0].0, pair[1].0);
        }
        for (message, translation) in messages {
            let count = |text| {
                let all = pieces(text).into_iter();
                let mut kinds: Vec<_> = all.filter(|p| !matches!(p, Piece::Text(_))).collect();
                kinds.sort_by_key(|piece| format!("{piece:?}"));
                kinds
            };
            let plain = message.replace("{n}", "{}").replace("{w}", "{}");
            assert_eq!(count(&plain), count(translation), "{message}");
        }
    }
}
