//! Errors of MongoDB, and the part of them that a caller sees. The driver's errors carry keys and
//! documents: only their kinds and codes go into a text.

use std::error::Error as StdError;
use std::fmt;

use mongodb::error::{
    Error as DriverError, ErrorKind, TRANSIENT_TRANSACTION_ERROR,
    UNKNOWN_TRANSACTION_COMMIT_RESULT, WriteFailure,
};

use crate::directory::error::{Error, ItemError};
use crate::store::mongo::client::driver_text::{REFUSED, is_anonymous, text};
use crate::store::mongo::client::supported::{OLDEST, Supported};

const DUPLICATE_KEY: i32 = 11_000;
/// AuthenticationFailed.
const NOT_AUTHENTICATED: i32 = 18;
/// Unauthorized.
pub const NOT_ALLOWED: i32 = 13;
/// Interrupted.
const INTERRUPTED: i32 = 11_601;
/// DocumentValidationFailure.
const REFUSED_BY_VALIDATOR: i32 = 121;
/// SnapshotTooOld and SnapshotUnavailable.
const FORGOTTEN: [i32; 2] = [239, 246];
/// InvalidNamespace.
const INVALID_NAME: i32 = 73;

/// A fault below the directory's rules.
#[derive(Debug, thiserror::Error)]
pub enum Fault {
    /// The driver or the server refused or failed.
    #[error("MongoDB: {0}")]
    Driver(Cause),
    /// A document cannot be read.
    #[error("the store holds a document that cannot be read")]
    Damaged(#[source] Box<dyn StdError + Send + Sync>),
    /// No answer came in time.
    #[error("MongoDB did not answer in time")]
    Late,
    /// Nor did one to a commit: it may have happened or not.
    #[error("MongoDB did not answer a commit in time")]
    Unanswered,
    /// A commit was answered with an error that does not prove that nothing was written.
    #[error("MongoDB did not confirm a commit: {0}")]
    Unconfirmed(Cause),
    /// The store has versions that this program does not support.
    #[error("the store was upgraded: {0}")]
    Outdated(String),
    /// The epoch is another one than that under which the transaction was begun.
    #[error("the store was upgraded meanwhile")]
    Fenced,
    /// So much is under way already that nothing more is begun.
    #[error("too many operations wait for MongoDB")]
    Crowded,
    /// A task ended without a result.
    #[error("an operation stopped unexpectedly")]
    Panicked,
}

impl Fault {
    pub fn damaged(cause: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        Self::Damaged(cause.into())
    }

    /// The fault of a commit that was sent. Only the label for it proves that nothing was written,
    /// on any attempt: an error without it may follow one that was carried out.
    pub fn of_commit(error: &DriverError) -> Self {
        let cause = Cause::new(error);
        let is_concern =
            matches!(&*error.kind, ErrorKind::Write(WriteFailure::WriteConcernError(_)));
        let is_unknown = error.contains_label(UNKNOWN_TRANSACTION_COMMIT_RESULT);
        if error.contains_label(TRANSIENT_TRANSACTION_ERROR) && !is_unknown && !is_concern {
            Self::Driver(Cause { sort: Sort::Transient, ..cause })
        } else {
            Self::Unconfirmed(cause)
        }
    }

    /// The fault of a transaction that has only read: nothing was written, whatever became of its
    /// commit.
    pub fn of_reads(self) -> Self {
        match self {
            Self::Unconfirmed(cause) if cause.sort == Sort::Forbidden => Self::Driver(cause),
            Self::Unconfirmed(cause) => Self::Driver(Cause { sort: Sort::Transient, ..cause }),
            other => other,
        }
    }

    /// Whether the same transaction can be tried again: nothing of it was written.
    pub const fn is_transient(&self) -> bool {
        matches!(self, Self::Driver(Cause { sort: Sort::Transient, .. }))
    }

    /// Whether an operation that may safely be done twice may succeed when it is tried again.
    pub const fn may_pass(&self) -> bool {
        use Sort::{Other, Transient, UnknownCommit};
        match self {
            Self::Driver(cause) | Self::Unconfirmed(cause) => {
                matches!(cause.sort, Transient | UnknownCommit | Other)
            }
            Self::Unanswered => true,
            _ => false,
        }
    }

    /// Whether a key exists already.
    pub const fn is_duplicate(&self) -> bool {
        matches!(self, Self::Driver(Cause { sort: Sort::Duplicate, .. }))
    }

    /// Whether MongoDB has no snapshot of this moment any more, or never has any.
    pub const fn is_forgotten(&self) -> bool {
        matches!(self, Self::Driver(Cause { sort: Sort::Forgotten, .. }))
    }

    /// Whether the document is none that the store takes, which may be because the store was
    /// upgraded.
    pub const fn is_fenced(&self) -> bool {
        matches!(self, Self::Fenced | Self::Driver(Cause { sort: Sort::Invalid, .. }))
    }

    /// Whether a commit may or may not have happened.
    pub const fn is_unknown_commit(&self) -> bool {
        matches!(self, Self::Unconfirmed(_) | Self::Unanswered)
    }

    /// Whether MongoDB asks for such a commit to be sent again until it is answered.
    pub const fn is_retriable_commit(&self) -> bool {
        matches!(self, Self::Unconfirmed(Cause { sort: Sort::UnknownCommit, .. }))
    }
}

impl From<DriverError> for Fault {
    fn from(error: DriverError) -> Self {
        Self::Driver(Cause::new(&error))
    }
}

impl From<Fault> for Error {
    fn from(fault: Fault) -> Self {
        match fault {
            Fault::Damaged(_) => Self::Internal(fault.into()),
            Fault::Outdated(versions) => Self::Outdated(versions),
            // Trying again does not help: an operator must act.
            Fault::Driver(Cause { sort: Sort::Forbidden, .. }) => Self::Internal(fault.into()),
            Fault::Unanswered | Fault::Unconfirmed(_) => Self::OutcomeUnknown(fault.into()),
            Fault::Driver(_) | Fault::Late | Fault::Crowded | Fault::Panicked | Fault::Fenced => {
                Self::Unavailable(fault.into())
            }
        }
    }
}

impl From<Fault> for ItemError {
    fn from(fault: Fault) -> Self {
        Error::from(fault).into()
    }
}

/// The part of a driver's error that may be shown.
#[derive(Debug)]
pub struct Cause {
    sort: Sort,
    text: String,
}

/// The reaction that an error calls for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sort {
    Transient,
    Duplicate,
    Invalid,
    Forbidden,
    Forgotten,
    UnknownCommit,
    Other,
}

impl Cause {
    pub fn new(error: &DriverError) -> Self {
        Self { sort: sort(error), text: text(error) }
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

fn sort(error: &DriverError) -> Sort {
    if has_code(&error.kind, DUPLICATE_KEY) {
        Sort::Duplicate
    } else if has_code(&error.kind, REFUSED_BY_VALIDATOR) {
        Sort::Invalid
    } else if matches!(&*error.kind, ErrorKind::Command(error) if error.code == NOT_ALLOWED) {
        Sort::Forbidden
    } else if is_forgotten_snapshot(error) {
        Sort::Forgotten
    } else if error.contains_label(TRANSIENT_TRANSACTION_ERROR) || is_interrupted(&error.kind) {
        Sort::Transient
    } else if error.contains_label(UNKNOWN_TRANSACTION_COMMIT_RESULT) {
        Sort::UnknownCommit
    } else {
        Sort::Other
    }
}

/// Whether a find of a snapshot session came too late. That of a transaction can be tried again.
fn is_forgotten_snapshot(error: &DriverError) -> bool {
    let is_forgotten = FORGOTTEN.iter().any(|code| has_code(&error.kind, *code))
        || matches!(&*error.kind, ErrorKind::IncompatibleServer { .. });
    is_forgotten && !error.contains_label(TRANSIENT_TRANSACTION_ERROR)
}

/// Whether a statement was ended with its transaction from outside: other servers do so if they
/// have taken this one for dead.
fn is_interrupted(kind: &ErrorKind) -> bool {
    matches!(kind, ErrorKind::Command(error) if error.code == INTERRUPTED)
}

fn has_code(kind: &ErrorKind, code: i32) -> bool {
    match kind {
        ErrorKind::Command(error) => error.code == code,
        ErrorKind::Write(WriteFailure::WriteError(error)) => error.code == code,
        ErrorKind::InsertMany(error) => {
            error.write_errors.iter().flatten().any(|error| error.code == code)
        }
        _ => false,
    }
}

/// Why a store on MongoDB could not be opened. Nothing in it was changed.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The URI is malformed, or names no database.
    #[error("{0}: write mongodb://HOST[:PORT][,…]/DATABASE")]
    Uri(String),
    /// No server that takes writes answers.
    #[error("cannot reach MongoDB: {0}")]
    Unreachable(String),
    /// The server does not take the credentials.
    #[error("MongoDB does not let us in: {0}; check user, password and authSource in the URI")]
    Refused(String),
    /// The user of the URI may not do what is needed.
    #[error("MongoDB refuses: {0}; docs/mongodb.md lists the privileges of each command")]
    Forbidden(String),
    /// A member of a sharded cluster that is no router.
    #[error(
        "this mongod is part of a sharded cluster: give the address of its routers, mongos; they \
         would not find what is written past them"
    )]
    Shard,
    /// A server without transactions.
    #[error(
        "this mongod is a stand-alone, which has no transactions: start it with --replSet NAME and \
         run rs.initiate(); a replica set of one member is enough"
    )]
    Standalone,
    /// There is no store in the database.
    #[error(
        "database {database} has no Polynym store: run `polynym store init --store …/{database}` \
         once"
    )]
    NotInitialised {
        /// The database.
        database: String,
    },
    /// Part of the store is missing.
    #[error(
        "the store in database {database} is not complete ({what}): run `polynym store init \
         --store …/{database}`"
    )]
    Incomplete {
        /// The database.
        database: String,
        /// The missing part.
        what: String,
    },
    /// The store is one of another version of this program.
    #[error(
        "the store in database {database} has schema version {found} and rules version {rules}, \
         this program supports schema versions {OLDEST} to {} and rules versions up to {}: use a \
         program that supports both",
        supported.schema, supported.rules
    )]
    Version {
        /// The database.
        database: String,
        /// The version of its schema.
        found: i64,
        /// The version of its rules of normalisation.
        rules: u32,
        /// The latest versions that the program supports.
        supported: Supported,
    },
    /// The database holds something else under the names that the store uses.
    #[error(
        "database {database} holds something else ({what}): it was left as it is; give another \
         database"
    )]
    Foreign {
        /// The database.
        database: String,
        /// The obstacle.
        what: String,
    },
    /// Identities cannot be moved to later rules of normalisation.
    #[error(
        "{count} identities in database {database} cannot be moved to the new rules: unlink or \
         replace them, then run it again"
    )]
    Unmovable {
        /// The database.
        database: String,
        /// The number.
        count: usize,
    },
    /// Another operation failed.
    #[error("MongoDB: {0}")]
    Failed(String),
}

impl From<DriverError> for OpenError {
    fn from(error: DriverError) -> Self {
        let text = text(&error);
        match &*error.kind {
            ErrorKind::Authentication { .. } => Self::Refused(text),
            ErrorKind::Command(error) if error.code == NOT_AUTHENTICATED => Self::Refused(text),
            ErrorKind::Command(error) if is_anonymous(error) => Self::Refused(text),
            ErrorKind::Command(error) if error.code == NOT_ALLOWED => Self::Forbidden(text),
            ErrorKind::Command(error) if error.code == INVALID_NAME => {
                Self::Uri("MongoDB takes no such name of a database".to_owned())
            }
            ErrorKind::ConnectionPoolCleared { .. } if text == REFUSED => Self::Refused(text),
            ErrorKind::ServerSelection { .. }
            | ErrorKind::ConnectionPoolCleared { .. }
            | ErrorKind::Io(_)
            | ErrorKind::DnsResolve { .. } => Self::Unreachable(text),
            _ => Self::Failed(text),
        }
    }
}
