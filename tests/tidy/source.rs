//! A Rust file as `tidy` sees it: its code without comments, literals and tests, and what can be
//! found in that.

use std::ops::Range;

/// One file.
pub struct Source {
    /// The path from the root of the project, with `/`.
    pub path: String,
    /// The file as it is.
    pub text: String,
    /// The same lines, with comments, literals and tests blanked out.
    pub code: String,
}

/// A function: its name, the line it starts on, and how many lines it has from there to its last
/// brace.
pub struct Function {
    pub name: String,
    pub line: usize,
    pub lines: usize,
}

impl Source {
    pub fn new(path: &str, text: &str) -> Self {
        let code = without_tests(&without_literals(text));
        Self { path: path.to_owned(), text: text.to_owned(), code }
    }

    /// Whether the whole file is tests.
    pub fn is_test(&self) -> bool {
        self.path.split('/').any(|part| matches!(part, "tests" | "tests.rs"))
    }

    /// How many lines the file has, those of tests inside it left out.
    pub fn lines(&self) -> usize {
        let blanked = self
            .text
            .lines()
            .zip(self.code.lines())
            .filter(|(_, code)| code.starts_with(TEST_MARK));
        self.text.lines().count() - blanked.count()
    }

    /// The functions outside tests that have a body.
    pub fn functions(&self) -> Vec<Function> {
        words(&self.code)
            .filter(|(_, word)| *word == "fn")
            .filter_map(|(at, _)| self.function(at))
            .collect()
    }

    fn function(&self, at: usize) -> Option<Function> {
        let after = self.code[at + "fn".len()..].trim_start();
        let name = after.split(|c| !is_word(c)).next().filter(|name| !name.is_empty())?.to_owned();
        let end = item_end(&self.code, at);
        let has_body = self.code[..end].ends_with('}');
        let lines = self.code[at..end].lines().count();
        has_body.then(|| Function { name, line: line(&self.code, at), lines })
    }

    /// The paths that start with `crate`, `super` or `polynym`, groups taken apart, each with its
    /// line.
    pub fn project_paths(&self) -> Vec<(usize, Vec<String>)> {
        let mut found = Vec::new();
        for (at, word) in words(&self.code) {
            let starts =
                matches!(word, "crate" | "super" | "polynym") && !self.code[..at].ends_with("::");
            if starts && self.code[at + word.len()..].starts_with("::") {
                let mut paths = Vec::new();
                take_tree(&self.code[at..], &[], &mut paths);
                found.extend(paths.into_iter().map(|path| (line(&self.code, at), path)));
            }
        }
        found
    }

    /// The lines on which a path starts with the name of another crate.
    pub fn crate_uses(&self, name: &str) -> Vec<usize> {
        let is_use = |&(at, word): &(usize, &str)| {
            let before = self.code[..at].trim_end();
            let starts_path =
                self.code[at + word.len()..].starts_with("::") && !before.ends_with("::");
            word == name
                && (starts_path || before.ends_with("use") || before.ends_with("extern crate"))
        };
        words(&self.code).filter(is_use).map(|(at, _)| line(&self.code, at)).collect()
    }
}

/// What blanks out a line that belongs to a test.
const TEST_MARK: char = '\u{0}';

/// The number of the line that holds the byte `at`.
pub fn line(text: &str, at: usize) -> usize {
    text[..at].matches('\n').count() + 1
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// The names, keywords and numbers of `code`, and where each starts.
pub fn words(code: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let start = at + code[at..].find(is_word)?;
        let length = code[start..].find(|c| !is_word(c)).unwrap_or(code.len() - start);
        at = start + length;
        Some((start, &code[start..at]))
    })
}

/// Takes one path of a `use` tree from the start of `text`; answers with what follows it.
fn take_tree<'a>(text: &'a str, prefix: &[String], paths: &mut Vec<Vec<String>>) -> &'a str {
    let text = text.trim_start();
    if let Some(mut rest) = text.strip_prefix('{') {
        while let Some(next) = rest.trim_start().chars().next().filter(|c| *c != '}') {
            rest = rest.trim_start();
            rest = if is_word(next) || next == '{' {
                take_tree(rest, prefix, paths)
            } else {
                &rest[next.len_utf8()..]
            };
        }
        return rest.trim_start().strip_prefix('}').unwrap_or_default();
    }
    let length = text.find(|c| !is_word(c)).unwrap_or(text.len());
    let (name, rest) = text.split_at(length);
    let path: Vec<_> = prefix.iter().cloned().chain([name.to_owned()]).collect();
    match rest.strip_prefix("::") {
        Some(more) if more.starts_with(|c| is_word(c) || c == '{') => take_tree(more, &path, paths),
        _ => {
            paths.push(path);
            rest
        }
    }
}

/// Where the item that starts at `at` ends: after its `;`, or after the brace that closes its first
/// block.
fn item_end(code: &str, at: usize) -> usize {
    let mut depth = 0;
    for (offset, c) in code[at..].char_indices() {
        match c {
            '{' | '(' | '[' => depth += 1,
            '}' | ')' | ']' => depth -= 1,
            _ => {}
        }
        if depth == 0 && matches!(c, '}' | ';') {
            return at + offset + 1;
        }
    }
    code.len()
}

/// Marks the lines of items under `#[cfg(test)]` as tests.
fn without_tests(code: &str) -> String {
    let mut out = code.to_owned();
    while let Some(at) = out.find("#[cfg(test)]") {
        let end = item_end(&out, at + "#[cfg(test)]".len());
        let first = out[..at].rfind('\n').map_or(0, |newline| newline + 1);
        let marks =
            out[first..end].matches('\n').map(|_| format!("{TEST_MARK}\n")).collect::<String>();
        out.replace_range(first..end, &format!("{marks}{TEST_MARK}"));
    }
    out
}

/// Blanks out comments, texts and characters. A blank is as long as what it stands for.
fn without_literals(text: &str) -> String {
    let mut out = text.to_owned();
    let mut at = 0;
    while let Some(c) = text[at..].chars().next() {
        let hidden = hidden(&text[at..]);
        blank(&mut out, at..at + hidden);
        let word = text[at..].find(|c| !is_word(c)).unwrap_or(text.len() - at);
        at += hidden.max(word).max(c.len_utf8());
    }
    out
}

fn blank(out: &mut String, range: Range<usize>) {
    let blanks: String =
        out[range.clone()].bytes().map(|byte| if byte == b'\n' { '\n' } else { ' ' }).collect();
    out.replace_range(range, &blanks);
}

/// How many bytes at the start of `text` are a comment or a literal.
fn hidden(text: &str) -> usize {
    let prefix = ["br", "cr", "b", "c", "r"]
        .into_iter()
        .find(|prefix| text.starts_with(prefix))
        .unwrap_or_default();
    let literal = &text[prefix.len()..];
    let hashes = literal.len() - literal.trim_start_matches('#').len();
    if text.starts_with("//") {
        text.find('\n').unwrap_or(text.len())
    } else if text.starts_with("/*") {
        comment_length(text)
    } else if prefix.ends_with('r') && literal[hashes..].starts_with('"') {
        let end = format!("\"{}", "#".repeat(hashes));
        let from = prefix.len() + hashes + 1;
        text[from..].find(&end).map_or(text.len(), |at| from + at + end.len())
    } else if literal.starts_with('"') {
        prefix.len() + quoted_length(literal, '"')
    } else if literal.starts_with('\'') && is_character(literal) {
        prefix.len() + quoted_length(literal, '\'')
    } else {
        0
    }
}

/// A quote that closes one character later, or an escape: else it is a lifetime.
fn is_character(text: &str) -> bool {
    let mut chars = text.chars().skip(1);
    chars.next() == Some('\\') || chars.next() == Some('\'')
}

fn quoted_length(text: &str, quote: char) -> usize {
    let mut escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        if c == quote && !escaped {
            return at + 1;
        }
        escaped = c == '\\' && !escaped;
    }
    text.len()
}

/// Comments nest.
fn comment_length(text: &str) -> usize {
    let (mut depth, mut at) = (0, 0);
    while at < text.len() {
        let step = &text[at..];
        match (step.starts_with("/*"), step.starts_with("*/")) {
            (true, _) => (depth, at) = (depth + 1, at + 2),
            (_, true) => (depth, at) = (depth - 1, at + 2),
            _ => at += step.chars().next().map_or(1, char::len_utf8),
        }
        if depth == 0 {
            return at;
        }
    }
    text.len()
}
