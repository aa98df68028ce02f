//! The thread that reads the file: parses lines, sends requests, and adds the lines to the window.

use std::ffi::OsStr;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use polynym_exports::{Entry, ExportFormat, Notes, ReadOptions, guess};
use polynym_lines::{Lines, Parsed, Unreadable, UserLine};
use polynym_proto::v1::import_users_request::Options as ImportOptions;
use polynym_proto::v1::{ImportUsersRequest, OnExisting};
use polynym_table::locale::NEUTRAL;
use polynym_table::{CellError, Given, MappedUser, Mapping, Options, Row, Table, Tally};
use prost::Message;
use tokio::sync::mpsc::Sender;

use crate::rejects::{Rejected, Rejects, TableLayout};
use crate::target::Target;
use crate::window::{Original, OriginalRow, Window};

/// The maximum bytes of a request.
const MAX_MESSAGE_BYTES: usize = 1 << 20;
const BUFFER_BYTES: usize = 256 << 10;

/// The format of a file.
pub enum Format {
    /// Lines of JSON, and where they go.
    Lines(Target),
    /// A table.
    Table {
        /// How to read it.
        given: Box<Given>,
        /// The name of the field or column by which a row finds its user.
        key: Option<String>,
    },
    /// The export of another user directory.
    Export {
        /// Its format.
        format: ExportFormat,
        /// How to read it.
        options: ReadOptions,
        /// The tenant and the ids of its users.
        target: Target,
    },
}

/// The findings of reading a file.
#[derive(Debug, Default)]
pub struct Findings {
    /// The cells of a table, by what they became.
    pub tally: Tally,
    /// The data that were left out of the export of another user directory.
    pub notes: Notes,
}

/// Reads a file.
pub struct FileReader {
    pub(crate) window: Arc<Window>,
    pub(crate) rejects: Arc<Rejects>,
    pub(crate) requests: Sender<ImportUsersRequest>,
    /// Lines that were rejected before they were sent.
    pub(crate) rejected: Arc<AtomicI64>,
    /// The options of the import.
    pub(crate) options: ImportOptions,
}

/// The error that ends reading.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The file cannot be read: in words.
    #[error("{0}")]
    File(String),
    /// The mapping is wrong: in words.
    #[error("{0}")]
    Mapping(String),
    /// The rejects cannot be written.
    #[error("the rejects cannot be written: {0}")]
    Rejects(io::Error),
}

impl FileReader {
    /// Reads a file, and sends its lines. Returns the number of lines that are not blank, and what
    /// there is to tell.
    ///
    /// # Errors
    /// The file, its mapping or the rejects are the cause.
    pub fn run(&self, reader: impl Read, format: Format) -> Result<(i64, Findings), ReadError> {
        let notes = Notes::default();
        let outcome = match format {
            Format::Table { given, key } => {
                let read = self.table(reader, *given, key.as_deref());
                read.map(|(count, tally)| (count, Findings { tally, notes }))
            }
            Format::Lines(target) => {
                self.lines(reader, &target).map(|count| (count, Findings::default()))
            }
            Format::Export { format, options, target } => {
                let read = self.export(reader, format, &options, &target);
                read.map(|(count, notes)| (count, Findings { notes, ..Findings::default() }))
            }
        };
        if outcome.is_err() {
            self.window.close();
        }
        outcome
    }

    fn lines(&self, reader: impl Read, target: &Target) -> Result<i64, ReadError> {
        if !self.begin(self.options.clone()) {
            return Ok(0);
        }
        let mut reader = BufReader::with_capacity(BUFFER_BYTES, reader);
        if let Some(format) = guess(reader.fill_buf().map_err(|e| file_error(&e))?) {
            let (words, name) = (format.words(), format.name());
            return Err(ReadError::File(format!("the file has {words}: add --format {name}")));
        }
        let mut lines = Lines::new(reader);
        let mut count = 0;
        while let Some((number, line, bytes)) = lines.next_line().map_err(|e| file_error(&e))? {
            let continues = match line.parse() {
                Ok((_, Parsed::Skipped)) => continue,
                Ok((text, Parsed::Request(request))) => {
                    let Some(request) = target.apply(*request) else { continue };
                    self.send(number, Some(Original::Text(text)), request, bytes)?
                }
                Err(Unreadable { text, message }) => {
                    let (line, original) = (number, text.map(Original::Text));
                    self.reject(Rejected { line, message: &message, original, ..UNREADABLE_LINE })?
                }
            };
            count += 1;
            if !continues {
                break;
            }
        }
        Ok(count)
    }

    /// Reads the export of another user directory. Returns the number of users, and what was left
    /// out.
    fn export(
        &self,
        reader: impl Read,
        format: ExportFormat,
        options: &ReadOptions,
        target: &Target,
    ) -> Result<(i64, Notes), ReadError> {
        if !self.begin(self.options.clone()) {
            return Ok((0, Notes::default()));
        }
        let opened = polynym_exports::open(format, reader, options);
        let mut users = opened.map_err(ReadError::File)?;
        let mut count = 0;
        while let Some(entry) = users.next_user().map_err(ReadError::File)? {
            count += 1;
            if !self.user(entry, target)? {
                break;
            }
        }
        Ok((count, users.notes().clone()))
    }

    /// Sends a user, whose text is that of its line in JSON. Returns whether the import continues.
    fn user(&self, entry: Entry, target: &Target) -> Result<bool, ReadError> {
        let Entry { line, bytes, user } = entry;
        match user {
            Ok(user) => {
                let text = serde_json::to_string(&UserLine { user: &user, internals: None });
                let original = text.ok().map(|text| Original::Text(text.into()));
                let request = ImportUsersRequest { user: Some(user), ..Default::default() };
                match target.apply(request) {
                    Some(request) => self.send(line, original, request, bytes),
                    None => Ok(true),
                }
            }
            Err(message) => self.reject(Rejected { line, message: &message, ..UNREADABLE_LINE }),
        }
    }

    /// Sends the options. Returns whether the import continues.
    fn begin(&self, options: ImportOptions) -> bool {
        let first = ImportUsersRequest { options: Some(options), ..Default::default() };
        self.requests.blocking_send(first).is_ok()
    }

    fn table(
        &self,
        reader: impl Read,
        given: Given,
        key: Option<&str>,
    ) -> Result<(i64, Tally), ReadError> {
        let table = Table::open(reader, given.encoding, given.separator);
        let mut table = table.map_err(ReadError::File)?;
        let replaces = self.options.on_existing() == OnExisting::Replace;
        let locale = given.locale.unwrap_or(NEUTRAL);
        let options = Options { locale, replaces, ..given.options };
        let mut mapping =
            Mapping::new(&given.maps, &table.columns, options).map_err(ReadError::Mapping)?;
        let mut import = ImportOptions { fields: mapping.fields(), ..self.options.clone() };
        if let Some(name) = key {
            import.key = mapping.set_key(name, &table.columns).map_err(ReadError::Mapping)?;
        }
        if !self.begin(import) {
            return Ok((0, Tally::default()));
        }
        let (header, columns, separator) = (table.header, table.columns, table.separator);
        let layout = self.rejects.set_layout(TableLayout { header, columns, separator });
        let (mut count, mut tally) = (0, Tally::default());
        while let Some(row) = table.rows.next_row().map_err(ReadError::File)? {
            if row.is_blank() || layout.is_imported(&row.cells) {
                continue;
            }
            count += 1;
            let (mapped, row) = read_row(row, &mapping);
            mapped.iter().for_each(|mapped| tally.add(mapped, &layout.columns));
            if !self.row(row, mapped)? {
                break;
            }
        }
        Ok((count, tally))
    }

    /// Sends a row. Returns whether the import continues.
    fn row(&self, row: Row, mapped: Result<MappedUser, Fault>) -> Result<bool, ReadError> {
        let Row { line, cells, bytes, .. } = row;
        let original = |identity_columns| {
            Some(Original::Row(Arc::new(OriginalRow { cells, identity_columns })))
        };
        match mapped {
            Ok(mapped) => {
                let original = original(mapped.identity_columns);
                let request = ImportUsersRequest { user: Some(mapped.user), ..Default::default() };
                self.send(line, original, request, bytes)
            }
            Err((column, message)) => {
                let (message, original) = (&*message, original(Vec::new()));
                self.reject(Rejected { line, message, column, original, ..UNREADABLE_LINE })
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
            return self.reject(Rejected { line, message: &message, original, ..UNREADABLE_LINE });
        }
        Ok(self.window.push(line, original, bytes) && self.requests.blocking_send(request).is_ok())
    }

    /// Rejects a line. Returns whether the import continues.
    fn reject(&self, rejected: Rejected<'_>) -> Result<bool, ReadError> {
        self.rejected.fetch_add(1, Ordering::Relaxed);
        self.rejects.add(rejected).map_err(ReadError::Rejects)?;
        Ok(!self.window.is_closed())
    }
}

/// Why a row has no user: the column of the fault, and its words.
type Fault = (Option<usize>, String);

/// The user of a row, and the row.
fn read_row(mut row: Row, mapping: &Mapping) -> (Result<MappedUser, Fault>, Row) {
    let mapped = match row.error.take() {
        Some(message) => Err((None, message)),
        None => mapping
            .user(&row.cells)
            .map_err(|CellError { column, message }| (Some(column), message)),
    };
    (mapped, row)
}

/// A line that could not be read.
const UNREADABLE_LINE: Rejected<'static> = Rejected {
    line: 0,
    reason: "LINE_INVALID",
    message: "",
    identity_index: None,
    column: None,
    skipped: false,
    owner: "",
    original: None,
};

fn file_error(error: &io::Error) -> ReadError {
    ReadError::File(error.to_string())
}

/// Whether a file has the name of a table.
pub fn is_table_name(path: &Path) -> bool {
    let has = |extension: &OsStr| {
        ["csv", "tsv", "txt"].iter().any(|known| extension.eq_ignore_ascii_case(known))
    };
    path.extension().is_some_and(has)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exchange::{Exchange, channel};

    #[test]
    fn lines_after_the_end_of_an_import_are_not_read() {
        let rejects = Arc::new(Rejects::new(|| Ok(Box::new(io::sink()))));
        let exchange = Exchange::new(rejects);
        let (sender, _receiver) = channel();
        let reader = exchange.reader(sender, ImportOptions::default());
        exchange.window.close();
        let file = [vec![b'x'; 5 << 20], b"\nnonsense\n".to_vec()].concat();
        let (lines, _) = reader.run(&*file, Format::Lines(Target::default())).unwrap();
        assert_eq!((lines, exchange.rejected_here()), (1, 1));
    }
}
