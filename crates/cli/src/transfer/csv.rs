//! The rows of a CSV file. The memory for a row is bounded: longer rows are skipped, and a row of
//! 16 MiB ends the import.

use std::cell::{Cell, RefCell};
use std::io::{self, Chain, Read};
use std::rc::Rc;

use ::csv::{ByteRecord, Reader, ReaderBuilder, StringRecord};

use super::line_breaks::LineBreaks;
use super::lines::MAX_LINE_BYTES;
use super::quotes::Quotes;

/// The bytes of a row that end the import.
const MAX_ROW_BYTES: usize = 16 << 20;

const MISPLACED_QUOTE: &str = "a quote inside a cell, or text after a closing quote: write two \
    quotes for one, and close each quoted cell";

/// A row: its line, and its cells or the error.
pub struct Row {
    pub line: i64,
    pub cells: Result<StringRecord, String>,
    /// The bytes in the file.
    pub bytes: usize,
}

/// The rows of a reader.
pub struct Rows<R> {
    reader: Reader<Bounded<R>>,
    progress: Rc<Progress>,
    columns: usize,
}

/// The progress of reading, shared by the reader and its rows.
#[derive(Default)]
struct Progress {
    /// The bytes since the last row.
    row_bytes: Cell<usize>,
    ended: Cell<bool>,
    quotes: RefCell<Quotes>,
    line_breaks: RefCell<LineBreaks>,
}

/// A reader that fails on a row above [`MAX_ROW_BYTES`]. It appends a line break to the file, so
/// that only a row with an open quote reaches the end of the file.
struct Bounded<R> {
    reader: Chain<R, &'static [u8]>,
    progress: Rc<Progress>,
}

impl<R: Read> Read for Bounded<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let row_bytes = self.progress.row_bytes.get();
        if row_bytes > MAX_ROW_BYTES {
            let message = "a row exceeds 16 MiB: a closing quote may be missing";
            return Err(io::Error::other(message));
        }
        let read = self.reader.read(buffer)?;
        self.progress.row_bytes.set(row_bytes + read);
        self.progress.ended.set(read == 0);
        self.progress.quotes.borrow_mut().read(&buffer[..read]);
        self.progress.line_breaks.borrow_mut().read(&buffer[..read]);
        Ok(read)
    }
}

impl<R: Read> Rows<R> {
    /// Reads the header.
    ///
    /// # Errors
    /// The error in words.
    pub fn new(reader: R) -> Result<(Self, StringRecord), String> {
        let progress = Rc::new(Progress::default());
        let bounded = Bounded { reader: reader.chain(b"\n"), progress: progress.clone() };
        let mut reader = ReaderBuilder::new().flexible(true).from_reader(bounded);
        let header = reader.headers().map_err(|error| error.to_string())?.clone();
        if header.is_empty() {
            return Err("the file is empty".to_owned());
        }
        if progress.ended.get() {
            return Err("the file ends inside a quoted cell of its first row".to_owned());
        }
        if progress.quotes.borrow_mut().are_wrong_before(reader.position().byte()) {
            return Err(format!("the first row: {MISPLACED_QUOTE}"));
        }
        let rows = Self { reader, progress, columns: header.len() };
        Ok((rows, header))
    }

    /// The next row; none at the end.
    ///
    /// # Errors
    /// The error of the file in words.
    pub fn next(&mut self) -> Result<Option<Row>, String> {
        let start = self.reader.position().byte();
        let mut record = ByteRecord::new();
        self.progress.row_bytes.set(0);
        if !self.reader.read_byte_record(&mut record).map_err(|error| error.to_string())? {
            return Ok(None);
        }
        let line = self.progress.line_breaks.borrow_mut().line_at(start);
        let bytes = (self.reader.position().byte() - start) as usize;
        Ok(Some(Row { line, cells: self.cells(record, bytes), bytes }))
    }

    fn cells(&self, record: ByteRecord, bytes: usize) -> Result<StringRecord, String> {
        if self.progress.ended.get() {
            return Err("the file ends inside a quoted cell of this row".to_owned());
        }
        let end = self.reader.position().byte();
        if self.progress.quotes.borrow_mut().are_wrong_before(end) {
            return Err(MISPLACED_QUOTE.to_owned());
        }
        if bytes > MAX_LINE_BYTES {
            return Err(format!("a row has at most {MAX_LINE_BYTES} bytes, this one has {bytes}"));
        }
        if record.len() != self.columns {
            let (columns, cells) = (self.columns, record.len());
            return Err(format!("the header has {columns} columns, this row has {cells}"));
        }
        StringRecord::from_byte_record(record).map_err(|error| error.utf8_error().to_string())
    }
}
