//! Edits of a credentials file, which preserve its comments and order. Programs that edit one file
//! at once take turns, and a reader finds the text before an edit or the one after it.

use std::fs::{self, File, TryLockError};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{MetadataExt, fchown};
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::fs::{Access, access};
use rustix::io::Errno;
use tempfile::NamedTempFile;
use toml_edit::{DocumentMut, TomlError};

use super::caller_state::CallerStates;
use super::credentials::Credentials;
use super::rate_limiter::RateLimits;

/// The time for which an edit waits for another one.
const LOCK_TIMEOUT: Duration = Duration::from_secs(5);
const LOCK_INTERVAL: Duration = Duration::from_millis(10);

/// The reason why a credentials file was not changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EditError {
    /// This program may not change the file. What to do instead.
    #[error("{0}")]
    ReadOnly(String),
    /// No credential is the one to change.
    #[error("{0}")]
    NotFound(String),
    /// The change is not possible, or the file is invalid.
    #[error("{0}")]
    Invalid(String),
    /// The file cannot be read or written.
    #[error("{0}")]
    Io(String),
    /// Another program changes the file, for a long time.
    #[error("another program is changing the file: try again")]
    Busy,
}

impl From<io::Error> for EditError {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            ErrorKind::ReadOnlyFilesystem | ErrorKind::PermissionDenied => read_only(),
            _ => Self::Io(error.to_string()),
        }
    }
}

fn read_only() -> EditError {
    EditError::ReadOnly(
        "this program may not write the file's folder, or the file is another user's. If the file \
         is a mounted secret or comes from configuration management, change it there, with \
         `polynym token` on a copy; otherwise let this program's user own the file and write its \
         folder"
            .to_owned(),
    )
}

/// The file to which a path leads, as an edit must replace that of a link and not the link, and its
/// folder.
fn target(path: &Path) -> (PathBuf, PathBuf) {
    let target = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let folder = target.parent().filter(|folder| !folder.as_os_str().is_empty());
    let folder = folder.unwrap_or(Path::new(".")).to_owned();
    (target, folder)
}

/// Checks that this program may change a file, without changing it.
///
/// # Errors
/// It may not, or the path leads to something else than a file.
pub fn check(path: &Path) -> Result<(), EditError> {
    let (target, folder) = target(path);
    match access(&folder, Access::WRITE_OK | Access::EXEC_OK) {
        Err(Errno::ROFS | Errno::ACCESS | Errno::PERM) => return Err(read_only()),
        other => other.map_err(io::Error::from)?,
    }
    let meta = fs::metadata(&target)?;
    if !meta.is_file() {
        return Err(EditError::Invalid("not a file".to_owned()));
    }
    // Only root may give a new file to another user.
    let user = rustix::process::geteuid();
    if user.is_root() || user.as_raw() == meta.uid() { Ok(()) } else { Err(read_only()) }
}

/// Edits a file. If it does not exist, it is created. `written` has the new text before the next
/// edit begins.
///
/// # Errors
/// The file cannot be written, it is invalid before or after the change, or the change fails.
pub fn edit<T>(
    path: &Path,
    change: impl FnOnce(&mut DocumentMut) -> Result<T, EditError>,
    written: impl FnOnce(&str),
) -> Result<T, EditError> {
    let (target, folder) = target(path);
    let lock = locked(&folder)?;

    // Do not replace a device by a file.
    if fs::metadata(&target).is_ok_and(|meta| !meta.is_file()) {
        return Err(EditError::Invalid("not a file".to_owned()));
    }
    let before = match fs::read_to_string(&target) {
        Err(error) if error.kind() == ErrorKind::NotFound => String::new(),
        read => read?,
    };
    validate(&before)?;
    let mut document: DocumentMut = before
        .parse()
        .map_err(|error: TomlError| EditError::Invalid(error.message().to_owned()))?;
    let outcome = change(&mut document)?;
    let after = document.to_string();
    validate(&after)?;

    replace(&target, &folder, &after)?;
    lock.sync_all()?;
    written(&after);
    Ok(outcome)
}

fn validate(text: &str) -> Result<(), EditError> {
    Credentials::parse(text, RateLimits::default(), &CallerStates::default())
        .map(drop)
        .map_err(|error| EditError::Invalid(error.to_string()))
}

/// The folder, once no other edit has it.
fn locked(folder: &Path) -> Result<File, EditError> {
    let (lock, began) = (File::open(folder)?, Instant::now());
    loop {
        match lock.try_lock() {
            Ok(()) => return Ok(lock),
            Err(TryLockError::WouldBlock) if began.elapsed() < LOCK_TIMEOUT => sleep(LOCK_INTERVAL),
            Err(TryLockError::WouldBlock) => return Err(EditError::Busy),
            Err(TryLockError::Error(error)) => return Err(error.into()),
        }
    }
}

/// Only the owner may read a new file. An existing file keeps its owner and permissions, so that
/// the server can still read it.
fn replace(path: &Path, folder: &Path, text: &str) -> io::Result<()> {
    let mut file = NamedTempFile::new_in(folder)?;
    file.write_all(text.as_bytes())?;
    if let Ok(old) = fs::metadata(path) {
        let new = file.as_file().metadata()?;
        if (new.uid(), new.gid()) != (old.uid(), old.gid()) {
            fchown(file.as_file(), Some(old.uid()), Some(old.gid()))?;
        }
        file.as_file().set_permissions(old.permissions())?;
    }
    file.as_file().sync_all()?;
    file.persist(path)?;
    Ok(())
}
