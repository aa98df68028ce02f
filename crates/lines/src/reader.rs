//! The lines of a file, with their numbers. The memory for a line is bounded: longer ones are
//! skipped.

use std::io::{self, BufRead};
use std::sync::Arc;

use crate::line::{Parsed, parse};

/// The maximum bytes of a line.
pub const MAX_LINE_BYTES: usize = 4 << 20;

/// The mark with which some programs begin a text.
const BYTE_ORDER_MARK: char = '\u{feff}';

/// A line.
#[derive(Debug, PartialEq, Eq)]
pub enum Line {
    /// The bytes, without the line break.
    Whole(Vec<u8>),
    /// The number of bytes, which exceeds the maximum.
    TooLong(usize),
}

/// A line that cannot be imported.
#[derive(Debug, PartialEq, Eq)]
pub struct Unreadable {
    /// The text, unless it is too long or not UTF-8.
    pub text: Option<Arc<str>>,
    /// The error in words.
    pub message: String,
}

impl Line {
    /// Parses the line. Returns its text, too.
    ///
    /// # Errors
    /// The line cannot be imported.
    pub fn parse(self) -> Result<(Arc<str>, Parsed), Unreadable> {
        let bytes = match self {
            Self::Whole(bytes) => bytes,
            Self::TooLong(bytes) => {
                let mib = MAX_LINE_BYTES >> 20;
                let message = format!("the line has {bytes} bytes; at most {mib} MiB are allowed");
                return Err(Unreadable { text: None, message });
            }
        };
        let text = String::from_utf8(bytes).map_err(|_| Unreadable {
            text: None,
            message: "the line is not UTF-8: correct its source".to_owned(),
        })?;
        let text: Arc<str> = text.trim_start_matches(BYTE_ORDER_MARK).into();
        match parse(&text) {
            Ok(parsed) => Ok((text, parsed)),
            Err(message) => Err(Unreadable { text: Some(text), message }),
        }
    }
}

/// The lines of a reader.
pub struct Lines<R> {
    reader: R,
    number: i64,
}

impl<R: BufRead> Lines<R> {
    /// The lines of a reader.
    pub const fn new(reader: R) -> Self {
        Self { reader, number: 0 }
    }

    /// The next line, with its number from 1 and its bytes including the line break; none at the
    /// end.
    ///
    /// # Errors
    /// Those of the reader.
    pub fn next_line(&mut self) -> io::Result<Option<(i64, Line, usize)>> {
        let (mut line, mut bytes) = (Vec::new(), 0);
        loop {
            let buffer = self.reader.fill_buf()?;
            if buffer.is_empty() {
                break;
            }
            let end = buffer.iter().position(|byte| *byte == b'\n');
            let taken = end.map_or(buffer.len(), |end| end + 1);
            if bytes + taken <= MAX_LINE_BYTES {
                line.extend_from_slice(&buffer[..taken]);
            }
            bytes += taken;
            self.reader.consume(taken);
            if end.is_some() {
                break;
            }
        }

        if bytes == 0 {
            return Ok(None);
        }
        self.number += 1;
        if bytes > MAX_LINE_BYTES {
            return Ok(Some((self.number, Line::TooLong(bytes), bytes)));
        }
        while line.last().is_some_and(|byte| matches!(byte, b'\n' | b'\r')) {
            line.pop();
        }
        Ok(Some((self.number, Line::Whole(line), bytes)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_have_numbers_and_bounds() {
        let long = vec![b'x'; MAX_LINE_BYTES + 1];
        let text = [b"a\r\n\n", &long[..], b"\nb"].concat();
        let mut lines = Lines::new(io::BufReader::with_capacity(100, &text[..]));
        let mut next = || lines.next_line().unwrap();
        assert_eq!(next(), Some((1, Line::Whole(b"a".to_vec()), 3)));
        assert_eq!(next(), Some((2, Line::Whole(Vec::new()), 1)));
        assert_eq!(next(), Some((3, Line::TooLong(MAX_LINE_BYTES + 2), MAX_LINE_BYTES + 2)));
        assert_eq!(next(), Some((4, Line::Whole(b"b".to_vec()), 1)));
        assert_eq!(next(), None);
    }

    #[test]
    fn unreadable_lines_have_a_reason() {
        let error = |line: Line| line.parse().map(|(text, _)| text).unwrap_err();
        let long = error(Line::TooLong(5_000_000));
        assert_eq!(long.message, "the line has 5000000 bytes; at most 4 MiB are allowed");
        assert!(error(Line::Whole(vec![b'"', 0xff])).message.contains("not UTF-8"));
        let nonsense = error(Line::Whole("\u{feff}nonsense".into()));
        assert_eq!(nonsense.text.as_deref(), Some("nonsense"));
    }
}
