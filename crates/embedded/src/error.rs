//! Errors of the embedded store, and the errors that a caller sees.

use std::error::Error as StdError;
use std::io;
use std::path::{Path, PathBuf};

use crate::version::Supported;
use arc_swap::ArcSwapOption;

use polynym_directory::{Error, ItemError};

/// A fault below the directory's rules: the disk, the database, or the stored data.
#[derive(Debug, thiserror::Error)]
pub enum Fault {
    /// The database or the disk below it failed.
    #[error("the embedded store failed")]
    Database(#[source] Box<redb::Error>),
    /// A record cannot be read.
    #[error("the embedded store holds a record that cannot be read")]
    Damaged(#[source] Box<dyn StdError + Send + Sync>),
    /// The store is closed.
    #[error("the embedded store is not open")]
    Closed,
    /// The store rejects mutations, or all calls.
    #[error("{0}")]
    Degraded(DegradedReason),
    /// The writer does not answer in time.
    #[error("the embedded store does not answer")]
    Stuck,
    /// The database panicked.
    #[error("the embedded store stopped unexpectedly")]
    Panicked,
    /// Less than the reserved space of the disk would be left.
    #[error("the disk of the embedded store is nearly full")]
    DiskFull,
    /// The caller of a copy has left.
    #[error("the copy was cancelled")]
    Cancelled,
}

/// The reason why a store rejects mutations, or all calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DegradedReason {
    /// A write has failed. Reads continue.
    #[error("the embedded store's file cannot be written")]
    Unwritable,
    /// The file was moved, replaced or deleted. Reads continue from the open file.
    #[error("the embedded store's file is no longer in its place")]
    Gone,
    /// A read has failed.
    #[error("the embedded store's file cannot be read")]
    Unreadable,
    /// The data read is corrupt: no answer from this file is reliable.
    #[error("the embedded store's file is damaged")]
    Damaged,
}

/// The reason why mutations are refused. None while they are accepted.
pub type DegradedState = ArcSwapOption<DegradedReason>;

impl DegradedReason {
    /// Whether the open file can still be read.
    pub const fn leaves_reads(self) -> bool {
        matches!(self, Self::Unwritable | Self::Gone)
    }
}

impl Fault {
    pub fn damaged(cause: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        Self::Damaged(cause.into())
    }

    /// The reason to degrade the store after a read with this error. None if the error concerns
    /// only one record.
    pub fn degraded_by_read(&self) -> Option<DegradedReason> {
        match self {
            Self::Panicked => Some(DegradedReason::Damaged),
            Self::Database(error) if matches!(**error, redb::Error::Corrupted(_)) => {
                Some(DegradedReason::Damaged)
            }
            Self::Database(_) => Some(DegradedReason::Unreadable),
            Self::Damaged(_)
            | Self::Closed
            | Self::Degraded(_)
            | Self::Stuck
            | Self::DiskFull
            | Self::Cancelled => None,
        }
    }

    /// The reason to degrade the store after a commit with this error.
    pub fn degraded_by_commit(&self) -> DegradedReason {
        match (self, self.degraded_by_read()) {
            (Self::Degraded(reason), _) => *reason,
            (_, Some(DegradedReason::Damaged)) => DegradedReason::Damaged,
            _ => DegradedReason::Unwritable,
        }
    }
}

impl<E: Into<redb::Error>> From<E> for Fault {
    fn from(error: E) -> Self {
        Self::Database(Box::new(error.into()))
    }
}

impl From<Fault> for Error {
    fn from(fault: Fault) -> Self {
        let is_damage =
            matches!(fault, Fault::Damaged(_) | Fault::Degraded(DegradedReason::Damaged))
                || fault.degraded_by_read() == Some(DegradedReason::Damaged);
        match fault {
            Fault::DiskFull => Self::DiskFull,
            fault if is_damage => Self::Internal(fault.into()),
            fault => Self::Unavailable(fault.into()),
        }
    }
}

impl From<Fault> for ItemError {
    fn from(fault: Fault) -> Self {
        Error::from(fault).into()
    }
}

/// The reason why a folder could not be opened as a store. Nothing in it was changed.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The folder or the file in it cannot be used.
    #[error("cannot use {}: {error}", path.display())]
    Io {
        /// The path that cannot be used.
        path: PathBuf,
        /// The reason.
        error: io::Error,
    },
    /// There is no store in the folder.
    #[error(
        "{0} has no store. If it should have one, see whether its disk is mounted. \
         A new one is made by\n  \
         polynym store init --store embedded:{0}\n  \
         polynym serve --create --store embedded:{0}",
        folder.display()
    )]
    Missing {
        /// The folder.
        folder: PathBuf,
    },
    /// Another process has it open.
    #[error(
        "{} is in use by another process: stop that one, or give this one another folder",
        path.display()
    )]
    InUse {
        /// The store's file.
        path: PathBuf,
    },
    /// The file is not a store of this program.
    #[error(
        "{} is not a Polynym store ({reason}): it was left unchanged; give another folder",
        path.display()
    )]
    Foreign {
        /// The file.
        path: PathBuf,
        /// The kind of file that it is instead.
        reason: &'static str,
    },
    /// The file is a store of another version of this program.
    #[error(
        "{} has schema version {found} and rules version {rules}, this program supports schema \
         version {} and rules version {}: {}",
        path.display(), supported.schema, supported.rules, supported.advice(*found, *rules)
    )]
    Version {
        /// The store's file.
        path: PathBuf,
        /// The version of its schema.
        found: u64,
        /// The version of its rules of normalisation.
        rules: u32,
        /// The latest versions that the program supports.
        supported: Supported,
    },
    /// Identities cannot be moved to later rules of normalisation.
    #[error(
        "{count} identities in {} cannot be moved to the new rules: `polynym renormalize \
         --dry-run` shows them; unlink or replace them, then run it again",
        folder.display()
    )]
    Unmovable {
        /// The folder.
        folder: PathBuf,
        /// The number.
        count: usize,
    },
    /// The file is a store, but damaged.
    #[error(
        "{} is damaged ({reason}): it was left unchanged; restore it from a backup",
        path.display()
    )]
    Damaged {
        /// The store's file.
        path: PathBuf,
        /// The fault.
        reason: String,
    },
    /// The file is not a backup of a store.
    #[error(
        "{} is not a backup of a Polynym store ({reason}): nothing was restored; give a file that \
         `polynym backup` has written",
        path.display()
    )]
    NotBackup {
        /// The file.
        path: PathBuf,
        /// The kind of file that it is instead.
        reason: &'static str,
    },
    /// The file is a backup, but damaged.
    #[error(
        "the backup {} is damaged ({reason}): nothing was restored; copy it again from its other \
         places, or restore an earlier backup",
        path.display()
    )]
    DamagedBackup {
        /// The backup.
        path: PathBuf,
        /// The fault.
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

    pub(super) fn damaged_backup(path: &Path, reason: impl ToString) -> Self {
        Self::DamagedBackup { path: path.to_owned(), reason: reason.to_string() }
    }

    /// The error for a backup whose content does not open as a store.
    pub(super) fn of_backup(self, backup: &Path) -> Self {
        let path = backup.to_owned();
        match self {
            Self::Damaged { reason, .. } => Self::DamagedBackup { path, reason },
            Self::Foreign { reason, .. } => Self::NotBackup { path, reason },
            Self::Version { found, rules, supported, .. } => {
                Self::Version { path, found, rules, supported }
            }
            error => error,
        }
    }

    /// The error for a failed read of the file.
    pub(super) fn reading(path: &Path, error: io::Error) -> Self {
        if is_damage(&error) { Self::damaged(path, error) } else { Self::io(path, error) }
    }

    /// The error for a database that cannot be opened.
    pub(super) fn database(path: &Path, error: redb::DatabaseError) -> Self {
        match error {
            redb::DatabaseError::DatabaseAlreadyOpen => Self::InUse { path: path.to_owned() },
            redb::DatabaseError::Storage(redb::StorageError::Io(error)) => {
                Self::reading(path, error)
            }
            error => Self::damaged(path, error),
        }
    }
}

/// Whether the file's content is invalid or incomplete. Otherwise the read itself failed.
fn is_damage(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::InvalidData | io::ErrorKind::UnexpectedEof)
}

/// An error and its causes in one line.
pub fn chain(fault: &(dyn StdError + 'static)) -> String {
    let causes = std::iter::successors(Some(fault), |cause| (**cause).source());
    causes.map(ToString::to_string).collect::<Vec<_>>().join(": ")
}
