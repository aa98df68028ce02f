//! The lines of LDIF and vCards, which go on in the next line if that begins with a space.

use std::io::BufRead;

use polynym_lines::{Line, Lines, MAX_LINE_BYTES};

/// The bytes that are kept of a line that is too long: its name.
const KEPT_BYTES: usize = 256;

/// The bytes that a line costs besides its text.
pub const LINE_COST: usize = 64;

/// A line with its further lines.
#[derive(Debug, PartialEq, Eq)]
pub struct Unfolded {
    /// The number of its first line, from 1.
    pub line: i64,
    /// The bytes of the file.
    pub bytes: usize,
    /// The text without line breaks; of a line that is too long, its beginning.
    pub text: Vec<u8>,
    /// Whether it is too long.
    pub is_cut: bool,
}

/// The lines of a reader.
pub struct UnfoldedLines<R> {
    lines: Lines<R>,
    ahead: Option<(i64, Line, usize)>,
}

impl<R: BufRead> UnfoldedLines<R> {
    /// The lines of a reader.
    pub const fn new(reader: R) -> Self {
        Self { lines: Lines::new(reader), ahead: None }
    }

    /// The next line; none at the end.
    ///
    /// # Errors
    /// The file cannot be read: in words.
    pub fn next_line(&mut self) -> Result<Option<Unfolded>, String> {
        let Some((line, first, bytes)) = self.take()? else { return Ok(None) };
        let mut whole = Unfolded { line, bytes, text: Vec::new(), is_cut: false };
        let mut cost = 0;
        whole.add(first, 0, &mut cost);
        loop {
            match self.take()? {
                Some((_, further, bytes)) if goes_on(&further) => {
                    whole.bytes += bytes;
                    whole.add(further, 1, &mut cost);
                }
                other => {
                    self.ahead = other;
                    return Ok(Some(whole));
                }
            }
        }
    }

    fn take(&mut self) -> Result<Option<(i64, Line, usize)>, String> {
        match self.ahead.take() {
            Some(line) => Ok(Some(line)),
            None => self.lines.next_line().map_err(|error| error.to_string()),
        }
    }
}

fn goes_on(line: &Line) -> bool {
    matches!(line, Line::Whole(text) if matches!(text.first(), Some(b' ' | b'\t')))
}

impl Unfolded {
    /// Adds a line without its first bytes. `cost` is that of the lines so far.
    fn add(&mut self, line: Line, start: usize, cost: &mut usize) {
        if let Line::Whole(text) = &line {
            *cost += text.len() + LINE_COST;
        }
        match line {
            Line::Whole(text) if !self.is_cut && *cost <= MAX_LINE_BYTES => {
                self.text.extend_from_slice(&text[start..]);
            }
            _ => {
                self.is_cut = true;
                self.text = self.text[..self.text.len().min(KEPT_BYTES)].to_vec();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_joined_and_bounded() {
        let long = format!(" {}\r\n", "x".repeat(1 << 20)).repeat(5);
        let text = format!("a: 1\r\n 2\r\n\t3\r\n\r\nphoto:: x\r\n{long}b: 4");
        let mut lines = UnfoldedLines::new(text.as_bytes());
        let mut next = || lines.next_line().unwrap().map(|one| (one.line, one.text, one.is_cut));
        assert_eq!(next(), Some((1, b"a: 123".to_vec(), false)));
        assert_eq!(next(), Some((4, Vec::new(), false)));
        let (line, text, is_cut) = next().unwrap();
        assert!(line == 5 && text.starts_with(b"photo:: xx") && text.len() == KEPT_BYTES && is_cut);
        assert_eq!(next(), Some((11, b"b: 4".to_vec(), false)));
        assert_eq!(next(), None);
    }
}
