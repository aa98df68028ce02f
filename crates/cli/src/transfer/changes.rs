//! The changes that a dry run finds. The first ones are shown, and a CSV file has all of them.

use std::fs::File;
use std::path::Path;

use csv::Writer;

use crate::failure::Failure;
use crate::files::failure;
use crate::output::printable;
use crate::text::event;
use polynym_proto::v1::ChangeSet;
use polynym_proto::v1::import_users_response::Change;
use polynym_table::guarded;

/// The changes that are shown.
const MAX_SHOWN: usize = 10;
const COLUMNS: [&str; 5] = ["line", "user_id", "field", "before", "after"];

/// The changes of a dry run.
pub struct Changes {
    file: Option<Writer<File>>,
    path: String,
    count: usize,
    shown: String,
}

impl Changes {
    /// No changes yet. All are written to the file at this path, if there is one.
    pub fn new(path: Option<&Path>) -> Result<Self, Failure> {
        let mut changes = Self { file: None, path: String::new(), count: 0, shown: String::new() };
        if let Some(path) = path {
            let file = File::create(path).map_err(|error| failure(path, error))?;
            changes.path = path.display().to_string();
            changes.file = Some(Writer::from_writer(file));
            changes.write(COLUMNS)?;
        }
        Ok(changes)
    }

    /// Adds what a line changes.
    pub fn add(&mut self, change: &Change) -> Result<(), Failure> {
        let Change { line, user_id, changes } = change;
        let none = ChangeSet::default();
        let changes = changes.as_ref().unwrap_or(&none);
        self.count += 1;
        if self.count <= MAX_SHOWN {
            self.shown += &format!("line {line}, user {}\n", printable(user_id));
            for text in event::lines(changes) {
                self.shown += &format!("  {text}\n");
            }
        }
        for (field, before, after) in event::cells(changes) {
            self.write([&line.to_string(), user_id, &field, &before, &after])?;
        }
        Ok(())
    }

    fn write(&mut self, cells: [&str; 5]) -> Result<(), Failure> {
        let Some(file) = &mut self.file else { return Ok(()) };
        let cells = cells.map(|cell| guarded(cell).into_owned());
        file.write_record(cells).map_err(|error| failure(Path::new(&self.path), error))
    }

    /// The first changes, in words.
    pub fn finish(mut self) -> Result<String, Failure> {
        if let Some(mut file) = self.file.take() {
            file.flush().map_err(|error| failure(Path::new(&self.path), error))?;
        }
        if self.count > MAX_SHOWN {
            let more = self.count - MAX_SHOWN;
            let advice = match &*self.path {
                "" => "--changes FILE has them",
                path => path,
            };
            self.shown += &format!("and {more} more lines: {advice}\n");
        }
        Ok(self.shown)
    }
}
