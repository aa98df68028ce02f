//! The lines of a file, with their numbers. The memory for a line is bounded: longer ones are
//! skipped.

use std::io::{self, BufRead};

/// The maximum bytes of a line.
pub const MAX_LINE_BYTES: usize = 4 << 20;

/// A line.
#[derive(Debug, PartialEq, Eq)]
pub enum Line {
    /// The bytes, without the line break.
    Whole(Vec<u8>),
    /// The number of bytes, which exceeds the maximum.
    TooLong(usize),
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
}
