//! Keeps other processes out of a store's folder and file.

use std::fs::{self, File, TryLockError};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Arc;
use std::thread::sleep;
use std::time::Duration;

use redb::DatabaseError;
use redb::backends::FileBackend;

/// Attempts to acquire a contended lock, and the pause between them.
const TRIES: usize = 10;
const PAUSE: Duration = Duration::from_millis(20);

/// Which file something is, whatever its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FileId {
    device: u64,
    inode: u64,
}

impl FileId {
    pub fn of(metadata: &fs::Metadata) -> Self {
        Self { device: metadata.dev(), inode: metadata.ino() }
    }
}

/// The locks of one opening. They hold until they are dropped by all openings that have them: a
/// store is opened again while the database that it replaces is still being read.
#[derive(Clone, Debug)]
pub struct Locks {
    pub file: Arc<FileBackend>,
    _folder: Option<Arc<File>>,
}

/// The locks of the last opening, to be taken over by the next.
#[derive(Default)]
pub struct Locker {
    folder: Option<(FileId, Arc<File>)>,
    file: Option<(FileId, Arc<FileBackend>)>,
}

impl Locker {
    /// Locks a folder, and so any file that it may get: `false` where another process has done so.
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
                tracing::warn!(%error, "this file system locks no folders: only the store's file \
                    is locked");
                self.folder = None;
            }
        }

        Ok(true)
    }

    /// The locks for a database in `file`, which takes that of the file when it is opened.
    pub fn locks(&mut self, id: FileId, file: &File) -> Result<Locks, DatabaseError> {
        let backend = match &self.file {
            Some((held, backend)) if *held == id => backend.clone(),
            _ => Arc::new(lock_file(file)?),
        };
        self.file = Some((id, backend.clone()));
        Ok(Locks { file: backend, _folder: self.folder.as_ref().map(|(_, folder)| folder.clone()) })
    }
}

/// A process that starts another shares its files with it until that begins: what was closed here
/// may stay locked for that moment.
fn lock(folder: &File) -> Result<(), TryLockError> {
    for _ in 1..TRIES {
        match folder.try_lock() {
            Err(TryLockError::WouldBlock) => sleep(PAUSE),
            outcome => return outcome,
        }
    }
    folder.try_lock()
}

/// The same for a file, whose lock the database's backend takes.
fn lock_file(file: &File) -> Result<FileBackend, DatabaseError> {
    for _ in 1..TRIES {
        match FileBackend::new(file.try_clone()?) {
            Err(DatabaseError::DatabaseAlreadyOpen) => sleep(PAUSE),
            outcome => return outcome,
        }
    }
    FileBackend::new(file.try_clone()?)
}
