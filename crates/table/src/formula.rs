//! Cells that a spreadsheet would compute instead of showing them. An apostrophe before a formula
//! makes it a text, and an import takes it off again.

use std::borrow::Cow;

use csv::{Terminator, WriterBuilder};
use unicode_normalization::UnicodeNormalization;

use crate::absent::Absent;

/// The sign that makes a text of a formula.
const MARK: char = '\'';
/// The signs between cells and rows. A program that reads a table by another separator begins a
/// cell after each of them.
const ENDS: [char; 6] = [',', ';', '\t', '|', '\r', '\n'];

/// A row of a table (RFC 4180), in which no cell is a formula.
///
/// # Errors
/// None that is known: the row is written to memory.
pub fn csv_row<'c>(
    cells: impl IntoIterator<Item = &'c str>,
    separator: u8,
) -> std::io::Result<Vec<u8>> {
    let mut writer = WriterBuilder::new()
        .delimiter(separator)
        .terminator(Terminator::CRLF)
        .flexible(true)
        .from_writer(Vec::new());
    writer.write_record(cells.into_iter().map(|cell| guarded(cell).into_owned()))?;
    writer.into_inner().map_err(|error| std::io::Error::other(error.to_string()))
}

/// The cell with an apostrophe before each formula, also before those with apostrophes.
pub fn guarded(cell: &str) -> Cow<'_, str> {
    with_parts(cell, |part| is_formula(part).then(|| format!("{MARK}{part}")))
}

/// The cell whose value is this text, for [`csv_row`]: an apostrophe precedes texts that an import
/// takes for no value.
pub fn cell_of(text: &str) -> Cow<'_, str> {
    match is_no_value(text) {
        true => format!("{MARK}{text}").into(),
        false => text.into(),
    }
}

/// The text of a cell, without the apostrophes that make it a text.
pub fn text_of(cell: &str) -> Cow<'_, str> {
    match cell.strip_prefix(MARK).filter(|text| is_no_value(text)) {
        Some(text) => text.into(),
        None => without_marks(cell),
    }
}

/// The cell without an apostrophe before each formula that has one.
pub fn without_marks(cell: &str) -> Cow<'_, str> {
    with_parts(cell, |part| {
        part.strip_prefix(MARK).filter(|rest| is_formula(rest)).map(str::to_owned)
    })
}

/// The text with each part that begins a cell, by some separator, replaced as `edit` says.
fn with_parts(text: &str, edit: impl Fn(&str) -> Option<String>) -> Cow<'_, str> {
    let mut edited = String::new();
    let mut is_edited = false;
    for part in text.split_inclusive(ENDS) {
        let own = edit(part);
        is_edited |= own.is_some();
        edited.push_str(own.as_deref().unwrap_or(part));
    }
    if is_edited { edited.into() } else { text.into() }
}

/// Whether an import takes a cell for no value, whatever apostrophes precede it.
fn is_no_value(cell: &str) -> bool {
    let text = cell.trim_start_matches(MARK).trim();
    text.is_empty() || Absent::is_usual(text)
}

/// Whether a spreadsheet may compute a text instead of showing it, were it not for apostrophes.
/// Signed numbers and plain handles are shown.
fn is_formula(text: &str) -> bool {
    let is_ignored = |c: char| {
        let is_invisible = matches!(c, '\u{200b}'..='\u{200f}' | '\u{feff}');
        c.is_whitespace() || c.is_control() || is_invisible || c == '"' || c == MARK
    };
    let is_plain = |c: char| c.is_alphanumeric() || " ._-".contains(c);
    let is_number = |c: char| c.is_ascii_digit() || " .\u{a0}\u{202f}".contains(c);
    let mut signs = text.trim_end_matches(ENDS).trim_start_matches(is_ignored).chars();
    match signs.next().and_then(|first| std::iter::once(first).nfkc().next()) {
        Some('=') => true,
        Some('+' | '-' | '\u{2212}') => !signs.all(is_number),
        Some('@') => !signs.all(is_plain),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formulas_are_marked_and_numbers_are_not() {
        for (cell, wanted) in [
            ("=1+1", "'=1+1"),
            ("+A1", "'+A1"),
            ("-2+3", "'-2+3"),
            ("-2+cmd|' /C calc'!A0", "'-2+cmd|' /C calc'!A0"),
            ("@SUM(A1)", "'@SUM(A1)"),
            ("+HYPERLINK(\"\")", "'+HYPERLINK(\"\")"),
            ("+1-415-555", "'+1-415-555"),
            ("＝1+1", "'＝1+1"),
            ("－2＋3", "'－2＋3"),
            ("＠SUM(A1)", "'＠SUM(A1)"),
            (" =1", "' =1"),
            ("\"=1", "'\"=1"),
            ("\t=1", "\t'=1"),
            ("x;=1+1", "x;'=1+1"),
            ("x,=1\r\n=2|@a(b)", "x,'=1\r\n'=2|'@a(b)"),
            ("'=1", "''=1"),
        ] {
            assert_eq!(guarded(cell), wanted);
            assert_eq!(text_of(wanted), cell);
        }
        for cell in [
            "",
            "+14155552671",
            "-3.5",
            "-3,5",
            "@joe",
            "joe=1",
            "a@b.example",
            "'t Hart",
            "a;-1;+2",
            "-",
            "1-2",
        ] {
            assert_eq!(guarded(cell), cell);
            assert_eq!(text_of(cell), cell);
        }
    }

    /// Every text of these signs is read from the cell that has it, and no part of a written cell
    /// is a formula.
    #[test]
    fn each_text_is_read_from_its_cell() {
        let signs = ["'", "=", "-", "1", ";", "\n", "\"", " ", "x", "NULL", "＝", "@"];
        let count = signs.len();
        for n in 0..count.pow(4) {
            let digits = (0..4).map(|place| n / count.pow(place) % count);
            let text: String = digits.map(|digit| signs[digit]).collect();
            for text in [&*text, text.trim_start_matches('\'')] {
                let written = guarded(&cell_of(text)).into_owned();
                assert_eq!(text_of(&written), text, "{written:?}");
                let mut parts = written.split(ENDS);
                assert!(
                    parts.all(|part| part.starts_with(MARK) || !is_formula(part)),
                    "{written:?}"
                );
            }
        }
    }

    #[test]
    fn texts_that_look_like_no_value_have_a_cell() {
        for (text, cell) in [("NULL", "'NULL"), ("", "'"), ("  ", "'  "), ("'N/A", "''N/A")] {
            assert_eq!(cell_of(text), cell);
            assert_eq!(text_of(cell), text);
        }
        assert_eq!(cell_of("Anna"), "Anna");
    }
}
