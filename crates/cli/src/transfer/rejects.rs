//! The file of rejected lines. The first rejected line creates it, and replaces an earlier file.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use serde_json::{Map, Value};

use super::jsonl::ORIGINAL;
use super::window::Original;
use crate::failure::Failure;
use crate::files::failure;
use crate::output::escaped;

/// A rejected line, or a skipped identity of an imported one.
pub struct Rejected<'a> {
    pub line: i64,
    pub reason: &'a str,
    pub message: &'a str,
    pub identity_index: Option<i32>,
    pub skipped: bool,
    pub original: Option<Original>,
}

/// The file of rejects.
pub struct Rejects {
    path: PathBuf,
    file: Mutex<Option<BufWriter<File>>>,
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
        Ok(Self { path, file: Mutex::new(None) })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Adds a line.
    pub fn add(&self, rejected: Rejected<'_>) -> Result<(), Failure> {
        let mut object = Map::new();
        let mut set = |key: &str, value: Value| drop(object.insert(key.to_owned(), value));
        set("line", rejected.line.into());
        set("reason", rejected.reason.into());
        set("message", rejected.message.into());
        if let Some(index) = rejected.identity_index {
            set("identity_index", index.into());
        }
        if rejected.skipped {
            set("skipped", true.into());
        }
        if let Some(original) = rejected.original {
            set(ORIGINAL, original.value());
        }

        let text = escaped(&Value::Object(object).to_string()).into_owned() + "\n";
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        let opened = match &mut *file {
            Some(file) => file,
            None => {
                remove(&self.path)?;
                let created =
                    File::create(&self.path).map_err(|error| failure(&self.path, error))?;
                file.insert(BufWriter::new(created))
            }
        };
        opened.write_all(text.as_bytes()).map_err(|error| failure(&self.path, error))
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

/// Removes a regular file, but no device or link.
fn remove(path: &Path) -> Result<(), Failure> {
    if std::fs::symlink_metadata(path).is_ok_and(|metadata| metadata.is_file()) {
        std::fs::remove_file(path).map_err(|error| failure(path, error))?;
    }
    Ok(())
}
