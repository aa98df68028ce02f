//! Errors of MongoDB, and the part of them that a caller sees. The driver's errors carry keys and
//! documents: messages have only their kinds and codes.

use std::error::Error as StdError;
use std::fmt;

use mongodb::error::{
    Error as DriverError, ErrorKind, TRANSIENT_TRANSACTION_ERROR,
    UNKNOWN_TRANSACTION_COMMIT_RESULT, WriteFailure,
};

use crate::client::driver_text::{NOT_ALLOWED, REFUSED, is_anonymous, text};
use crate::client::supported::Supported;
use polynym_directory::{Error, ItemError};

const DUPLICATE_KEY: i32 = 11_000;
/// AuthenticationFailed.
const NOT_AUTHENTICATED: i32 = 18;
/// Interrupted.
const INTERRUPTED: i32 = 11_601;
/// DocumentValidationFailure.
const REFUSED_BY_VALIDATOR: i32 = 121;
/// SnapshotTooOld, SnapshotUnavailable and StaleChunkHistory.
const SNAPSHOT_GONE: [i32; 3] = [239, 246, 250];
/// InvalidNamespace.
const INVALID_NAME: i32 = 73;

/// A failure of the store, as opposed to a rejection by the directory's rules.
#[derive(Debug, thiserror::Error)]
pub enum Fault {
    /// The driver or the server refused or failed.
    #[error("MongoDB: {0}")]
    Driver(Cause),
    /// A document cannot be read.
    #[error("the store holds a document that cannot be read")]
    Damaged(#[source] Box<dyn StdError + Send + Sync>),
    /// MongoDB did not answer in time.
    #[error("MongoDB did not answer in time")]
    TimedOut,
    /// MongoDB did not answer a commit in time: its outcome is unknown.
    #[error("MongoDB did not answer a commit in time")]
    CommitUnanswered,
    /// A commit failed with an error that does not prove that nothing was written.
    #[error("MongoDB did not confirm a commit: {0}")]
    Unconfirmed(Cause),
    /// The store has versions that this program does not support.
    #[error("the store was upgraded: {0}")]
    Outdated(String),
    /// The replica set of the URI has become a shard of a cluster.
    #[error(
        "the replica set has become a shard of a cluster: start the server with the address of the \
         routers"
    )]
    BecameShard,
    /// The limit of operations in flight is reached.
    #[error("too many operations wait for MongoDB")]
    TooManyInFlight,
    /// A task ended without a result.
    #[error("an operation stopped unexpectedly")]
    Panicked,
}

impl Fault {
    pub fn damaged(cause: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        Self::Damaged(cause.into())
    }

    /// The fault of a commit that was sent. Only the transient label proves that no attempt wrote
    /// anything: an error without it may follow a commit that succeeded.
    pub fn of_commit(error: &DriverError) -> Self {
        let cause = Cause::new(error);
        let is_concern =
            matches!(&*error.kind, ErrorKind::Write(WriteFailure::WriteConcernError(_)));
        let is_unknown = error.contains_label(UNKNOWN_TRANSACTION_COMMIT_RESULT);
        if error.contains_label(TRANSIENT_TRANSACTION_ERROR) && !is_unknown && !is_concern {
            Self::Driver(Cause { reaction: Reaction::Transient, ..cause })
        } else {
            Self::Unconfirmed(cause)
        }
    }

    /// The fault of a read-only transaction: nothing was written, whatever its commit did.
    pub fn of_read_only(self) -> Self {
        match self {
            Self::Unconfirmed(cause) if cause.reaction == Reaction::Forbidden => {
                Self::Driver(cause)
            }
            Self::Unconfirmed(cause) => {
                Self::Driver(Cause { reaction: Reaction::Transient, ..cause })
            }
            other => other,
        }
    }

    /// Whether the transaction can be repeated: it wrote nothing.
    pub const fn is_transient(&self) -> bool {
        matches!(self, Self::Driver(Cause { reaction: Reaction::Transient, .. }))
    }

    /// Whether an idempotent operation may succeed when it is repeated.
    pub const fn is_retryable(&self) -> bool {
        use Reaction::{Other, Transient, UnknownCommit};
        match self {
            Self::Driver(cause) | Self::Unconfirmed(cause) => {
                matches!(cause.reaction, Transient | UnknownCommit | Other)
            }
            Self::CommitUnanswered => true,
            _ => false,
        }
    }

    /// Whether a key exists already.
    pub const fn is_duplicate(&self) -> bool {
        matches!(self, Self::Driver(Cause { reaction: Reaction::Duplicate, .. }))
    }

    /// Whether MongoDB no longer has the snapshot, or supports none.
    pub const fn is_snapshot_gone(&self) -> bool {
        matches!(self, Self::Driver(Cause { reaction: Reaction::SnapshotGone, .. }))
    }

    /// Whether the store refused a document, or the epoch changed: both suggest an upgrade.
    pub const fn suggests_upgrade(&self) -> bool {
        matches!(self, Self::Driver(Cause { reaction: Reaction::Invalid, .. }))
    }

    /// Whether the outcome of a commit is unknown.
    pub const fn is_unknown_commit(&self) -> bool {
        matches!(self, Self::Unconfirmed(_) | Self::CommitUnanswered)
    }

    /// Whether MongoDB asks for the commit to be sent again until it is answered.
    pub const fn is_retryable_commit(&self) -> bool {
        matches!(self, Self::Unconfirmed(Cause { reaction: Reaction::UnknownCommit, .. }))
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
            // A retry does not help: an operator must act.
            Fault::Driver(Cause { reaction: Reaction::Forbidden, .. }) => {
                Self::Internal(fault.into())
            }
            Fault::CommitUnanswered | Fault::Unconfirmed(_) => Self::OutcomeUnknown(fault.into()),
            Fault::Driver(_)
            | Fault::TimedOut
            | Fault::TooManyInFlight
            | Fault::Panicked
            | Fault::BecameShard => Self::Unavailable(fault.into()),
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
    reaction: Reaction,
    text: String,
}

/// The reaction that an error calls for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reaction {
    Transient,
    Duplicate,
    Invalid,
    Forbidden,
    SnapshotGone,
    UnknownCommit,
    Other,
}

impl Cause {
    pub fn new(error: &DriverError) -> Self {
        Self { reaction: reaction(error), text: text(error) }
    }

    /// The reason why MongoDB refused to write a document.
    pub fn of_write(code: i32, is_transient: bool) -> Self {
        let reaction = match code {
            DUPLICATE_KEY => Reaction::Duplicate,
            REFUSED_BY_VALIDATOR => Reaction::Invalid,
            _ if is_transient => Reaction::Transient,
            _ => Reaction::Other,
        };
        Self { reaction, text: format!("a write failed with code {code}") }
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

fn reaction(error: &DriverError) -> Reaction {
    if has_code(&error.kind, DUPLICATE_KEY) {
        Reaction::Duplicate
    } else if has_code(&error.kind, REFUSED_BY_VALIDATOR) {
        Reaction::Invalid
    } else if matches!(&*error.kind, ErrorKind::Command(error) if error.code == NOT_ALLOWED) {
        Reaction::Forbidden
    } else if is_snapshot_gone(error) {
        Reaction::SnapshotGone
    } else if error.contains_label(TRANSIENT_TRANSACTION_ERROR) || is_interrupted(&error.kind) {
        Reaction::Transient
    } else if error.contains_label(UNKNOWN_TRANSACTION_COMMIT_RESULT) {
        Reaction::UnknownCommit
    } else {
        Reaction::Other
    }
}

/// Whether the snapshot of a session is gone. A transaction can be repeated on a later one.
fn is_snapshot_gone(error: &DriverError) -> bool {
    let is_gone = SNAPSHOT_GONE.iter().any(|code| has_code(&error.kind, *code))
        || matches!(&*error.kind, ErrorKind::IncompatibleServer { .. });
    is_gone && !error.contains_label(TRANSIENT_TRANSACTION_ERROR)
}

/// Whether the session of a statement was killed: other servers do so if they take this one for
/// dead.
fn is_interrupted(kind: &ErrorKind) -> bool {
    matches!(kind, ErrorKind::Command(error) if error.code == INTERRUPTED)
}

/// Whether a server refused with this code.
pub fn has_code(kind: &ErrorKind, code: i32) -> bool {
    match kind {
        ErrorKind::Command(error) => error.code == code,
        ErrorKind::Write(WriteFailure::WriteError(error)) => error.code == code,
        ErrorKind::InsertMany(error) => {
            error.write_errors.iter().flatten().any(|error| error.code == code)
        }
        _ => false,
    }
}

/// The reason why a store on MongoDB could not be opened. Nothing in it was changed.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The URI is malformed, or names no database.
    #[error("{0}: write mongodb://HOST[:PORT][,…]/DATABASE")]
    Uri(String),
    /// No server that accepts writes answers.
    #[error("cannot reach MongoDB: {0}")]
    Unreachable(String),
    /// The server rejects the credentials.
    #[error("MongoDB rejects the credentials: {0}; check user, password and authSource in the URI")]
    Refused(String),
    /// The user of the URI lacks a privilege.
    #[error("MongoDB refuses: {0}; docs/mongodb.md lists the privileges of each command")]
    Forbidden(String),
    /// A member of a sharded cluster that is not a router.
    #[error(
        "this mongod is part of a sharded cluster: give the address of its routers (mongos), which \
         would not find what is written to a shard directly"
    )]
    Shard,
    /// Servers use a store that is to be sharded, without its routers.
    #[error(
        "{count} running servers are not connected through the routers, and would not see what is \
         on other shards: stop them, wait half a minute, run this again, and start them with the \
         routers' addresses"
    )]
    Direct {
        /// The number of servers.
        count: usize,
    },
    /// A server without transactions.
    #[error(
        "this mongod is standalone and has no transactions: start it with --replSet NAME and \
         run rs.initiate(); a replica set of one member is enough"
    )]
    Standalone,
    /// The database has no store.
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
    /// The store has versions that this program does not support.
    #[error(
        "the store in database {database} has schema version {found} and rules version {rules}, \
         this program supports schema version {} and rules version {}: {}",
        supported.schema, supported.rules, supported.advice(*found, *rules)
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
    /// Other data uses the names of the store's collections.
    #[error(
        "database {database} holds other data ({what}): nothing was changed; use another \
         database"
    )]
    Foreign {
        /// The database.
        database: String,
        /// The obstacle.
        what: String,
    },
    /// A URI that should have led to the store that is open leads to another one.
    #[error(
        "database {database} is another store than the one that is open: name the same store, or \
         restart the server"
    )]
    OtherStore {
        /// The database.
        database: String,
    },
    /// A URI leads through the routers of a cluster, and that of the open store does not, or the
    /// other way round.
    #[error(
        "the URI leads through the routers of a sharded cluster and the one before did not, or the \
         other way round: restart the servers with it"
    )]
    OtherTopology,
    /// Some identities cannot be moved to later rules of normalisation.
    #[error(
        "{count} identities in database {database} cannot be moved to the new rules: `polynym \
         renormalize --dry-run` shows them; unlink or replace them, then run it again"
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
                Self::Uri("MongoDB rejects the name of the database".to_owned())
            }
            ErrorKind::ConnectionPoolCleared { .. } if text == REFUSED => Self::Refused(text),
            ErrorKind::ServerSelection { .. }
            | ErrorKind::ConnectionPoolCleared { .. }
            | ErrorKind::Io(_)
            | ErrorKind::DnsResolve { .. } => Self::Unreachable(text),
            // Safe to show: commands that open or set up a store carry no data of users.
            ErrorKind::Command(error) => Self::Failed(format!("{text}: {}", error.message)),
            _ => Self::Failed(text),
        }
    }
}
