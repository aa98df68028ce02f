//! The parts of the HTML of a page: tags, texts, and what is no text of people.

/// A part of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Token<'h> {
    /// A text.
    Text(&'h str),
    /// A tag.
    Tag(Tag<'h>),
    /// An element whose content is no words, with its tags: its opening tag, and the rest.
    Whole(Tag<'h>, &'h str),
}

/// A tag as it is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tag<'h> {
    /// The HTML, from `<` to `>`.
    pub html: &'h str,
    /// The name, without `/`; empty for comments and the type of the document.
    pub name: &'h str,
    /// Whether it ends an element.
    pub is_end: bool,
}

/// The elements whose content is no words.
const WHOLE: [&str; 8] = ["code", "kbd", "pre", "samp", "script", "style", "svg", "textarea"];
/// The elements within a sentence.
const INLINE: [&str; 18] = [
    "a", "b", "bdi", "code", "del", "em", "i", "ins", "kbd", "mark", "q", "s", "samp", "small",
    "span", "strong", "sup", "time",
];

impl Tag<'_> {
    /// Whether the element is within a sentence.
    pub fn is_inline(&self) -> bool {
        INLINE.contains(&self.name)
    }
}

/// The parts of a page, one after the other.
pub struct Tokens<'h>(pub &'h str);

impl<'h> Iterator for Tokens<'h> {
    type Item = Token<'h>;

    fn next(&mut self) -> Option<Token<'h>> {
        let html = self.0;
        if html.is_empty() {
            return None;
        }
        if !html.starts_with('<') {
            let (text, rest) = html.split_at(html.find('<').unwrap_or(html.len()));
            self.0 = rest;
            return Some(Token::Text(text));
        }
        let tag = tag(html);
        self.0 = &html[tag.html.len()..];
        if tag.is_end || !WHOLE.contains(&tag.name) {
            return Some(Token::Tag(tag));
        }
        let end = format!("</{}>", tag.name);
        let length = self.0.find(&end).map_or(self.0.len(), |at| at + end.len());
        let (rest, following) = self.0.split_at(length);
        self.0 = following;
        Some(Token::Whole(tag, rest))
    }
}

/// The tag or comment at the beginning of this HTML.
fn tag(html: &str) -> Tag<'_> {
    if html.starts_with("<!--") {
        let length = html.find("-->").map_or(html.len(), |at| at + 3);
        return Tag { html: &html[..length], name: "", is_end: false };
    }
    let mut quote = None;
    let end = html.find(|c: char| match (quote, c) {
        (None, '>') => true,
        (None, '"' | '\'') => {
            quote = Some(c);
            false
        }
        (Some(open), c) if open == c => {
            quote = None;
            false
        }
        _ => false,
    });
    let html = &html[..end.map_or(html.len(), |at| at + 1)];
    let is_end = html.starts_with("</");
    let named = html.trim_start_matches(['<', '/']);
    let length = named.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(named.len());
    Tag { html, name: &named[..length], is_end }
}

/// The attributes that people read.
const READ: [&str; 6] = ["alt", "aria-label", "data-label", "label", "placeholder", "title"];

/// The values of attributes of a tag that people read, with the HTML before each; and the rest.
pub fn attributes<'h>(tag: &Tag<'h>) -> (Vec<(&'h str, &'h str)>, &'h str) {
    let (mut found, mut begin, mut at) = (Vec::new(), 0, 0);
    while let Some(start) = tag.html[at..].find("=\"").map(|offset| at + offset) {
        let value = start + 2;
        let Some(end) = tag.html[value..].find('"').map(|offset| value + offset) else { break };
        let name = tag.html[..start].rsplit([' ', '\n']).next().unwrap_or_default();
        if READ.contains(&name) {
            found.push((&tag.html[begin..value], &tag.html[value..end]));
            begin = end;
        }
        at = end + 1;
    }
    (found, &tag.html[begin..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_taken_apart() {
        let html = "<!doctype html><p title=\"a > b\">x<br><code a>y</code></p><!-- z --> w";
        let tokens: Vec<_> = Tokens(html).collect();
        let tag = |html, name, is_end| Tag { html, name, is_end };
        assert_eq!(
            tokens,
            [
                Token::Tag(tag("<!doctype html>", "", false)),
                Token::Tag(tag("<p title=\"a > b\">", "p", false)),
                Token::Text("x"),
                Token::Tag(tag("<br>", "br", false)),
                Token::Whole(tag("<code a>", "code", false), "y</code>"),
                Token::Tag(tag("</p>", "p", true)),
                Token::Tag(tag("<!-- z -->", "", false)),
                Token::Text(" w"),
            ]
        );
        for broken in ["<", "<p", "<p title=\"", "<!-- x", "<code>x", "</", "<code"] {
            assert!(Tokens(broken).count() < 4, "{broken}");
        }
        let read = tag("<a title=\"x\" href=\"y\" aria-label=\"z\">", "a", false);
        let (found, rest) = attributes(&read);
        assert_eq!(found, [("<a title=\"", "x"), ("\" href=\"y\" aria-label=\"", "z")]);
        assert_eq!(rest, "\">");
    }
}
