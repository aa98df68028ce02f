//! The lines of a CSV file, which may end in LF, CRLF and CR, even in one file. The parser counts
//! LF alone, and reports where a row begins before the LF of a CRLF.

use std::collections::VecDeque;

/// A counter of the line breaks in all bytes of a file, in order.
#[derive(Default)]
pub struct LineBreaks {
    /// The number of bytes read.
    count: u64,
    follows_cr: bool,
    /// The start and the end of each break after the last row.
    breaks: VecDeque<(u64, u64)>,
    /// The number of breaks before those.
    passed: i64,
}

impl LineBreaks {
    /// A counter of a file that begins with this line.
    pub fn new(first_line: i64) -> Self {
        Self { passed: first_line - 1, ..Self::default() }
    }

    /// Reads the next bytes.
    pub fn read(&mut self, bytes: &[u8]) {
        for byte in bytes {
            match (byte, self.follows_cr) {
                (b'\n', true) => {
                    if let Some((_, end)) = self.breaks.back_mut() {
                        *end += 1;
                    }
                }
                (b'\n' | b'\r', _) => self.breaks.push_back((self.count, self.count + 1)),
                _ => {}
            }
            self.follows_cr = *byte == b'\r';
            self.count += 1;
        }
    }

    /// The line of the first cell of a row that begins at this offset or after line breaks there,
    /// from 1. Rows are asked for in order.
    pub fn line_at(&mut self, mut offset: u64) -> i64 {
        while let Some((_, end)) = self.breaks.pop_front_if(|(start, _)| *start <= offset) {
            self.passed += 1;
            offset = offset.max(end);
        }
        self.passed + 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_of_line_break_counts_once() {
        let text = b"a\nb\r\n\r\nc\rd\n\ne";
        for size in 1..text.len() {
            let mut breaks = LineBreaks::new(1);
            text.chunks(size).for_each(|bytes| breaks.read(bytes));
            // The parser reports the offset after the first byte of a break.
            let lines = [0, 2, 4, 9, 11].map(|offset| breaks.line_at(offset));
            assert_eq!(lines, [1, 2, 4, 5, 7], "in parts of {size}");
        }
    }
}
