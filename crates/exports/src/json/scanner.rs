//! Finds the ends of values in JSON of any size, without keeping them. It does not check what is
//! between: a value that is used is parsed afterwards.

use std::io::{self, BufRead};

/// A reader of JSON that knows its position.
pub struct Scanner<R> {
    reader: R,
    /// The line, from 1.
    pub line: i64,
    /// The bytes so far.
    pub bytes: usize,
}

/// Why the rest of a file cannot be read.
pub enum Fault {
    /// It ends inside a value.
    Truncated,
    /// The reader failed.
    Io(io::Error),
}

/// Keeps the bytes of a value, up to a limit.
#[derive(Default)]
pub struct Kept {
    /// The bytes; none after the limit.
    pub content: Vec<u8>,
    /// The number of bytes.
    pub size: usize,
    /// The limit; 0 to keep nothing.
    pub limit: usize,
}

impl Kept {
    fn push(&mut self, byte: u8) {
        self.size += 1;
        match self.size {
            size if size <= self.limit => self.content.push(byte),
            _ => self.content = Vec::new(),
        }
    }
}

impl<R: BufRead> Scanner<R> {
    /// A reader at its beginning.
    pub const fn new(reader: R) -> Self {
        Self { reader, line: 1, bytes: 0 }
    }

    /// The next byte, which stays; none at the end.
    pub fn peek(&mut self) -> Result<Option<u8>, Fault> {
        Ok(self.reader.fill_buf().map_err(Fault::Io)?.first().copied())
    }

    /// Takes the next byte.
    pub fn next(&mut self) -> Result<u8, Fault> {
        let byte = self.peek()?.ok_or(Fault::Truncated)?;
        self.reader.consume(1);
        self.bytes += 1;
        self.line += i64::from(byte == b'\n');
        Ok(byte)
    }

    /// The next byte that is no white space, which stays; none at the end.
    pub fn peek_sign(&mut self) -> Result<Option<u8>, Fault> {
        while let Some(byte) = self.peek()? {
            if !matches!(byte, b' ' | b'\t' | b'\r' | b'\n') {
                return Ok(Some(byte));
            }
            self.next()?;
        }
        Ok(None)
    }

    /// Takes a value: a text, an object, a list, or what is up to the next separator.
    pub fn value(&mut self, kept: &mut Kept) -> Result<(), Fault> {
        match self.peek_sign()?.ok_or(Fault::Truncated)? {
            b'"' => self.text(kept),
            b'{' | b'[' => self.nested(kept),
            _ => self.plain(kept),
        }
    }

    /// Takes a text with its quotes.
    pub fn text(&mut self, kept: &mut Kept) -> Result<(), Fault> {
        kept.push(self.next()?);
        loop {
            let byte = self.next()?;
            kept.push(byte);
            match byte {
                b'"' => return Ok(()),
                b'\\' => kept.push(self.next()?),
                _ => {}
            }
        }
    }

    fn nested(&mut self, kept: &mut Kept) -> Result<(), Fault> {
        let mut depth = 0_u64;
        loop {
            if self.peek()? == Some(b'"') {
                self.text(kept)?;
                continue;
            }
            let byte = self.next()?;
            kept.push(byte);
            match byte {
                b'{' | b'[' => depth += 1,
                b'}' | b']' => depth -= 1,
                _ => {}
            }
            if depth == 0 {
                return Ok(());
            }
        }
    }

    fn plain(&mut self, kept: &mut Kept) -> Result<(), Fault> {
        loop {
            match self.peek()? {
                None | Some(b',' | b']' | b'}' | b' ' | b'\t' | b'\r' | b'\n') => break,
                Some(_) => kept.push(self.next()?),
            }
        }
        // A sign where a value begins: at least one byte is taken.
        if kept.size == 0 {
            kept.push(self.next()?);
        }
        Ok(())
    }
}
