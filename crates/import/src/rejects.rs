//! Rejected lines, in the form of the input: lines of JSON, or the rows of a table. The first one
//! opens the file for them.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::sync::{Mutex, OnceLock, PoisonError};

use csv::StringRecord;
use polynym_lines::{ORIGINAL, escaped};
use polynym_table::{Columns, REJECT_COLUMNS, csv_row, separator, without_marks};
use serde_json::{Map, Value};

use crate::groups::{Groups, RejectGroup, RejectedRow};
use crate::window::{Original, line_value};

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

/// The layout of a table, which its rejects have too.
#[derive(Clone)]
pub struct TableLayout {
    /// The first row.
    pub header: StringRecord,
    /// The names of the columns.
    pub columns: Columns,
    /// The sign between cells.
    pub separator: u8,
}

/// Opens the file of rejects.
type Open = Box<dyn FnMut() -> io::Result<Box<dyn Write + Send>> + Send>;

/// The rejected lines.
pub struct Rejects {
    /// The layout of rejected rows; none for lines of JSON.
    layout: OnceLock<TableLayout>,
    file: Mutex<(Open, Option<Box<dyn Write + Send>>)>,
    reasons: Mutex<BTreeMap<String, Reason>>,
    groups: Mutex<Groups>,
}

/// A reason of rejects.
#[derive(Clone, Debug)]
pub struct Reason {
    /// The number of rejects.
    pub count: u64,
    /// The line of the first one.
    pub line: i64,
    /// The message of the first one.
    pub message: String,
}

impl TableLayout {
    /// The name of the separator.
    pub fn separator_name(&self) -> String {
        separator::name(self.separator)
    }

    /// The rows of a table with this header, as text in UTF-8.
    ///
    /// # Errors
    /// None that is known.
    pub fn text<'r>(&'r self, rows: impl Iterator<Item = &'r StringRecord>) -> io::Result<Vec<u8>> {
        let mut text = BYTE_ORDER_MARK.as_bytes().to_vec();
        for cells in std::iter::once(&self.header).chain(rows) {
            text.extend(csv_row(cells.iter(), self.separator)?);
        }
        Ok(text)
    }

    /// The columns that come from a table of rejects.
    fn own_columns(header: &StringRecord) -> usize {
        if header.iter().take(REJECT_COLUMNS.len()).eq(REJECT_COLUMNS) {
            REJECT_COLUMNS.len()
        } else {
            0
        }
    }

    /// Whether a row of a table of rejects has an imported user.
    pub fn is_imported(&self, cells: &StringRecord) -> bool {
        Self::own_columns(&self.header) > 0 && cells.get(1) == Some(PARTLY)
    }

    /// The text before the first reject.
    fn head(&self) -> io::Result<Vec<u8>> {
        let header = self.row(REJECT_COLUMNS, &self.header)?;
        Ok([BYTE_ORDER_MARK.as_bytes(), &header].concat())
    }

    /// The text of a row.
    fn row<'c>(&self, own: [&'c str; 6], cells: &'c StringRecord) -> io::Result<Vec<u8>> {
        let skipped = Self::own_columns(&self.header);
        // An import reads a cell in the same way with an apostrophe before its formula and without.
        let cells = cells.iter().skip(skipped).map(without_marks);
        let cells: Vec<_> = own.map(Cow::Borrowed).into_iter().chain(cells).collect();
        csv_row(cells.iter().map(|cell| &**cell), self.separator)
    }
}

impl Rejects {
    /// No rejects yet. The first one is written to the file that `open` returns; each reject is
    /// written by one call.
    pub fn new(open: impl FnMut() -> io::Result<Box<dyn Write + Send>> + Send + 'static) -> Self {
        let file = Mutex::new((Box::new(open) as Open, None));
        let (reasons, groups) = (Mutex::default(), Mutex::default());
        Self { layout: OnceLock::new(), file, reasons, groups }
    }

    /// The rejects by column and reason, the most frequent first.
    pub fn groups(&self) -> Vec<RejectGroup> {
        self.groups.lock().unwrap_or_else(PoisonError::into_inner).sorted()
    }

    /// The names of the columns of a table, and its separator.
    pub fn layout(&self) -> Option<&TableLayout> {
        self.layout.get()
    }

    /// The reasons of rejects.
    pub fn reasons(&self) -> BTreeMap<String, Reason> {
        self.reasons.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Sets the layout of the rejected rows.
    pub fn set_layout(&self, layout: TableLayout) -> &TableLayout {
        self.layout.get_or_init(|| layout)
    }

    /// Adds a line.
    ///
    /// # Errors
    /// The file cannot be opened or written.
    pub fn add(&self, rejected: Rejected<'_>) -> io::Result<()> {
        self.count(&rejected);
        let layout = self.layout.get();
        self.group(&rejected, layout);
        let text = match layout {
            None => json_line(rejected).into_bytes(),
            Some(layout) => row(layout, &rejected)?,
        };
        let mut guard = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        let (open, file) = &mut *guard;
        let opened = match file {
            Some(opened) => opened,
            None => {
                let head = layout.map(TableLayout::head).transpose()?.unwrap_or_default();
                let opened = file.insert(open()?);
                opened.write_all(&head)?;
                opened
            }
        };
        opened.write_all(&text)
    }

    fn count(&self, rejected: &Rejected<'_>) {
        let mut reasons = self.reasons.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(reason) = reasons.get_mut(rejected.reason) {
            reason.count += 1;
            return;
        }
        let message = rejected.message.to_owned();
        let reason = Reason { count: 1, line: rejected.line, message };
        reasons.insert(rejected.reason.to_owned(), reason);
    }

    fn group(&self, rejected: &Rejected<'_>, layout: Option<&TableLayout>) {
        let column = rejected.place();
        let name = column.zip(layout).map_or("", |(column, layout)| layout.columns.name(column));
        let mut groups = self.groups.lock().unwrap_or_else(PoisonError::into_inner);
        groups.add((column, name), rejected.reason, || RejectedRow {
            line: rejected.line,
            message: rejected.advice().to_owned(),
            is_imported: rejected.skipped,
            owner: rejected.owner.to_owned(),
            cells: match &rejected.original {
                Some(Original::Row(row)) => Some(row.cells.clone()),
                _ => None,
            },
        });
    }

    /// Flushes the file. Returns whether there is one.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn finish(&self) -> io::Result<bool> {
        let mut guard = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        match &mut guard.1 {
            Some(file) => file.flush().map(|()| true),
            None => Ok(false),
        }
    }
}

/// A reject as a line of JSON.
fn json_line(rejected: Rejected<'_>) -> String {
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
fn row(layout: &TableLayout, rejected: &Rejected<'_>) -> io::Result<Vec<u8>> {
    let none = StringRecord::new();
    let cells = match &rejected.original {
        Some(Original::Row(row)) => &row.cells,
        _ => &none,
    };
    let line = rejected.line.to_string();
    let state = if rejected.skipped { PARTLY } else { REJECTED };
    let name = rejected.place().map_or("", |column| layout.columns.name(column));
    layout.row([&line, state, rejected.reason, name, rejected.owner, rejected.advice()], cells)
}

impl Rejected<'_> {
    /// The column of the rejected cell, in a table.
    fn place(&self) -> Option<usize> {
        let identity_columns = match &self.original {
            Some(Original::Row(row)) => &*row.identity_columns,
            _ => &[],
        };
        let of_identity = self.identity_index.and_then(|n| identity_columns.get(n as usize));
        self.column.or(of_identity.copied())
    }

    /// What is wrong. A column stands for the place in the message.
    fn advice(&self) -> &str {
        match self.message.split_once(": ") {
            Some((place, advice))
                if place.starts_with("user.identities[") && self.place().is_some() =>
            {
                advice
            }
            _ => self.message,
        }
    }
}
