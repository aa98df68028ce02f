//! Finds quotes in a CSV file that violate RFC 4180. The parser accepts them as text, and with a
//! missing closing quote joins several rows into one cell.

use std::collections::VecDeque;

/// A scanner of all bytes of a file, in order.
pub struct Quotes {
    separator: u8,
    state: State,
    /// The number of scanned bytes.
    count: u64,
    /// The offsets of misplaced quotes, and of text after closing quotes.
    found: VecDeque<u64>,
    /// The cells of the row up to here.
    cells: usize,
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum State {
    /// Before the first byte of a cell.
    #[default]
    Start,
    Plain,
    Quoted,
    /// After a quote inside a quoted cell: it closes the cell, or is the first of a pair.
    Ended,
}

impl Quotes {
    /// A scanner of cells between such signs.
    pub fn new(separator: u8) -> Self {
        Self { separator, state: State::default(), count: 0, found: VecDeque::new(), cells: 1 }
    }

    /// Scans the next bytes, after the parser has consumed all bytes before them. Returns the
    /// number of cells in the row with the most, as far as it was read.
    pub fn read(&mut self, bytes: &[u8]) -> usize {
        // The remaining offsets belong to the row that the parser is reading: one is enough.
        self.found.truncate(1);
        let mut most = self.cells;
        for byte in bytes {
            self.step(*byte);
            self.count += 1;
            most = most.max(self.cells);
        }
        most
    }

    fn step(&mut self, byte: u8) {
        self.state = match (self.state, byte) {
            (State::Quoted, b'"') => State::Ended,
            (State::Start | State::Ended, b'"') | (State::Quoted, _) => State::Quoted,
            (_, b'\r' | b'\n') => {
                self.cells = 1;
                State::Start
            }
            (_, separator) if separator == self.separator => {
                self.cells += 1;
                State::Start
            }
            (state, _) => {
                if state == State::Ended || byte == b'"' {
                    self.found.push_back(self.count);
                }
                State::Plain
            }
        };
    }

    /// Whether nothing of a row was scanned yet.
    pub fn are_between_rows(&self) -> bool {
        self.state == State::Start && self.cells == 1
    }

    /// Whether the bytes before this offset have errors that were not reported yet.
    pub fn are_wrong_before(&mut self, byte: u64) -> bool {
        let count = self.found.partition_point(|offset| *offset < byte);
        self.found.drain(..count).next().is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn errors(text: &str) -> Vec<u64> {
        let mut quotes = Quotes::new(b',');
        text.as_bytes().chunks(2).for_each(|bytes| _ = quotes.read(bytes));
        quotes.found.into()
    }

    #[test]
    fn quotes_enclose_whole_cells() {
        for valid in ["a,b\r\nc,\"d\"\n", "\"a\"\"b\",\"\",\"c,\nd\"\n", ",\n"] {
            assert_eq!(errors(valid), [0_u64; 0], "{valid:?}");
        }
        assert_eq!(errors("ha\"l,b\n"), [2]);
        assert_eq!(errors("\"a\"x,b\n"), [3]);
        assert_eq!(errors("a,\"b\nc,\"d\n"), [8], "the quote before d ends the cell");
    }

    #[test]
    fn offsets_are_reported_once() {
        let mut quotes = Quotes::new(b',');
        quotes.read(b"a\"\nb\nc\"\n");
        assert!(quotes.are_wrong_before(3));
        assert!(!quotes.are_wrong_before(5));
        assert!(quotes.are_wrong_before(8));
    }
}
