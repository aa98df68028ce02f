//! Locks that keep other processes out of a store's folder and file.

use std::fs::{self, File, TryLockError};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Arc;
use std::thread::sleep;
use std::time::Duration;

use redb::DatabaseError;
use redb::backends::FileBackend;

/// Attempts to acquire a contended lock.
const LOCK_ATTEMPTS: usize = 10;
/// The pause between two of them.
const LOCK_RETRY_DELAY: Duration = Duration::from_millis(20);

/// The identity of a file, whatever its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FileId {
    device: u64,
    inode: u64,
}

impl FileId {
    pub fn of(metadata: &fs::Metadata) -> Self {
        Self { device: metadata.dev(), inode: metadata.ino() }
    }

    /// The id of an open file.
    pub fn of_open(file: &File) -> io::Result<Self> {
        Ok(Self::of(&file.metadata()?))
    }

    /// Returns what is under `path`. Fails unless it is this file itself, not a link to it.
    pub fn at(self, path: &Path) -> io::Result<fs::Metadata> {
        let found = fs::symlink_metadata(path)?;
        if Self::of(&found) == self {
            return Ok(found);
        }
        let name = path.display();
        Err(io::Error::other(format!("{name} was replaced meanwhile: stop who did, and try again")))
    }
}

/// The locks of one opening. Openings share them, and the last one releases them: a store is
/// reopened while look-ups still read the database that it replaces.
#[derive(Clone, Debug)]
pub struct Locks {
    pub file: Arc<FileBackend>,
    _folder: Option<Arc<File>>,
}

/// The locks of the last opening, which the next one takes over.
#[derive(Default)]
pub struct Locker {
    folder: Option<(FileId, Arc<File>)>,
    file: Option<(FileId, Arc<FileBackend>)>,
}

impl Locker {
    /// Takes over the lock of a folder.
    pub fn holding(folder: &Arc<File>) -> io::Result<Self> {
        Ok(Self { folder: Some((FileId::of_open(folder)?, folder.clone())), file: None })
    }

    /// Locks a folder, and so every file that it may get. Returns `false` if another process has
    /// locked it.
    pub fn lock_folder(&mut self, path: &Path) -> io::Result<bool> {
        let folder = File::open(path)?;
        let id = FileId::of(&folder.metadata()?);
        if self.folder.as_ref().is_some_and(|(held, _)| *held == id) {
            return Ok(true);
        }

        match lock(&folder) {
            Ok(()) => self.folder = Some((id, Arc::new(folder))),
            Err(TryLockError::WouldBlock) => return Ok(false),
            Err(TryLockError::Error(error)) => {
                tracing::warn!(%error, "this file system cannot lock folders: only the store's \
                    file is locked");
                self.folder = None;
            }
        }

        Ok(true)
    }

    /// The locks for a database in `file`. The database acquires the file's lock when it is opened.
    pub fn locks(&mut self, id: FileId, file: &File) -> Result<Locks, DatabaseError> {
        let backend = match &self.file {
            Some((held, backend)) if *held == id => backend.clone(),
            _ => Arc::new(lock_file(file)?),
        };
        self.file = Some((id, backend.clone()));
        Ok(Locks { file: backend, _folder: self.folder.as_ref().map(|(_, folder)| folder.clone()) })
    }
}

/// Retries: a child process shares open files until it has started, so that a closed file may stay
/// locked for a short time.
fn lock(folder: &File) -> Result<(), TryLockError> {
    for _ in 1..LOCK_ATTEMPTS {
        match folder.try_lock() {
            Err(TryLockError::WouldBlock) => sleep(LOCK_RETRY_DELAY),
            outcome => return outcome,
        }
    }
    folder.try_lock()
}

/// Locks a file. The database's backend holds the lock.
fn lock_file(file: &File) -> Result<FileBackend, DatabaseError> {
    for _ in 1..LOCK_ATTEMPTS {
        match FileBackend::new(file.try_clone()?) {
            Err(DatabaseError::DatabaseAlreadyOpen) => sleep(LOCK_RETRY_DELAY),
            outcome => return outcome,
        }
    }
    FileBackend::new(file.try_clone()?)
}
