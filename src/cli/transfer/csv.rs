//! The rows of a CSV file. The memory that one takes is bounded: an overlong row is passed over,
//! and a quote that is never closed ends the import.

use std::cell::Cell;
use std::io::{self, Read};
use std::rc::Rc;

use ::csv::{ByteRecord, Reader, ReaderBuilder, StringRecord};

use super::lines::LINE_BYTES;

/// The bytes after which a row that has not ended ends the import.
const ROW_BYTES: usize = 16 << 20;

/// A row: its line, and its cells or what is wrong.
pub struct Row {
    pub line: i64,
    pub cells: Result<StringRecord, String>,
    /// The bytes that it has in the file.
    pub bytes: usize,
}

/// The rows of a reader.
pub struct Rows<R> {
    reader: Reader<Bounded<R>>,
    /// The bytes that were read since the last row.
    since: Rc<Cell<usize>>,
    columns: usize,
}

/// A reader that fails where a row is far too long.
struct Bounded<R> {
    reader: R,
    since: Rc<Cell<usize>>,
}

impl<R: Read> Read for Bounded<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.since.get() > ROW_BYTES {
            let message = "a row has more than 16 MiB: a quote may not be closed";
            return Err(io::Error::other(message));
        }
        let read = self.reader.read(buffer)?;
        self.since.set(self.since.get() + read);
        Ok(read)
    }
}

impl<R: Read> Rows<R> {
    /// Reads the header.
    ///
    /// # Errors
    /// The fault, in words.
    pub fn new(reader: R) -> Result<(Self, StringRecord), String> {
        let since = Rc::new(Cell::new(0));
        let bounded = Bounded { reader, since: since.clone() };
        let mut reader = ReaderBuilder::new().flexible(true).from_reader(bounded);
        let header = reader.headers().map_err(|error| error.to_string())?.clone();
        let rows = Self { reader, since, columns: header.len() };
        Ok((rows, header))
    }

    /// The next row; none at the end.
    ///
    /// # Errors
    /// The fault of the file, in words.
    pub fn next(&mut self) -> Result<Option<Row>, String> {
        let start = self.reader.position().byte();
        let mut record = ByteRecord::new();
        self.since.set(0);
        let is_there = self.reader.read_byte_record(&mut record).map_err(|e| e.to_string())?;
        if !is_there {
            return Ok(None);
        }
        let line = record.position().map_or(0, ::csv::Position::line) as i64;
        let bytes = (self.reader.position().byte() - start) as usize;
        Ok(Some(Row { line, cells: self.cells(record, bytes), bytes }))
    }

    fn cells(&self, record: ByteRecord, bytes: usize) -> Result<StringRecord, String> {
        if bytes > LINE_BYTES {
            return Err(format!("a row has at most {LINE_BYTES} bytes, this one has {bytes}"));
        }
        if record.len() != self.columns {
            let (columns, cells) = (self.columns, record.len());
            return Err(format!("the header has {columns} columns, this row has {cells}"));
        }
        StringRecord::from_byte_record(record).map_err(|error| error.utf8_error().to_string())
    }
}
