//! The jobs of the writer.

use redb::WriteTransaction;
use tokio::sync::{OwnedSemaphorePermit, oneshot};

use crate::error::{DegradedReason, Fault};
use crate::measure::Queued;
use polynym_directory::{Error, Mutation, Outcome};

/// The most bytes of mutations that may wait for the writer.
pub const QUEUE_BYTES: usize = 64 << 20;
/// The least bytes that a mutation counts, which bounds the number of mutations too.
pub const MIN_BYTES: usize = 4 << 10;

/// A job of the writer.
pub enum Job {
    /// Apply mutations and answer.
    Mutate(Vec<Waiting>),
    /// Report whether mutations are accepted.
    Check(oneshot::Sender<Result<(), Fault>>),
    /// Write the last time seen.
    KeepTime,
    /// Apply a write other than a mutation, and answer.
    SideWrite(SideWrite, oneshot::Sender<Result<(), Error>>),
    /// Recover from a failed read, whose snapshot is no longer published.
    Unreadable(DegradedReason, String),
    /// Panic.
    #[cfg(test)]
    Panic,
}

/// A write other than a mutation, such as one of counters.
pub type SideWrite = Box<dyn FnOnce(&WriteTransaction) -> Result<(), Fault> + Send>;

/// A mutation that waits for the writer.
pub struct Waiting {
    pub mutation: Mutation,
    pub answer: oneshot::Sender<Answer>,
    /// Its part of the queue, until it is answered.
    pub permit: OwnedSemaphorePermit,
    _counted: Queued,
}

impl Waiting {
    pub fn new(
        mutation: Mutation,
        answer: oneshot::Sender<Answer>,
        permit: OwnedSemaphorePermit,
    ) -> Self {
        Self { mutation, answer, permit, _counted: Queued::new() }
    }
}

pub type Answer = Result<Outcome, Error>;
