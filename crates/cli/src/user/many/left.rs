//! The file of the users that a change of many has left: `--file` of the next one.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::PathBuf;

use crate::failure::Failure;
use crate::files;

/// The file. The first user creates it.
pub struct Left {
    path: PathBuf,
    file: Option<BufWriter<File>>,
}

impl Left {
    pub const fn new(path: PathBuf) -> Self {
        Self { path, file: None }
    }

    /// The file of an operation, in the present folder.
    pub fn default_path(operation_id: &str) -> PathBuf {
        format!("polynym-{operation_id}.left").into()
    }

    /// Adds a user, with the reason as a comment.
    pub fn add(&mut self, user: &str, reason: &str) -> Result<(), Failure> {
        let failure = |error| files::failure(&self.path, error);
        let file = match &mut self.file {
            Some(file) => file,
            None => self.file.insert(BufWriter::new(File::create(&self.path).map_err(failure)?)),
        };
        let line = format!("{user} # {}", reason.replace(char::is_control, " "));
        writeln!(file, "{}", line.trim_end_matches([' ', '#'])).map_err(failure)
    }

    /// Writes what is in memory. Returns the path, if a user is left.
    pub fn finish(self) -> Result<Option<PathBuf>, Failure> {
        let Self { path, file } = self;
        let Some(mut file) = file else { return Ok(None) };
        file.flush().map_err(|error| files::failure(&path, error))?;
        Ok(Some(path))
    }
}
