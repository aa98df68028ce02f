//! Sentences of a page: their parts, and what they are looked up as.

use super::html::Tag;
use super::marks::{DATA, DATA_END, WORDS, WORDS_END};
use super::text::{has_letter, push_collapsed, unescaped};

/// A part of a sentence.
pub enum Part<'p> {
    /// Words of the template.
    Text(&'p str),
    /// Data.
    Data(&'p str),
    /// Words of an expression.
    Words(&'p str),
    /// An element whose content is no words.
    Whole(Tag<'p>, &'p str),
    /// An element within the sentence.
    Element(Element<'p>),
}

/// An element within a sentence.
pub struct Element<'p> {
    /// Its opening tag; none for the sentence itself.
    pub open: Option<Tag<'p>>,
    /// What is in it.
    pub parts: Vec<Part<'p>>,
    /// Its closing tag; empty if it is not in the sentence.
    pub close: &'p str,
}

impl Element<'_> {
    /// The name; empty for the sentence itself.
    pub fn name(&self) -> &str {
        self.open.as_ref().map_or("", |tag| tag.name)
    }

    /// Whether the template has words in it.
    pub fn has_words(&self) -> bool {
        self.parts.iter().any(|part| match part {
            Part::Text(text) => has_letter(text),
            Part::Element(element) => element.has_words(),
            _ => false,
        })
    }
}

/// The parts of a text with marks, appended to those before.
pub fn push_parts<'p>(mut text: &'p str, parts: &mut Vec<Part<'p>>) {
    while let Some(at) = text.find([DATA, WORDS]) {
        push_texts(&text[..at], parts);
        let marked = &text[at..];
        let (end, kind): (_, fn(&'p str) -> Part<'p>) = match marked.starts_with(DATA) {
            true => (end_of_data(marked), Part::Data),
            false => (end_after(marked, WORDS_END), Part::Words),
        };
        parts.push(kind(&marked[..end]));
        text = &marked[end..];
    }
    push_texts(text, parts);
}

/// The texts between dots in the middle of the line, and the dots.
fn push_texts<'p>(text: &'p str, parts: &mut Vec<Part<'p>>) {
    let pieces = text.split_inclusive('·').flat_map(|piece| match piece.strip_suffix('·') {
        Some(before) => [before, "·"],
        None => [piece, ""],
    });
    parts.extend(pieces.filter(|piece| !piece.is_empty()).map(Part::Text));
}

/// The end of data that are written in pieces, one right after the other.
fn end_of_data(marked: &str) -> usize {
    let mut end = end_after(marked, DATA_END);
    while marked[end..].starts_with(DATA) {
        end += end_after(&marked[end..], DATA_END);
    }
    end
}

fn end_after(text: &str, mark: char) -> usize {
    text.find(mark).map_or(text.len(), |at| at + mark.len_utf8())
}

/// Adds an element to the one around it.
pub fn push_to<'p>(open: &mut [Element<'p>], element: Element<'p>) {
    if let Some(outer) = open.last_mut() {
        outer.parts.push(Part::Element(element));
    }
}

/// A text without the white space around it, and that.
pub fn trimmed(text: &str) -> (&str, &str, &str) {
    let begin = text.len() - text.trim_start().len();
    let own = text.trim();
    (&text[..begin], own, &text[begin + own.len()..])
}

/// A sentence as it is looked up.
#[derive(Default)]
pub struct Message<'m, 'p> {
    /// The words, with `{}` for data, and the elements in it as tags without attributes.
    pub key: String,
    /// The parts that `{}` stands for.
    pub data: Vec<&'m Part<'p>>,
    /// The elements with words.
    pub elements: Vec<&'m Element<'p>>,
}

impl<'m, 'p> Message<'m, 'p> {
    /// Adds parts to the message.
    pub fn add(&mut self, parts: &'m [Part<'p>]) {
        for part in parts {
            match part {
                Part::Text(text) => push_collapsed(&unescaped(text), &mut self.key),
                Part::Element(element) if element.has_words() => {
                    self.elements.push(element);
                    let name = element.name();
                    self.key.push_str(&format!("<{name}>"));
                    self.add(&element.parts);
                    self.key.push_str(&format!("</{name}>"));
                }
                data => {
                    self.data.push(data);
                    self.key.push_str("{}");
                }
            }
        }
    }
}
