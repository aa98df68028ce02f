//! Texts in HTML.

/// The references that texts of pages have, and their characters.
const REFERENCES: [(&str, char); 11] = [
    ("&#38;", '&'),
    ("&#60;", '<'),
    ("&#62;", '>'),
    ("&#34;", '"'),
    ("&#39;", '\''),
    ("&amp;", '&'),
    ("&lt;", '<'),
    ("&gt;", '>'),
    ("&quot;", '"'),
    ("&apos;", '\''),
    ("&nbsp;", '\u{a0}'),
];

/// The text that HTML stands for.
pub fn unescaped(html: &str) -> String {
    let mut text = String::with_capacity(html.len());
    let mut rest = html;
    while let Some(at) = rest.find('&') {
        text.push_str(&rest[..at]);
        rest = &rest[at..];
        let known = REFERENCES.iter().find(|(name, _)| rest.starts_with(name));
        let (name, c) = known.copied().unwrap_or(("&", '&'));
        text.push(c);
        rest = &rest[name.len()..];
    }
    text.push_str(rest);
    text
}

/// Appends a text as HTML.
pub fn push_escaped(text: &str, html: &mut String) {
    for c in text.chars() {
        match c {
            '&' => html.push_str("&#38;"),
            '<' => html.push_str("&#60;"),
            '>' => html.push_str("&#62;"),
            '"' => html.push_str("&#34;"),
            '\'' => html.push_str("&#39;"),
            c => html.push(c),
        }
    }
}

/// Appends a text with one space for each white space.
pub fn push_collapsed(text: &str, to: &mut String) {
    for c in text.chars() {
        let c = if c.is_ascii_whitespace() { ' ' } else { c };
        if c != ' ' || !to.ends_with(' ') {
            to.push(c);
        }
    }
}

/// Whether a text has a letter.
pub fn has_letter(text: &str) -> bool {
    text.chars().any(char::is_alphabetic)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_read_and_written() {
        assert_eq!(unescaped("a &#60;b&#62; &amp;&amp; &quot;c& &x;"), "a <b> && \"c& &x;");
        let mut html = String::new();
        push_escaped("a <b> & \"c\"", &mut html);
        assert_eq!(html, "a &#60;b&#62; &#38; &#34;c&#34;");
        let mut text = String::new();
        push_collapsed(" a\n  b ", &mut text);
        assert_eq!(text, " a b ");
    }
}
