//! Translates a rendered page.

use super::catalogue::{self, Catalogue, GERMAN};
use super::html::{Tag, Token, Tokens, attributes};
use super::language::Language;
use super::marks::is_mark;
use super::sentence::{Element, Message, Part, push_parts, push_to, trimmed};
use super::text::{has_letter, push_collapsed, push_escaped, unescaped};

/// The page in a language. It was rendered with marks.
pub fn translated(page: &str, language: Language) -> String {
    let writer = Writer {
        html: String::with_capacity(page.len() * 5 / 4),
        language,
        catalogue: &GERMAN,
        element: "",
    };
    writer.page(page)
}

struct Writer<'p> {
    html: String,
    language: Language,
    catalogue: &'static Catalogue,
    /// The block that the sentence is in.
    element: &'p str,
}

impl<'p> Writer<'p> {
    fn page(mut self, page: &'p str) -> String {
        // The sentence, and the elements that are open in it.
        let mut open = vec![Element { open: None, parts: Vec::new(), close: "" }];
        for token in Tokens(page) {
            let Some(top) = open.last_mut() else { break };
            match token {
                Token::Text(text) => push_parts(text, &mut top.parts),
                Token::Whole(tag, rest) if tag.is_inline() => {
                    top.parts.push(Part::Whole(tag, rest));
                }
                Token::Tag(tag) if tag.is_inline() && !tag.is_end => {
                    open.push(Element { open: Some(tag), parts: Vec::new(), close: "" });
                }
                Token::Tag(tag) if tag.is_inline() && top.name() == tag.name => {
                    if let Some(mut element) = open.pop() {
                        element.close = tag.html;
                        push_to(&mut open, element);
                    }
                }
                Token::Tag(tag) => {
                    self.end_sentence(&mut open);
                    self.element = if tag.is_end { "" } else { tag.name };
                    self.tag(&tag);
                }
                Token::Whole(tag, rest) => {
                    self.end_sentence(&mut open);
                    self.whole(&tag, rest);
                }
            }
        }
        self.end_sentence(&mut open);
        self.html
    }

    /// Writes the sentence up to a tag that ends it. Elements that are open remain so in HTML.
    fn end_sentence(&mut self, open: &mut Vec<Element<'p>>) {
        while open.len() > 1 {
            if let Some(element) = open.pop() {
                push_to(open, element);
            }
        }
        if let Some(sentence) = open.first_mut() {
            self.sentences(&std::mem::take(&mut sentence.parts));
        }
    }

    /// Writes sentences, which end at each dot in the middle of the line.
    fn sentences(&mut self, parts: &[Part<'_>]) {
        for (index, sentence) in parts.split(|part| matches!(part, Part::Text("·"))).enumerate() {
            if index > 0 {
                self.html.push('·');
            }
            self.sentence(sentence);
        }
    }

    fn sentence(&mut self, parts: &[Part<'_>]) {
        let has_words = parts.iter().any(|part| matches!(part, Part::Text(t) if has_letter(t)));
        if !has_words {
            return parts.iter().for_each(|part| self.part(part));
        }
        let mut message = Message::default();
        message.add(parts);
        let (before, text, after) = trimmed(&message.key);
        let found = self.catalogue.message(self.element, text);
        if let Some(translation) = found {
            self.html.push_str(before);
            self.filled(text, translation, &message);
            self.html.push_str(after);
        } else if self.language == Language::Brackets && !self.knows_parts(parts) {
            self.html.push('⁇');
            push_escaped(text, &mut self.html);
            self.html.push_str("⁇ ");
        } else {
            parts.iter().for_each(|part| self.part(part));
        }
    }

    /// Whether each text of a sentence is translated by itself.
    fn knows_parts(&self, parts: &[Part<'_>]) -> bool {
        parts.iter().all(|part| match part {
            Part::Text(text) if has_letter(text) => self.fragment(text).is_some(),
            _ => true,
        })
    }

    fn fragment(&self, text: &str) -> Option<&'static str> {
        let mut collapsed = String::new();
        push_collapsed(&unescaped(text), &mut collapsed);
        self.catalogue.message(self.element, trimmed(&collapsed).1)
    }

    /// Writes a translation with the data and the elements of its message.
    fn filled(&mut self, text: &str, translation: &str, message: &Message<'_, '_>) {
        let is_test = self.language == Language::Brackets;
        let mut elements = Vec::new();
        let mut unused: Vec<_> = message.elements.iter().map(Some).collect();
        for piece in catalogue::pieces(if is_test { text } else { translation }) {
            match piece {
                catalogue::Piece::Text(words) => {
                    self.bracketed(words);
                }
                catalogue::Piece::Data(index) => {
                    if let Some(part) = message.data.get(index) {
                        self.part(part);
                    }
                }
                catalogue::Piece::Open(name) => {
                    let own = unused
                        .iter_mut()
                        .find(|own| own.as_ref().is_some_and(|element| element.name() == name));
                    if let Some(element) = own.and_then(Option::take) {
                        self.open(element);
                        elements.push(element);
                    }
                }
                catalogue::Piece::Close(_) => {
                    self.html.push_str(elements.pop().map_or("", |element| element.close));
                }
            }
        }
    }

    /// Writes words; in the language of tests in brackets.
    fn bracketed(&mut self, words: &str) {
        let is_test = self.language == Language::Brackets && has_letter(words);
        if is_test {
            self.html.push('⟦');
        }
        push_escaped(words, &mut self.html);
        if is_test {
            self.html.push('⟧');
        }
    }

    fn part(&mut self, part: &Part<'_>) {
        match part {
            Part::Text(text) if !has_letter(text) => self.html.push_str(text),
            Part::Text(text) => match self.fragment(text) {
                Some(translation) => {
                    let (before, own, after) = trimmed(text);
                    let is_test = self.language == Language::Brackets;
                    self.html.push_str(before);
                    let own = unescaped(own);
                    self.bracketed(if is_test { &own } else { translation });
                    self.html.push_str(after);
                }
                None => self.html.push_str(text),
            },
            Part::Data(marked) => self.data(marked),
            Part::Words(marked) => self.words(marked),
            Part::Whole(tag, rest) => self.whole(tag, rest),
            Part::Element(element) => {
                self.open(element);
                self.sentences(&element.parts);
                self.html.push_str(element.close);
            }
        }
    }

    fn data(&mut self, marked: &str) {
        let is_test = self.language == Language::Brackets && has_letter(marked);
        if is_test {
            self.html.push('⟪');
        }
        self.unmarked(marked);
        if is_test {
            self.html.push('⟫');
        }
    }

    fn words(&mut self, marked: &str) {
        let words = unescaped(marked.trim_matches(is_mark));
        let own = self.catalogue.message(self.element, &words).map(str::to_owned);
        let found = own.or_else(|| self.catalogue.words(&words));
        let words = words.strip_prefix("[verb] ").unwrap_or(&words);
        match found.or_else(|| self.catalogue.words(words)) {
            Some(_) if self.language == Language::Brackets => self.bracketed(words),
            Some(translation) => push_escaped(&translation, &mut self.html),
            None if self.language == Language::Brackets && has_letter(words) => {
                self.html.push('⁇');
                push_escaped(words, &mut self.html);
                self.html.push_str("⁇ ");
            }
            None => push_escaped(words, &mut self.html),
        }
    }

    fn open(&mut self, element: &Element<'_>) {
        if let Some(tag) = &element.open {
            self.tag(tag);
        }
    }

    fn whole(&mut self, tag: &Tag<'_>, rest: &str) {
        self.tag(tag);
        self.unmarked(rest);
    }

    /// Writes a tag, with the attributes that people read in the language.
    fn tag(&mut self, tag: &Tag<'_>) {
        let (read, rest) = attributes(tag);
        for (before, value) in read {
            self.unmarked(before);
            let mut parts = Vec::new();
            push_parts(value, &mut parts);
            self.sentences(&parts);
        }
        self.unmarked(rest);
    }

    fn unmarked(&mut self, html: &str) {
        html.split(is_mark).for_each(|part| self.html.push_str(part));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::words::marks::{Html, Words, marking};
    use askama::filters::Escaper;

    /// Data as a template writes them.
    fn data(text: &str) -> String {
        let mut html = String::new();
        Html.write_escaped_str(&mut html, text).unwrap();
        html
    }

    fn words(text: &str) -> String {
        Words { text, context: "" }.to_string()
    }

    fn german(page: impl FnOnce() -> String) -> String {
        translated(&marking(page), Language::German)
    }

    #[test]
    fn sentences_are_translated_with_their_data() {
        assert_eq!(german(|| "<h1>Sign in</h1>".to_owned()), "<h1>Anmelden</h1>");
        let own =
            || format!("<p class=\"{0}\">Press <kbd>?</kbd>\n for keyboard shortcuts", data("a"));
        assert_eq!(german(own), "<p class=\"a\"><kbd>?</kbd> zeigt die Tastenkürzel");
        let merge = || format!("<h1>Merge {} into <b>{}</b></h1>", data("<x>"), data("State"));
        assert_eq!(german(merge), "<h1>&#60;x&#62; in <b>State</b> zusammenführen</h1>");
        let link =
            || format!("<p>Users. {} <a href=\"x\">Name</a> · {}", data("a"), words("active"));
        assert_eq!(
            german(link),
            "<p>Users. a <a href=\"x\">Name</a> · aktiv",
            "not known as a whole"
        );
        let title = || format!("<time title=\"{}\">{}</time>", words("3 days ago"), data("now"));
        assert_eq!(german(title), "<time title=\"vor 3 Tagen\">now</time>");
        let button = "<button>Change</button><th>Change</th>".to_owned();
        assert_eq!(german(|| button), "<button>Ändern</button><th>Änderung</th>");
    }

    #[test]
    fn what_is_no_words_stays() {
        for html in [
            "<pre>Name</pre><code>Name</code><script>Name</script><!-- Name -->",
            "<input value=\"Name\" name=\"Name\"><svg><title>Name</title></svg>",
            "<p><span><button>x</button></span> y <b>",
            "<p",
        ] {
            assert_eq!(german(|| html.to_owned()), html);
        }
        let forged = "a\u{fdd1}\u{fdd2}Name\u{fdd3}\u{fdd0}";
        assert_eq!(german(|| format!("<p>{}</p>", data(forged))), "<p>aName</p>");
        assert_eq!(data(forged), forged, "English pages are as they were");
        let test = marking(|| format!("<p>Name {} zyx</p>", data("b")));
        assert_eq!(translated(&test, Language::Brackets), "<p>⁇Name {} zyx⁇ </p>");
    }
}
