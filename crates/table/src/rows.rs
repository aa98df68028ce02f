//! The rows of a file. The memory for a row is bounded: longer rows have an error, and one of 6
//! MiB or of 100,000 cells ends the table.

use std::cell::{Cell, RefCell};
use std::io::{self, Chain, Cursor, Read};
use std::rc::Rc;

use csv::{ByteRecord, Reader, ReaderBuilder, StringRecord};
use encoding_rs::Encoding;

use crate::columns::Columns;
use crate::line_breaks::LineBreaks;
use crate::quotes::Quotes;
use crate::{encoding, separator};

/// The limit of a row's bytes.
pub const MAX_ROW_BYTES: usize = 4 << 20;
/// The limit of a table's columns.
const MAX_COLUMNS: usize = 10_000;
/// The bytes of a row that end the table: a quote is missing.
const MAX_QUOTED_BYTES: usize = 6 << 20;
/// The cells of a row that end the table. Spreadsheets write blank cells after the columns.
const MAX_CELLS: usize = 10 * MAX_COLUMNS;
/// The bytes in which the separator is looked for.
const HEAD_BYTES: usize = 64 << 10;

const MISPLACED_QUOTE: &str = "a quote inside a cell, or text after a closing quote: write two \
    quotes for one, and close each quoted cell";

/// A row.
pub struct Row {
    /// The number of its first line in the file, from 1.
    pub line: i64,
    /// The cells, as many as there are columns if there is no error.
    pub cells: StringRecord,
    /// Why the row cannot be read, in words.
    pub error: Option<String>,
    /// The bytes of its text in UTF-8.
    pub bytes: usize,
}

/// A file with its form.
pub struct Table<R: Read> {
    /// The rows after the first.
    pub rows: Rows<Chain<Cursor<Vec<u8>>, Decoded<R>>>,
    /// The cells of the first row.
    pub header: StringRecord,
    /// The columns that it names.
    pub columns: Columns,
    /// The name of the encoding.
    pub encoding: &'static str,
    /// The sign between two cells.
    pub separator: u8,
}

type Decoded<R> = encoding_rs_io::DecodeReaderBytes<Chain<Cursor<Vec<u8>>, R>, Vec<u8>>;

impl<R: Read> Table<R> {
    /// Opens a file. Its first bytes decide on what is not given: a byte order mark on the
    /// encoding, which else is UTF-8, and a line such as `sep=;` or the columns of the first rows
    /// on the separator.
    ///
    /// # Errors
    /// The file cannot be read, is no table, or its first row is wrong: in words.
    pub fn open(
        reader: R,
        encoding: Option<&'static Encoding>,
        separator: Option<u8>,
    ) -> Result<Self, String> {
        let encoding::Text { mut reader, encoding } = encoding::open(reader, encoding)?;
        let mut head = Vec::new();
        let read = reader.by_ref().take(HEAD_BYTES as u64).read_to_end(&mut head);
        read.map_err(|error| error.to_string())?;
        let declared = separator::declared(&head);
        if let Some((_, bytes)) = declared {
            head.drain(..bytes);
        }
        let declared_separator = declared.map(|(separator, _)| separator);
        let separator = separator.or(declared_separator).unwrap_or_else(|| separator::found(&head));
        let first_line = if declared.is_some() { 2 } else { 1 };
        let rows = Rows::new(Cursor::new(head).chain(reader), separator, first_line)?;
        let (rows, header) = rows;
        if header.len() > MAX_COLUMNS {
            let count = header.len();
            return Err(format!("the first row has {count} cells: at most {MAX_COLUMNS} columns"));
        }
        let columns = Columns::new(&header);
        Ok(Self { rows, header, columns, encoding, separator })
    }
}

/// The rows of a reader.
pub struct Rows<R> {
    reader: Reader<Bounded<R>>,
    progress: Rc<Progress>,
    columns: usize,
}

/// The progress of reading, shared by the reader and its rows.
struct Progress {
    /// The bytes since the last row.
    row_bytes: Cell<usize>,
    ended: Cell<bool>,
    quotes: RefCell<Quotes>,
    line_breaks: RefCell<LineBreaks>,
}

/// A reader that fails on a row above [`MAX_QUOTED_BYTES`]. It appends a line break to the file, so
/// that only a row with an open quote reaches the end of the file.
struct Bounded<R> {
    reader: Chain<R, &'static [u8]>,
    progress: Rc<Progress>,
}

impl<R: Read> Read for Bounded<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let row_bytes = self.progress.row_bytes.get();
        if row_bytes > MAX_QUOTED_BYTES {
            let message = "a row exceeds 6 MiB: a closing quote may be missing";
            return Err(io::Error::other(message));
        }
        let read = self.reader.read(buffer)?;
        let is_break = |byte: &u8| matches!(byte, b'\r' | b'\n');
        let is_blank = self.progress.quotes.borrow().are_between_rows();
        if !is_blank || !buffer[..read].iter().all(is_break) {
            self.progress.row_bytes.set(row_bytes + read);
        }
        self.progress.ended.set(read == 0);
        if self.progress.quotes.borrow_mut().read(&buffer[..read]) > MAX_CELLS {
            return Err(io::Error::other("a row has more than 100,000 cells"));
        }
        self.progress.line_breaks.borrow_mut().read(&buffer[..read]);
        Ok(read)
    }
}

impl Row {
    /// Whether the row has no text.
    pub fn is_blank(&self) -> bool {
        self.error.is_none() && self.cells.iter().all(|cell| cell.trim().is_empty())
    }
}

impl<R: Read> Rows<R> {
    /// Reads the header, which is in this line.
    fn new(reader: R, separator: u8, first_line: i64) -> Result<(Self, StringRecord), String> {
        let progress = Rc::new(Progress {
            row_bytes: Cell::default(),
            ended: Cell::default(),
            quotes: RefCell::new(Quotes::new(separator)),
            line_breaks: RefCell::new(LineBreaks::new(first_line)),
        });
        let bounded = Bounded { reader: reader.chain(b"\n"), progress: progress.clone() };
        let mut reader =
            ReaderBuilder::new().delimiter(separator).flexible(true).from_reader(bounded);
        let header = reader.byte_headers().map_err(|error| error.to_string())?.clone();
        let header = StringRecord::from_byte_record(header)
            .map_err(|error| not_utf8("the first row", error.utf8_error().valid_up_to()))?;
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
    pub fn next_row(&mut self) -> Result<Option<Row>, String> {
        let start = self.reader.position().byte();
        let mut record = ByteRecord::new();
        self.progress.row_bytes.set(0);
        self.progress.line_breaks.borrow_mut().begin_row(start);
        if !self.reader.read_byte_record(&mut record).map_err(|error| error.to_string())? {
            return Ok(None);
        }
        let (line, start) = self.progress.line_breaks.borrow().row();
        let bytes = self.reader.position().byte().saturating_sub(start) as usize;
        self.drop_surplus(&mut record);
        let error = self.check(&record, bytes).err();
        let cells = match bytes {
            0..=MAX_ROW_BYTES => StringRecord::from_byte_record_lossy(record),
            _ => StringRecord::new(),
        };
        Ok(Some(Row { line, cells, error, bytes }))
    }

    /// Removes the blank cells after the last column: spreadsheets write them if a row once had
    /// more.
    fn drop_surplus(&self, record: &mut ByteRecord) {
        let is_blank = |cell: &[u8]| cell.trim_ascii().is_empty();
        if record.iter().skip(self.columns).all(is_blank) {
            record.truncate(self.columns);
        }
    }

    fn check(&self, record: &ByteRecord, bytes: usize) -> Result<(), String> {
        if self.progress.ended.get() {
            return Err("the file ends inside a quoted cell of this row".to_owned());
        }
        let end = self.reader.position().byte();
        if self.progress.quotes.borrow_mut().are_wrong_before(end) {
            return Err(MISPLACED_QUOTE.to_owned());
        }
        if bytes > MAX_ROW_BYTES {
            return Err(format!("a row has at most {MAX_ROW_BYTES} bytes, this one has {bytes}"));
        }
        if record.len() != self.columns {
            let (columns, cells) = (self.columns, record.len());
            return Err(format!("the header has {columns} columns, this row has {cells}"));
        }
        let position = |cell: &[u8]| std::str::from_utf8(cell).err().map(|e| e.valid_up_to());
        let wrong = record.iter().enumerate().find_map(|(n, cell)| Some((n, position(cell)?)));
        match wrong {
            Some((column, at)) => Err(not_utf8(&format!("column {}", column + 1), at)),
            None => Ok(()),
        }
    }
}

/// The error of a cell in another encoding.
fn not_utf8(place: &str, position: usize) -> String {
    let advice = "the file may be of an older program: add --encoding windows-1252";
    format!("{place}: byte {} is no UTF-8; {advice}", position + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The line of a row, and its cells or its error.
    type ReadRow = (i64, Result<Vec<String>, String>);

    fn read(bytes: &[u8]) -> (Vec<String>, Vec<ReadRow>) {
        let mut table = Table::open(bytes, None, None).unwrap();
        let mut rows = Vec::new();
        while let Some(row) = table.rows.next_row().unwrap() {
            let cells = row.cells.iter().map(str::to_owned).collect();
            rows.push((row.line, row.error.map_or(Ok(cells), Err)));
        }
        (table.columns.names().to_vec(), rows)
    }

    #[test]
    fn files_of_spreadsheets_are_read() {
        let text = "sep=;\r\nName;Ort\r\n\"Müller; Jo\";\"a\nb\"\r\nx;y\r\n";
        let utf16: Vec<u8> =
            format!("\u{feff}{text}").encode_utf16().flat_map(u16::to_le_bytes).collect();
        for bytes in [text.as_bytes(), &utf16] {
            let (columns, rows) = read(bytes);
            assert_eq!(columns, ["Name", "Ort"]);
            assert_eq!(rows[0], (3, Ok(vec!["Müller; Jo".to_owned(), "a\nb".to_owned()])));
            assert_eq!(rows[1], (5, Ok(vec!["x".to_owned(), "y".to_owned()])));
        }
    }

    /// A reader that gives a few bytes at a time.
    struct Pieces<'b>(&'b [u8], usize);

    impl Read for Pieces<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let length = self.1.min(buffer.len());
            self.0.read(&mut buffer[..length])
        }
    }

    #[test]
    fn rows_have_the_lines_of_their_first_cells() {
        let text = b"\na\nb\r\n\r\n\"c\n\r\n\r\nc\"\rd\n\ne\r\r\n\nf\n";
        for size in 1..text.len() {
            let (mut rows, header) = Rows::new(Pieces(text, size), b',', 1).unwrap();
            assert_eq!(&header[0], "a");
            let lines = std::iter::from_fn(|| rows.next_row().unwrap().map(|row| row.line));
            assert_eq!(lines.collect::<Vec<_>>(), [3, 5, 9, 11, 14], "in pieces of {size}");
        }
    }

    #[test]
    fn blank_lines_are_no_part_of_a_row() {
        let blank = "\n".repeat(MAX_QUOTED_BYTES + (1 << 20));
        let (columns, rows) = read(format!("a{blank}1\n").as_bytes());
        assert_eq!(columns, ["a"]);
        assert_eq!(rows, [(blank.len() as i64 + 1, Ok(vec!["1".to_owned()]))]);
        let text = format!("a\n\"{blank}\"\n");
        let mut table = Table::open(text.as_bytes(), None, None).unwrap();
        let error = table.rows.next_row().err().unwrap();
        assert!(error.contains("a row exceeds 6 MiB"), "{error}");
    }

    #[test]
    fn cells_of_a_row_are_bounded() {
        let table = |row: &str| {
            let text = format!("a,b\n1,2{row}\n3,4\n");
            let mut table = Table::open(text.as_bytes(), None, None)?;
            while table.rows.next_row()?.is_some() {}
            Ok::<_, String>(())
        };
        assert_eq!(table(&",".repeat(MAX_CELLS - 2)), Ok(()));
        assert_eq!(table(&format!(",\"{}\"", ",".repeat(2 * MAX_CELLS))), Ok(()));
        let error = table(&",".repeat(2 * MAX_CELLS)).unwrap_err();
        assert!(error.contains("more than 100,000 cells"), "{error}");
    }

    #[test]
    fn columns_are_bounded() {
        let header = vec!["a"; MAX_COLUMNS + 1].join(",");
        let error = Table::open(header.as_bytes(), None, None).err().unwrap();
        assert_eq!(error, "the first row has 10001 cells: at most 10000 columns");
        assert!(Table::open(&header.as_bytes()[2..], None, None).is_ok());
    }

    #[test]
    fn wrong_rows_have_errors() {
        let (_, rows) = read(b"a,b\nM\xfcller,1\n1\n1,2\n1,2, ,\n1,2,,x\n");
        let error = rows[0].1.as_ref().unwrap_err();
        assert!(error.contains("column 1: byte 2") && error.contains("windows-1252"), "{error}");
        assert!(rows[1].1.as_ref().unwrap_err().contains("2 columns"));
        assert_eq!(rows[2].0, 4);
        assert_eq!(rows[3].1, Ok(vec!["1".to_owned(), "2".to_owned()]));
        assert!(rows[4].1.as_ref().unwrap_err().contains("this row has 4"));
    }
}
