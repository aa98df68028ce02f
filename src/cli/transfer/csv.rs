//! The rows of a CSV file. The memory that one takes is bounded: an overlong row is passed over,
//! and a row that goes on for 16 MiB ends the import.

use std::cell::{Cell, RefCell};
use std::io::{self, Chain, Read};
use std::rc::Rc;

use ::csv::{ByteRecord, Reader, ReaderBuilder, StringRecord};

use super::lines::LINE_BYTES;
use super::quotes::Quotes;

/// The bytes after which a row that has not ended ends the import.
const ROW_BYTES: usize = 16 << 20;

const MISPLACED: &str = "a quote stands inside a cell, or text after a closing quote: write two \
    quotes for one, and close each";

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
    progress: Rc<Progress>,
    columns: usize,
}

/// How far the file was read, for the reader and its rows.
#[derive(Default)]
struct Progress {
    /// The bytes since the last row.
    since: Cell<usize>,
    ended: Cell<bool>,
    quotes: RefCell<Quotes>,
}

/// A reader that fails where a row is far too long. The file gets a line break at its end, so that
/// only a row with an open quote ends with the file.
struct Bounded<R> {
    reader: Chain<R, &'static [u8]>,
    progress: Rc<Progress>,
}

impl<R: Read> Read for Bounded<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let since = self.progress.since.get();
        if since > ROW_BYTES {
            let message = "a row has more than 16 MiB: a quote may not be closed";
            return Err(io::Error::other(message));
        }
        let read = self.reader.read(buffer)?;
        self.progress.since.set(since + read);
        self.progress.ended.set(read == 0);
        self.progress.quotes.borrow_mut().read(&buffer[..read]);
        Ok(read)
    }
}

impl<R: Read> Rows<R> {
    /// Reads the header.
    ///
    /// # Errors
    /// The fault, in words.
    pub fn new(reader: R) -> Result<(Self, StringRecord), String> {
        let progress = Rc::new(Progress::default());
        let bounded = Bounded { reader: reader.chain(b"\n"), progress: progress.clone() };
        let mut reader = ReaderBuilder::new().flexible(true).from_reader(bounded);
        let header = reader.headers().map_err(|error| error.to_string())?.clone();
        if header.is_empty() {
            return Err("the file is empty: there is nothing to import".to_owned());
        }
        if progress.ended.get() {
            return Err("the file ends before a quote in its first row is closed".to_owned());
        }
        if progress.quotes.borrow_mut().are_wrong_before(reader.position().byte()) {
            return Err(format!("the first row: {MISPLACED}"));
        }
        let rows = Self { reader, progress, columns: header.len() };
        Ok((rows, header))
    }

    /// The next row; none at the end.
    ///
    /// # Errors
    /// The fault of the file, in words.
    pub fn next(&mut self) -> Result<Option<Row>, String> {
        let start = self.reader.position().byte();
        let mut record = ByteRecord::new();
        self.progress.since.set(0);
        let is_there = self.reader.read_byte_record(&mut record).map_err(|e| e.to_string())?;
        if !is_there {
            return Ok(None);
        }
        let line = record.position().map_or(0, ::csv::Position::line) as i64;
        let bytes = (self.reader.position().byte() - start) as usize;
        Ok(Some(Row { line, cells: self.cells(record, bytes), bytes }))
    }

    fn cells(&self, record: ByteRecord, bytes: usize) -> Result<StringRecord, String> {
        if self.progress.ended.get() {
            return Err("the file ends before a quote in this row is closed".to_owned());
        }
        let end = self.reader.position().byte();
        if self.progress.quotes.borrow_mut().are_wrong_before(end) {
            return Err(MISPLACED.to_owned());
        }
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
