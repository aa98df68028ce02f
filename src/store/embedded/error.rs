//! What can go wrong in the embedded store, and what of it a caller is told.

use std::error::Error as StdError;
use std::io;
use std::path::{Path, PathBuf};

use crate::directory::Error;

/// A fault below the directory's rules: the disk, the database, or the stored data.
#[derive(Debug, thiserror::Error)]
pub enum Fault {
    /// The database or the disk below it failed.
    #[error("the embedded store failed")]
    Database(#[source] Box<redb::Error>),
    /// A record cannot be read.
    #[error("the embedded store holds a record that cannot be read")]
    Damaged(#[source] Box<dyn StdError + Send + Sync>),
    /// The store is closed, or is being opened again after a failure.
    #[error("the embedded store is not open")]
    Closed,
    /// The database gave up half-way.
    #[error("the embedded store stopped unexpectedly")]
    Panicked,
}

impl Fault {
    pub fn damaged(cause: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        Self::Damaged(cause.into())
    }
}

impl<E: Into<redb::Error>> From<E> for Fault {
    fn from(error: E) -> Self {
        Self::Database(Box::new(error.into()))
    }
}

impl From<Fault> for Error {
    fn from(fault: Fault) -> Self {
        match fault {
            Fault::Damaged(_) => Self::Internal(fault.into()),
            Fault::Database(_) | Fault::Closed | Fault::Panicked => Self::Unavailable(fault.into()),
        }
    }
}

/// Why a folder could not be opened as a store. Nothing in it was changed.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The folder or the file in it cannot be used.
    #[error("cannot use {}: {error}", path.display())]
    Io {
        /// What cannot be used.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// There is no store in the folder.
    #[error("{} has no store: `polynym serve` or `polynym store init` makes one", folder.display())]
    Missing {
        /// The folder.
        folder: PathBuf,
    },
    /// Another process has it open.
    #[error("{} is in use by another process: stop that one, or give this one another folder", path.display())]
    InUse {
        /// The store's file.
        path: PathBuf,
    },
    /// The file is not a store of this program.
    #[error("{} is not a Polynym store ({reason}): it was left as it is; give another folder", path.display())]
    Foreign {
        /// The file.
        path: PathBuf,
        /// What it is instead.
        reason: &'static str,
    },
    /// The file is a store of another version of this program.
    #[error("{} has schema version {found}, this program reads version {known}: use the program that wrote it", path.display())]
    Version {
        /// The store's file.
        path: PathBuf,
        /// Its version.
        found: u64,
        /// The version that this program reads.
        known: u64,
    },
    /// The file is a store, but damaged.
    #[error("{} is damaged ({reason}): it was left as it is; restore it from a backup", path.display())]
    Damaged {
        /// The store's file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
}

impl OpenError {
    pub(super) fn io(path: &Path, error: io::Error) -> Self {
        Self::Io { path: path.to_owned(), error }
    }

    pub(super) fn damaged(path: &Path, reason: impl ToString) -> Self {
        Self::Damaged { path: path.to_owned(), reason: reason.to_string() }
    }

    /// What opening the database said.
    pub(super) fn database(path: &Path, error: redb::DatabaseError) -> Self {
        let path_of = || path.to_owned();
        match error {
            redb::DatabaseError::DatabaseAlreadyOpen => Self::InUse { path: path_of() },
            redb::DatabaseError::Storage(redb::StorageError::Io(error)) if !tells_of_damage(&error) => {
                Self::io(path, error)
            }
            error => Self::damaged(path, error),
        }
    }
}

/// Whether what was read makes no sense, or is not all there; else it is the reading that failed.
fn tells_of_damage(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::InvalidData | io::ErrorKind::UnexpectedEof)
}
