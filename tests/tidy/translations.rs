//! Messages of a catalogue of translations that nothing writes any more, and errors that it lacks.

use std::collections::HashSet;

use regex::Regex;

/// The texts of templates and programs between their expressions.
pub struct Texts {
    texts: HashSet<String>,
    expressions: Regex,
    attributes: Regex,
    tags: Regex,
    strings: Regex,
    continuations: Regex,
    /// What stands for data in texts.
    data: Regex,
}

impl Texts {
    pub fn new() -> Self {
        let regex = |text| Regex::new(text).unwrap();
        Self {
            texts: HashSet::new(),
            expressions: regex(r"(?s)\{[{%#].*?[%}#]\}"),
            attributes: regex(r#"(?:title|label|placeholder|alt)="([^"]*)""#),
            tags: regex(r"<[^>]*>"),
            strings: regex(r#"(?s)"((?:[^"\\]|\\.)*)""#),
            continuations: regex(r"\\\n *"),
            data: regex(r"\{[^{}]*\}|·|NAME"),
        }
    }

    /// Adds those of a template, also of the strings in its expressions.
    pub fn add_template(&mut self, template: &str) {
        let expressions: Vec<_> = self.expressions.find_iter(template).collect();
        expressions.iter().for_each(|expression| self.add_strings(expression.as_str()));
        let html = self.expressions.replace_all(template, "{}").into_owned();
        let attributes: Vec<_> = self.attributes.captures_iter(&html).collect();
        attributes.iter().for_each(|attribute| self.add(&attribute[1]));
        let text = self.tags.replace_all(&html, "{}").into_owned();
        self.add(&text);
    }

    /// Adds those of the strings in code.
    pub fn add_strings(&mut self, code: &str) {
        let code = code.replace("'\"'", "' '");
        let strings: Vec<_> = self.strings.captures_iter(&code).collect();
        for string in strings {
            let text = self.continuations.replace_all(&string[1], "").replace("\\\"", "\"");
            if text.starts_with('<') { self.add_template(&text) } else { self.add(&text) }
        }
    }

    fn add(&mut self, text: &str) {
        let text = text.replace("&gt;", ">").replace("&lt;", "<").replace("&amp;", "&");
        let texts: Vec<_> = self.data.split(&text).map(normal).collect();
        self.texts.extend(texts);
    }

    /// Whether a message can be made of these texts.
    pub fn make(&self, message: &str) -> bool {
        let message = match message.strip_prefix('[').and_then(|rest| rest.split_once("] ")) {
            Some((_, message)) => message,
            None => message,
        };
        let message = self.tags.replace_all(message, "{}").into_owned();
        self.data.split(&message).all(|part| self.make_part(&normal(part)))
    }

    /// Whether a text is one, or consists of several.
    fn make_part(&self, text: &str) -> bool {
        if self.texts.contains(text) || !text.contains(char::is_alphabetic) {
            return true;
        }
        let is_inside = |c: Option<char>| c.is_some_and(char::is_alphanumeric);
        let is_end = |at: &usize| {
            !is_inside(text[..*at].chars().next_back()) || !is_inside(text[*at..].chars().next())
        };
        let ends: Vec<_> = (0..=text.len()).filter(|at| text.is_char_boundary(*at)).collect();
        let ends: Vec<_> = ends.into_iter().filter(is_end).collect();
        let mut is_made = vec![false; ends.len()];
        is_made[0] = true;
        for from in 0..ends.len() {
            if !is_made[from] {
                continue;
            }
            for to in from + 1..ends.len() {
                is_made[to] |= self.is_text(&text[ends[from]..ends[to]]);
            }
        }
        is_made[ends.len() - 1]
    }

    /// Whether it is a text of more than a letter, a singular of one, or no word.
    fn is_text(&self, piece: &str) -> bool {
        let text = normal(piece);
        let has = |text: &str| self.texts.contains(text);
        let letters = text.chars().filter(|c| c.is_alphabetic()).count();
        letters == 0 || (letters > 1 && (has(&text) || has(&format!("{text}s"))))
    }
}

/// A text with single spaces, and a small letter at its beginning: programs capitalise texts.
fn normal(text: &str) -> String {
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut chars = text.chars();
    let first: String = chars.next().into_iter().flat_map(char::to_lowercase).collect();
    first + chars.as_str()
}

fn messages(catalogue: &str) -> impl Iterator<Item = &str> {
    let messages = catalogue.lines().filter(|line| !line.starts_with("# "));
    messages.filter(|line| !line.is_empty() && !line.starts_with("  "))
}

/// The messages of a catalogue that these texts do not make.
pub fn stale(catalogue: &str, texts: &Texts) -> Vec<String> {
    messages(catalogue).filter(|message| !texts.make(message)).map(str::to_owned).collect()
}

/// The errors of a file that a catalogue lacks. Pages show them as sentences.
pub fn untranslated(catalogue: &str, errors: &str) -> Vec<String> {
    let data = Regex::new(r"\{[^{}]*\}").unwrap();
    let known: HashSet<_> =
        messages(catalogue).map(|message| data.replace_all(message, "{}").into_owned()).collect();
    let error = Regex::new(r#"#\[error\([ \n]*"((?:[^"\\]|\\[^u])*)""#).unwrap();
    let continuations = Regex::new(r"\\\n *").unwrap();
    let sentence = |text: &str| {
        let text = continuations.replace_all(text, "");
        let text = data.replace_all(&text, "{}").into_owned();
        let mut chars = text.chars();
        let first: String = chars.next().into_iter().flat_map(char::to_uppercase).collect();
        format!("{first}{}.", chars.as_str())
    };
    let sentences = error.captures_iter(errors).map(|found| sentence(&found[1]));
    let has_words = |text: &String| data.replace_all(text, "").contains(char::is_alphabetic);
    sentences.filter(has_words).filter(|text| !known.contains(text)).collect()
}
