//! The file of `polynym watch --resume-file`. A crash leaves the former token or the new one.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::time::Instant;

use crate::failure::Failure;

/// The time for which a token waits for the next one: a sync of the disk for each event would slow
/// down the watch. Events that were shown since the last one are shown again after a crash.
const SAVE_PERIOD: Duration = Duration::from_millis(200);

/// The file with the token of the last shown event.
pub struct ResumeFile {
    path: PathBuf,
    /// The token that the file does not have yet.
    unsaved: Option<String>,
    saved: Option<Instant>,
}

impl ResumeFile {
    pub const fn new(path: PathBuf) -> Self {
        Self { path, unsaved: None, saved: None }
    }

    /// The token in the file; empty if there is no file.
    pub fn read(&self) -> Result<String, Failure> {
        let token = match fs::read_to_string(&self.path) {
            Ok(token) => token.trim().to_owned(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(String::new()),
            Err(error) => return Err(self.failure(&error)),
        };
        if token.is_empty() {
            return Err(self.failure(&"is empty: delete it to begin now, without the events since"));
        }
        Ok(token)
    }

    /// Replaces the token: at once, or with the next one if the last was replaced just now.
    pub fn keep(&mut self, token: &str) -> Result<(), Failure> {
        self.unsaved = Some(token.to_owned());
        match self.save_at() {
            Some(time) if time > Instant::now() => Ok(()),
            _ => self.save(),
        }
    }

    /// When the file is due to be written.
    pub fn save_at(&self) -> Option<Instant> {
        let last = self.saved.map_or_else(Instant::now, |saved| saved + SAVE_PERIOD);
        self.unsaved.as_ref().map(|_| last)
    }

    /// Writes the last token.
    pub fn save(&mut self) -> Result<(), Failure> {
        let Some(token) = self.unsaved.take() else { return Ok(()) };
        self.saved = Some(Instant::now());
        replace(&self.path, &token).map_err(|error| self.failure(&error))
    }

    fn failure(&self, cause: &dyn std::fmt::Display) -> Failure {
        Failure::Other(format!("--resume-file {}: {cause}", self.path.display()))
    }
}

/// Replaces the content of a file. After a crash it has the former content or the new one.
fn replace(path: &Path, content: &str) -> io::Result<()> {
    // Appended to the whole name: files that differ only in their extensions have drafts of their
    // own.
    let mut draft = path.as_os_str().to_owned();
    draft.push(".new");
    let mut file = File::create(&draft)?;
    file.write_all(content.as_bytes())?;
    file.sync_all()?;
    fs::rename(&draft, path)?;
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    File::open(folder.unwrap_or(Path::new(".")))?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_that_differ_in_their_extensions_do_not_interfere() {
        let folder = tempfile::tempdir().unwrap();
        let mut files =
            ["watch.one", "watch.two"].map(|name| ResumeFile::new(folder.path().join(name)));
        // A crash has left the draft of the other file.
        fs::create_dir(folder.path().join("watch.new")).unwrap();
        for (n, file) in files.iter_mut().enumerate() {
            assert_eq!(file.read().ok().as_deref(), Some(""));
            file.keep(&format!("token {n}")).ok().unwrap();
        }
        let tokens = files.map(|file| file.read().ok().unwrap());
        assert_eq!(tokens, ["token 0", "token 1"]);
    }

    #[test]
    fn the_last_of_many_tokens_is_saved_in_time() {
        let folder = tempfile::tempdir().unwrap();
        let mut file = ResumeFile::new(folder.path().join("token"));
        for n in 0..1_000 {
            file.keep(&n.to_string()).ok().unwrap();
        }
        let due = file.save_at().unwrap();
        assert!(due <= Instant::now() + SAVE_PERIOD);
        file.save().ok().unwrap();
        assert_eq!((file.read().ok().as_deref(), file.save_at()), (Some("999"), None));
    }

    #[test]
    fn an_empty_file_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("token");
        fs::write(&path, "\n").unwrap();
        let refused = ResumeFile::new(path).read();
        assert!(matches!(refused, Err(Failure::Other(text)) if text.contains("is empty")));
    }
}
