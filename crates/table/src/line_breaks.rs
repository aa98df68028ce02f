//! The lines of a CSV file, which may end in LF, CRLF and CR, even in one file. The parser counts
//! LF alone, and reports where a row begins before the LF of a CRLF.

use std::collections::VecDeque;

/// A counter of the line breaks in all bytes of a file, in order. It keeps a bounded number of
/// them, however many there are.
#[derive(Default)]
pub struct LineBreaks {
    /// The number of bytes read.
    count: u64,
    follows_cr: bool,
    /// The end of the breaks before the first cell of the row.
    row_start: u64,
    /// The number of breaks before it.
    passed: i64,
    /// The breaks after it.
    later: VecDeque<Run>,
}

/// Breaks that are counted together.
struct Run {
    start: u64,
    end: u64,
    breaks: i64,
}

impl LineBreaks {
    /// A counter of a file that begins with this line.
    pub fn new(first_line: i64) -> Self {
        Self { passed: first_line - 1, ..Self::default() }
    }

    /// Reads the next bytes, after the parser has consumed all bytes before them.
    pub fn read(&mut self, bytes: &[u8]) {
        self.join_later();
        for byte in bytes {
            match (byte, self.follows_cr) {
                (b'\n', true) => self.lengthen(),
                (b'\n' | b'\r', _) => self.add(),
                _ => {}
            }
            self.follows_cr = *byte == b'\r';
            self.count += 1;
        }
    }

    /// Begins a row at this offset, or after line breaks there. Rows are begun in order.
    pub fn begin_row(&mut self, offset: u64) {
        self.row_start = offset;
        while let Some(run) = self.later.pop_front_if(|run| run.start <= self.row_start) {
            self.passed += run.breaks;
            self.row_start = self.row_start.max(run.end);
        }
    }

    /// The line of the first cell of the row, from 1, and its offset, once the row was read.
    pub const fn row(&self) -> (i64, u64) {
        (self.passed + 1, self.row_start)
    }

    /// Joins the breaks after the beginning of the row: all are in the row, which goes on.
    fn join_later(&mut self) {
        let breaks = self.later.iter().map(|run| run.breaks).sum();
        let ends = self.later.front().zip(self.later.back());
        if let Some((start, end)) = ends.map(|(first, last)| (first.start, last.end)) {
            self.later.clear();
            self.later.push_back(Run { start, end, breaks });
        }
    }

    /// Adds a break of the next byte.
    fn add(&mut self) {
        let (start, end) = (self.count, self.count + 1);
        match self.later.back_mut() {
            Some(run) if run.end == start => (run.end, run.breaks) = (end, run.breaks + 1),
            None if start <= self.row_start => {
                self.row_start = end;
                self.passed += 1;
            }
            _ => self.later.push_back(Run { start, end, breaks: 1 }),
        }
    }

    /// Adds the next byte to the last break.
    fn lengthen(&mut self) {
        match self.later.back_mut() {
            Some(run) => run.end += 1,
            None => self.row_start = self.row_start.max(self.count + 1),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_of_many_line_breaks_are_kept() {
        for text in ["\n", "\r\n", "\r", "x\n"] {
            let mut breaks = LineBreaks::new(1);
            for _ in 0..100 {
                breaks.read(text.repeat(1_000).as_bytes());
                assert!(breaks.later.len() <= 1_001, "{text:?}");
            }
            breaks.begin_row(breaks.count);
            assert_eq!(breaks.row(), (100_001, breaks.count), "{text:?}");
        }
    }
}
