//! A time in which the store takes no mutations: when it began, when to try again, and what the log
//! tells of it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::Embedded;
use super::error::{DegradedReason, Fault, chain};
use super::read::Snapshot;
use super::write::Job;

/// The pause between two attempts to recover a failed store.
pub const RETRY: Duration = Duration::from_secs(1);

pub struct Degraded {
    since: Instant,
    next: Instant,
    /// The mutations that were refused, and how many of them the log has reported.
    refused: u64,
    logged: u64,
}

impl Degraded {
    /// Begins now; the first try is at `next`.
    pub fn begin(next: Instant) -> Self {
        Self { since: Instant::now(), next, refused: 0, logged: 0 }
    }

    pub fn log(trouble: DegradedReason, cause: &str) {
        let reads = if trouble.leaves_reads() { "reads go on" } else { "reads are refused too" };
        tracing::error!(cause, reads, "{trouble}: mutations are refused");
    }

    /// The time until the next attempt.
    pub fn wait(&self) -> Duration {
        self.next.saturating_duration_since(Instant::now())
    }

    pub fn refuse(&mut self, mutations: usize) {
        self.refused += mutations as u64;
    }

    /// A try has failed.
    pub fn go_on(&mut self, cause: &str) {
        self.next = Instant::now() + RETRY;
        if self.refused > self.logged {
            tracing::warn!(cause, refused = self.refused, "the store still takes no mutations");
            self.logged = self.refused;
        }
    }

    pub fn end(self) {
        let seconds = self.since.elapsed().as_secs();
        tracing::info!(seconds, refused = self.refused, "the store takes mutations again");
    }
}

impl Embedded {
    /// Has no more reads go to a snapshot, and the writer see to it. Of many reads that failed one
    /// does so.
    pub(super) fn give_up(&self, snapshot: &Arc<Snapshot>, trouble: DegradedReason, fault: &Fault) {
        let published = self.published.compare_and_swap(snapshot, None);
        if published.as_ref().is_some_and(|published| Arc::ptr_eq(published, snapshot)) {
            let _ = self.send(Job::Unreadable(trouble, chain(fault)));
        }
    }

    /// Why there is nothing to read from.
    pub(super) fn closed(&self) -> Fault {
        self.trouble.load().as_deref().map_or(Fault::Closed, |trouble| Fault::Refused(*trouble))
    }
}
