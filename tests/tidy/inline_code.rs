//! Inline code of documents and of doc comments, outside code blocks.

use super::links::prose;

/// Returns the inline code of a document, with the number of its line.
pub fn of_document(text: &str) -> Vec<(usize, String)> {
    let table_or_title = |line: &str| line.starts_with(['|', '#', '-', '>']) || line.is_empty();
    spans(prose(text).map(|(n, line)| (n, line, table_or_title(line))))
}

/// Returns the inline code of the comments of a Rust file that begin with one of the marks, with
/// the number of its line.
pub fn of_comments(text: &str, marks: &[&str]) -> Vec<(usize, String)> {
    let comment = |line: &str| {
        let trimmed = line.trim_start();
        marks.iter().find_map(|mark| trimmed.strip_prefix(mark)).unwrap_or_default().to_owned()
    };
    let comments: Vec<_> = text.lines().map(comment).collect();
    let joined = comments.join("\n");
    spans(prose(&joined).map(|(n, line)| (n, line, line.is_empty())))
}

/// Returns the texts between backticks. One may go over two lines, unless the second begins a
/// paragraph, a row or an item.
fn spans<'a>(lines: impl Iterator<Item = (usize, &'a str, bool)>) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    let mut open: Option<(usize, String)> = None;

    for (n, line, begins) in lines {
        if begins {
            open = None;
        }
        if let Some((_, code)) = &mut open {
            code.push(' ');
        }
        for c in line.chars() {
            match (&mut open, c) {
                (Some(_), '`') => found.extend(open.take()),
                (None, '`') => open = Some((n, String::new())),
                (Some((_, code)), c) => code.push(c),
                (None, _) => {}
            }
        }
    }
    found
}

#[test]
fn inline_code_is_found() {
    let code = |n: usize, code: &str| (n, code.to_owned());
    let text = "a `b` c `d\ne`\n```\n`no`\n```\n| `f |\n| `g` |";
    assert_eq!(of_document(text), [code(1, "b"), code(1, "d e"), code(7, "g")]);
    let text = "//! `a`\n\nlet b = \"`no`\"; // `no`\n    /// `c`\n";
    assert_eq!(of_comments(text, &["//!", "///"]), [code(1, "a"), code(4, "c")]);
    assert_eq!(of_comments(text, &["//!"]), [code(1, "a")]);
}
