//! The file of an export: lines, or a table.

use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::PathBuf;

use polynym_table::{ExportColumns, csv_row};
use serde::Serialize;
use serde_json::Value;
use tempfile::{NamedTempFile, TempPath};

use crate::failure::Failure;
use crate::files;
use crate::transfer::arguments::{Export, Format};
use polynym_import::is_table_name;
use polynym_lines::{UserLine, escaped};
use polynym_proto::v1::User;

const BUFFER_BYTES: usize = 256 << 10;

/// The form of the output.
pub enum Form {
    Lines,
    Table(ExportColumns),
}

impl Form {
    pub fn new(command: &Export) -> Result<Self, Failure> {
        let is_table = command.format.unwrap_or_else(|| match &command.output {
            Some(path) if is_table_name(path) => Format::Csv,
            _ => Format::Jsonl,
        }) == Format::Csv;
        match (&command.columns, is_table) {
            (Some(_), false) => Err(Failure::Usage("--columns needs --format csv".to_owned())),
            (None, false) => Ok(Self::Lines),
            (columns, true) => {
                let columns = ExportColumns::parse(columns.as_deref().unwrap_or_default());
                Ok(Self::Table(columns.map_err(Failure::Usage)?))
            }
        }
    }
}

/// The output file, which gets its name when it is complete, or standard output.
pub struct Output {
    writer: BufWriter<Box<dyn Write>>,
    draft: Option<(TempPath, PathBuf)>,
    form: Form,
    has_begun: bool,
    users: u64,
}

impl Output {
    pub fn new(command: &Export, form: Form) -> Result<Self, Failure> {
        let (writer, draft): (Box<dyn Write>, _) = match &command.output {
            None => (Box::new(std::io::stdout()), None),
            Some(path) => {
                let failure = |error: std::io::Error| files::failure(path, error);
                // Write to a device, a pipe or a link in place.
                if fs::symlink_metadata(path).is_ok_and(|metadata| !metadata.is_file()) {
                    (Box::new(File::create(path).map_err(failure)?), None)
                } else {
                    let temporary = NamedTempFile::new_in(files::folder(path)).map_err(failure)?;
                    let (file, draft) = temporary.into_parts();
                    (Box::new(file), Some((draft, path.clone())))
                }
            }
        };
        let writer = BufWriter::with_capacity(BUFFER_BYTES, writer);
        Ok(Self { writer, draft, form, has_begun: false, users: 0 })
    }

    /// Writes what precedes these users, which are the next ones: the header of a table, once.
    pub fn begin<'u>(
        &mut self,
        users: impl Iterator<Item = &'u User> + Clone,
    ) -> Result<(), Failure> {
        let Form::Table(columns) = &mut self.form else { return Ok(()) };
        if std::mem::replace(&mut self.has_begun, true) {
            return Ok(());
        }
        columns.infer_types(users);
        let header = columns.header();
        // The mark tells spreadsheets the encoding.
        self.writer.write_all("\u{feff}".as_bytes())?;
        self.write_row(&header)
    }

    fn write_row(&mut self, cells: &[String]) -> Result<(), Failure> {
        let row = csv_row(cells.iter().map(String::as_str), b',')?;
        Ok(self.writer.write_all(&row)?)
    }

    pub fn write_user(&mut self, user: &User, internals: Option<Value>) -> Result<(), Failure> {
        self.users += 1;
        match &self.form {
            Form::Lines => self.write_line(&UserLine { user, internals }),
            Form::Table(columns) => {
                let row = columns.row(user).map_err(Failure::Other)?;
                self.write_row(&row)
            }
        }
    }

    /// Writes a line that is no user. Tables have none.
    pub fn write_other(&mut self, line: &Value) -> Result<(), Failure> {
        match self.form {
            Form::Lines => self.write_line(line),
            Form::Table(_) => Ok(()),
        }
    }

    /// The number of users so far.
    pub const fn users(&self) -> u64 {
        self.users
    }

    /// Flushes the output. Returns the number of users.
    pub fn finish(mut self) -> Result<u64, Failure> {
        self.begin(std::iter::empty())?;
        self.writer.flush()?;
        if let Some((draft, path)) = self.draft {
            draft.persist(&path).map_err(|error| files::failure(&path, error.error))?;
        }
        Ok(self.users)
    }

    fn write_line(&mut self, line: &impl Serialize) -> Result<(), Failure> {
        let text = serde_json::to_string(line)
            .map_err(|error| Failure::from(std::io::Error::from(error)))?;
        self.writer.write_all(escaped(&text).as_bytes())?;
        Ok(self.writer.write_all(b"\n")?)
    }
}
