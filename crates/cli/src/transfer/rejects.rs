//! The file of rejected lines, in the form of the input: lines of JSON, or the rows of a table. The
//! first rejected line creates it, and replaces an earlier file.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, OnceLock, PoisonError};

use csv::{StringRecord, Terminator, WriterBuilder};
use polynym_table::Columns;
use serde_json::{Map, Value};

use super::window::{Original, line_value};
use crate::failure::Failure;
use crate::files::failure;
use crate::output::escaped;
use polynym_lines::ORIGINAL;

/// The columns of a table of rejects, before those of the rejected rows.
const COLUMNS: [&str; 6] = [
    "reject_line",
    "reject_state",
    "reject_reason",
    "reject_column",
    "reject_owner",
    "reject_advice",
];
/// The state of a row that was not imported, and of one that was, without an identity.
const REJECTED: &str = "rejected";
const PARTLY: &str = "imported without it";
const BYTE_ORDER_MARK: &str = "\u{feff}";

/// A rejected line, or a skipped identity of an imported one.
#[derive(Default)]
pub struct Rejected<'a> {
    pub line: i64,
    pub reason: &'a str,
    pub message: &'a str,
    pub identity_index: Option<i32>,
    /// The column of the rejected cell, in a table.
    pub column: Option<usize>,
    pub skipped: bool,
    /// The id of the user who has the identity, or empty.
    pub owner: &'a str,
    pub original: Option<Original>,
}

/// The form of a table, which its rejects have too.
pub struct Form {
    pub header: StringRecord,
    pub columns: Columns,
    pub separator: u8,
}

/// The file of rejects.
pub struct Rejects {
    path: PathBuf,
    /// The form of rejected rows; none for lines of JSON.
    form: OnceLock<Form>,
    file: Mutex<Option<BufWriter<File>>>,
    reasons: Mutex<BTreeMap<String, u64>>,
}

impl Form {
    /// The columns that come from a table of rejects.
    fn own_columns(header: &StringRecord) -> usize {
        if header.iter().take(COLUMNS.len()).eq(COLUMNS) { COLUMNS.len() } else { 0 }
    }

    /// Whether a row of a table of rejects has an imported user.
    pub fn is_imported(&self, cells: &StringRecord) -> bool {
        Self::own_columns(&self.header) > 0 && cells.get(1) == Some(PARTLY)
    }

    /// The text of a row.
    fn row<'c>(&self, own: [&'c str; 6], cells: &'c StringRecord) -> Result<Vec<u8>, Failure> {
        let skipped = Self::own_columns(&self.header);
        let mut writer = WriterBuilder::new()
            .delimiter(self.separator)
            .terminator(Terminator::CRLF)
            .flexible(true)
            .from_writer(Vec::new());
        let written = writer.write_record(own.into_iter().chain(cells.iter().skip(skipped)));
        written.map_err(|error| Failure::Other(error.to_string()))?;
        writer.into_inner().map_err(|error| Failure::Other(error.to_string()))
    }
}

impl Rejects {
    /// The file at this path, for the rejects of `input`.
    pub fn new(path: PathBuf, input: &Path) -> Result<Self, Failure> {
        let is_input = match (path.canonicalize(), input.canonicalize()) {
            (Ok(path), Ok(input)) => path == input && input.is_file(),
            _ => false,
        };
        if is_input {
            let message = "--rejects: the file to import: name another one";
            return Err(Failure::Usage(message.to_owned()));
        }
        let (form, file, reasons) = Default::default();
        Ok(Self { path, form, file, reasons })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The number of rejects by reason.
    pub fn reasons(&self) -> BTreeMap<String, u64> {
        self.reasons.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Sets the form of the rejected rows.
    pub fn set_form(&self, form: Form) -> &Form {
        self.form.get_or_init(|| form)
    }

    /// Adds a line.
    pub fn add(&self, rejected: Rejected<'_>) -> Result<(), Failure> {
        let mut reasons = self.reasons.lock().unwrap_or_else(PoisonError::into_inner);
        *reasons.entry(rejected.reason.to_owned()).or_default() += 1;
        drop(reasons);
        let (head, text) = match self.form.get() {
            None => (Vec::new(), json(rejected).into_bytes()),
            Some(form) => {
                let header = form.row(COLUMNS, &form.header)?;
                ([BYTE_ORDER_MARK.as_bytes(), &header].concat(), row(form, &rejected)?)
            }
        };
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        let opened = match &mut *file {
            Some(file) => file,
            None => {
                remove(&self.path)?;
                let created =
                    File::create(&self.path).map_err(|error| failure(&self.path, error))?;
                let opened = file.insert(BufWriter::new(created));
                opened.write_all(&head).map_err(|error| failure(&self.path, error))?;
                opened
            }
        };
        opened.write_all(&text).map_err(|error| failure(&self.path, error))
    }

    /// Removes the rejects of an earlier import, if this one has none.
    pub fn remove_older(&self) -> Result<(), Failure> {
        let file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        if file.is_none() { remove(&self.path) } else { Ok(()) }
    }

    /// Flushes the file.
    pub fn finish(&self) -> Result<(), Failure> {
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        match &mut *file {
            Some(file) => file.flush().map_err(|error| failure(&self.path, error)),
            None => Ok(()),
        }
    }
}

/// A reject as a line of JSON.
fn json(rejected: Rejected<'_>) -> String {
    let mut object = Map::new();
    let mut set = |key: &str, value: Value| drop(object.insert(key.to_owned(), value));
    set("line", rejected.line.into());
    set("reason", rejected.reason.into());
    set("message", rejected.message.into());
    if let Some(index) = rejected.identity_index {
        set("identity_index", index.into());
    }
    if !rejected.owner.is_empty() {
        set("owner", rejected.owner.into());
    }
    if rejected.skipped {
        set("skipped", true.into());
    }
    if let Some(Original::Text(text)) = rejected.original {
        set(ORIGINAL, line_value(&text));
    }
    escaped(&Value::Object(object).to_string()).into_owned() + "\n"
}

/// A reject as a row of its table.
fn row(form: &Form, rejected: &Rejected<'_>) -> Result<Vec<u8>, Failure> {
    let none = StringRecord::new();
    let (cells, identity_columns) = match &rejected.original {
        Some(Original::Row(row)) => (&row.cells, &*row.identity_columns),
        _ => (&none, &[][..]),
    };
    let of_identity = rejected.identity_index.and_then(|n| identity_columns.get(n as usize));
    let column = rejected.column.or(of_identity.copied());
    let line = rejected.line.to_string();
    let state = if rejected.skipped { PARTLY } else { REJECTED };
    let name = column.map_or("", |column| form.columns.name(column));
    // The column stands for the place in the message.
    let message = match rejected.message.split_once(": ") {
        Some((place, advice)) if place.starts_with("user.identities[") && column.is_some() => {
            advice
        }
        _ => rejected.message,
    };
    form.row([&line, state, rejected.reason, name, rejected.owner, message], cells)
}

/// Removes a regular file, but no device or link.
fn remove(path: &Path) -> Result<(), Failure> {
    if std::fs::symlink_metadata(path).is_ok_and(|metadata| metadata.is_file()) {
        std::fs::remove_file(path).map_err(|error| failure(path, error))?;
    }
    Ok(())
}
