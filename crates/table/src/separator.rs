//! The separator of a file's columns.

use csv::{ByteRecord, ReaderBuilder};

/// The separators that files have, the usual ones first.
const SEPARATORS: [u8; 4] = [b',', b';', b'\t', b'|'];
/// The rows that are looked at.
const ROWS: usize = 50;
/// The line with which a file of Excel names its separator.
const DECLARED: &[u8] = b"sep=";

/// The separator that the first line declares, as in `sep=;`, and the length of that line.
pub fn declared(head: &[u8]) -> Option<(u8, usize)> {
    let rest = head.get(..DECLARED.len()).filter(|start| start.eq_ignore_ascii_case(DECLARED));
    let rest = rest.and(head.get(DECLARED.len()..))?;
    let line_break = match rest.get(1..)? {
        [b'\r', b'\n', ..] => 2,
        [b'\r' | b'\n', ..] => 1,
        _ => return None,
    };
    Some((rest[0], DECLARED.len() + 1 + line_break))
}

/// The separator of a file that begins with `head`: the one by which most rows have as many columns
/// as the first, and then the one with the most columns.
pub fn found(head: &[u8]) -> u8 {
    let score = |separator: &u8| {
        let (columns, agreeing) = columns(head, *separator);
        if columns > 1 { (agreeing, columns) } else { (0, 0) }
    };
    // Of equals the last is the greatest: the usual ones go last.
    SEPARATORS.into_iter().rev().max_by_key(score).unwrap_or(b',')
}

/// The columns of the first row, and the share of rows that have as many, in hundredths. Blank
/// cells after the last column do not count.
fn columns(head: &[u8], separator: u8) -> (usize, usize) {
    let mut reader = ReaderBuilder::new()
        .delimiter(separator)
        .has_headers(false)
        .flexible(true)
        .from_reader(head);
    let rows: Vec<_> = reader.byte_records().take(ROWS).flatten().collect();
    // The last row may be cut off.
    let whole = if rows.len() > 2 && rows.len() < ROWS { rows.len() - 1 } else { rows.len() };
    let first = rows.first().map_or(0, ByteRecord::len);
    let is_blank = |cell: &[u8]| cell.trim_ascii().is_empty();
    let agrees = |row: &&ByteRecord| row.len() >= first && row.iter().skip(first).all(is_blank);
    let agreeing = rows[..whole].iter().filter(agrees).count();
    (first, agreeing * 100 / whole.max(1))
}

/// The name of a separator.
pub fn name(separator: u8) -> String {
    match separator {
        b',' => "comma".to_owned(),
        b';' => "semicolon".to_owned(),
        b'\t' => "tab".to_owned(),
        other => char::from(other).to_string(),
    }
}

/// The separator with this name, or that is this character.
///
/// # Errors
/// It is neither.
pub fn named(text: &str) -> Result<u8, String> {
    match (text, text.as_bytes()) {
        ("comma", _) => Ok(b','),
        ("semicolon", _) => Ok(b';'),
        ("tab" | "\\t", _) => Ok(b'\t'),
        (_, [byte]) if !byte.is_ascii_alphanumeric() && !b"\"\r\n".contains(byte) => Ok(*byte),
        _ => Err(format!("--separator {text}: must be comma, semicolon, tab or a sign such as |")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_separator_gives_each_row_the_same_columns() {
        for (head, separator) in [
            ("a,b\n1,2\n", b','),
            ("Name, Vorname;Mail;Ort\nSmith, Joe;a;b\nLee;c;d\n", b';'),
            ("a\tb;c\n1\t2,5\n", b'\t'),
            ("a|b|c\n\"1,2\"|3|4\n", b'|'),
            ("Name, Vorname;Mail;Ort\nSmith, Joe;a;b;;\nLee, Ann;c;d\n", b';'),
            ("mail\na@example.com\n", b','),
            ("mail\na,b,c\nd,e\n", b','),
            ("", b','),
        ] {
            assert_eq!(found(head.as_bytes()), separator, "{head:?}");
        }
    }

    #[test]
    fn a_file_declares_its_separator() {
        assert_eq!(declared(b"sep=;\r\na;b"), Some((b';', 7)));
        assert_eq!(declared(b"SEP=\t\na"), Some((b'\t', 6)));
        assert_eq!(declared(b"sep=;x"), None);
        assert_eq!(declared(b"se"), None);
        assert_eq!(named("tab"), Ok(b'\t'));
        assert!(named("\"").is_err());
    }
}
