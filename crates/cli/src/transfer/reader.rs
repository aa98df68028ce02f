//! The thread that reads the file: parses lines, sends requests, and adds the lines to the window.

use std::ffi::OsStr;
use std::io::{BufReader, Read};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use prost::Message;
use tokio::sync::mpsc::Sender;

use super::arguments::{Format, Import};
use super::lines::{Line, Lines, MAX_LINE_BYTES};
use super::rejects::{Form, Rejected, Rejects};
use super::target::Target;
use super::window::{Original, OriginalRow, Window};
use crate::failure::Failure;
use crate::files;
use polynym_lines::Parsed;
use polynym_proto::v1::{ImportUsersRequest, import_users_request};
use polynym_table::locale::NEUTRAL;
use polynym_table::{CellError, Given, Mapping, Options, Row, Table, Tally};

/// The maximum bytes of a request.
const MAX_MESSAGE_BYTES: usize = 1 << 20;
const BUFFER_BYTES: usize = 256 << 10;

/// Reads a file.
pub struct FileReader {
    pub window: Arc<Window>,
    pub rejects: Arc<Rejects>,
    pub requests: Sender<ImportUsersRequest>,
    /// Lines that were rejected before they were sent.
    pub rejected: Arc<AtomicI64>,
    pub target: Target,
    /// The options of the import.
    pub options: import_users_request::Options,
}

impl FileReader {
    /// Reads the file. Returns the number of lines that are not blank, and how a table was read.
    pub fn run(&self, command: &Import, given: Given) -> Result<(i64, Tally), Failure> {
        let path = &command.file;
        let reader = files::open(path)?;
        let read = match is_table(command) {
            true => self.table(reader, command, given),
            false => self.jsonl(reader).map(|count| (count, Tally::default())),
        };
        read.map_err(|error| match error {
            ReadError::File(error) => files::failure(path, error),
            ReadError::Other(failure) => failure,
        })
    }

    fn jsonl(&self, reader: impl Read) -> Result<i64, ReadError> {
        if !self.begin(self.options.clone()) {
            return Ok(0);
        }
        let mut lines = Lines::new(BufReader::with_capacity(BUFFER_BYTES, reader));
        let mut count = 0;
        while let Some((number, line, bytes)) = lines.next().map_err(|e| file_error(&e))? {
            let parsed = match line {
                Line::Whole(line) => {
                    let text = String::from_utf8(line).map_err(|_| {
                        (None, "the line is not UTF-8: correct its source".to_owned())
                    });
                    text.and_then(|line| {
                        let text = line.trim_start_matches('\u{feff}');
                        let original = Original::Text(text.into());
                        match polynym_lines::parse(text) {
                            Ok(parsed) => Ok((original, parsed)),
                            Err(error) => Err((Some(original), error)),
                        }
                    })
                }
                Line::TooLong(bytes) => {
                    let message =
                        format!("a line has at most {MAX_LINE_BYTES} bytes, this has {bytes}");
                    self.reject(Rejected { line: number, message: &message, ..LINE })?;
                    count += 1;
                    continue;
                }
            };
            let continues = match parsed {
                Ok((_, Parsed::Skipped)) => continue,
                Ok((original, Parsed::Request(request))) => match self.target.apply(*request) {
                    Some(request) => self.send(number, Some(original), request, bytes)?,
                    None => continue,
                },
                Err((original, message)) => {
                    self.reject(Rejected { line: number, message: &message, original, ..LINE })?
                }
            };
            count += 1;
            if !continues {
                break;
            }
        }
        Ok(count)
    }

    /// Sends the options. Returns whether the import continues.
    fn begin(&self, options: import_users_request::Options) -> bool {
        let first = ImportUsersRequest { options: Some(options), ..Default::default() };
        self.requests.blocking_send(first).is_ok()
    }

    fn table(
        &self,
        reader: Box<dyn Read>,
        command: &Import,
        given: Given,
    ) -> Result<(i64, Tally), ReadError> {
        let table = Table::open(reader, given.encoding, given.separator);
        let mut table = table.map_err(ReadError::File)?;
        let options = Options { locale: given.locale.unwrap_or(NEUTRAL), ..given.options };
        let mapping = Mapping::new(&given.maps, &table.columns, options)
            .map_err(|error| ReadError::Other(Failure::Usage(error)))?;
        let mut import =
            import_users_request::Options { fields: mapping.fields(), ..self.options.clone() };
        if let Some(name) = &command.matches {
            let key = mapping.key(name, &table.columns);
            import.key = key.map_err(|error| ReadError::Other(Failure::Usage(error)))?;
        }
        if !self.begin(import) {
            return Ok((0, Tally::default()));
        }
        let (header, columns, separator) = (table.header, table.columns, table.separator);
        let form = self.rejects.set_form(Form { header, columns, separator });
        let (mut count, mut tally) = (0, Tally::default());
        while let Some(row) = table.rows.next_row().map_err(ReadError::File)? {
            if row.is_blank() || form.is_imported(&row.cells) {
                continue;
            }
            count += 1;
            if !self.row(row, &mapping, &mut tally)? {
                break;
            }
        }
        Ok((count, tally))
    }

    /// Sends a row. Returns whether the import continues.
    fn row(&self, row: Row, mapping: &Mapping, tally: &mut Tally) -> Result<bool, ReadError> {
        let Row { line, cells, error, bytes } = row;
        let mapped = match error {
            Some(message) => Err((None, message)),
            None => mapping
                .user(&cells)
                .map_err(|CellError { column, message }| (Some(column), message)),
        };
        let original = |identity_columns| {
            Some(Original::Row(Arc::new(OriginalRow { cells, identity_columns })))
        };
        match mapped {
            Ok(mapped) => {
                tally.add(&mapped);
                let original = original(mapped.identity_columns);
                let request = ImportUsersRequest { user: Some(mapped.user), ..Default::default() };
                self.send(line, original, request, bytes)
            }
            Err((column, message)) => {
                let original = original(Vec::new());
                self.reject(Rejected { line, message: &message, column, original, ..LINE })
            }
        }
    }

    /// Sends a request. Returns whether the import continues.
    fn send(
        &self,
        line: i64,
        original: Option<Original>,
        request: ImportUsersRequest,
        bytes: usize,
    ) -> Result<bool, ReadError> {
        let request = ImportUsersRequest { line, ..request };
        let size = request.encoded_len();
        if size > MAX_MESSAGE_BYTES {
            let message =
                format!("a user has at most {MAX_MESSAGE_BYTES} bytes, this one has {size}");
            return self.reject(Rejected { line, message: &message, original, ..LINE });
        }
        Ok(self.window.push(line, original, bytes) && self.requests.blocking_send(request).is_ok())
    }

    /// Rejects a line. Returns whether the import continues.
    fn reject(&self, rejected: Rejected<'_>) -> Result<bool, ReadError> {
        self.rejected.fetch_add(1, Ordering::Relaxed);
        self.rejects.add(rejected).map_err(ReadError::Other)?;
        Ok(!self.window.is_closed())
    }
}

/// A line that could not be read.
const LINE: Rejected<'static> = Rejected {
    line: 0,
    reason: "LINE_INVALID",
    message: "",
    identity_index: None,
    column: None,
    skipped: false,
    owner: "",
    original: None,
};

/// The error that ends reading.
enum ReadError {
    /// The file cannot be read.
    File(String),
    Other(Failure),
}

fn file_error(error: &std::io::Error) -> ReadError {
    ReadError::File(error.to_string())
}

/// Whether the file is a table.
pub fn is_table(command: &Import) -> bool {
    let is_named = || is_table_name(&command.file);
    command.format.map_or_else(is_named, |format| format == Format::Csv)
}

/// Whether a file has the name of a table.
pub fn is_table_name(path: &Path) -> bool {
    let has = |extension: &OsStr| {
        ["csv", "tsv", "txt"].iter().any(|known| extension.eq_ignore_ascii_case(known))
    };
    path.extension().is_some_and(has)
}
