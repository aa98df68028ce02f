//! The time in which the store is degraded: when it began, when to retry, and what to log.

use std::time::{Duration, Instant};

use crate::error::DegradedReason;

/// The pause between two attempts to recover a degraded store.
pub const RETRY_DELAY: Duration = Duration::from_secs(1);

pub struct Degraded {
    since: Instant,
    next_attempt: Instant,
    /// The mutations that were rejected.
    rejected: u64,
    /// Those of them that the log has reported.
    logged: u64,
}

impl Degraded {
    /// Begins now. The first attempt to recover is at `next_attempt`.
    pub fn begin(next_attempt: Instant) -> Self {
        Self { since: Instant::now(), next_attempt, rejected: 0, logged: 0 }
    }

    pub fn log(reason: DegradedReason, cause: &str) {
        let reads = if reason.leaves_reads() { "reads go on" } else { "reads are rejected too" };
        tracing::error!(cause, reads, "{reason}: mutations are rejected");
    }

    /// The time until the next attempt.
    pub fn until_retry(&self) -> Duration {
        self.next_attempt.saturating_duration_since(Instant::now())
    }

    pub fn count_rejected(&mut self, mutations: usize) {
        self.rejected += mutations as u64;
    }

    /// Schedules the next attempt after a failed one.
    pub fn retry_later(&mut self, cause: &str) {
        self.next_attempt = Instant::now() + RETRY_DELAY;
        if self.rejected > self.logged {
            tracing::warn!(cause, refused = self.rejected, "the store still rejects mutations");
            self.logged = self.rejected;
        }
    }

    pub fn end(self) {
        let seconds = self.since.elapsed().as_secs();
        tracing::info!(seconds, refused = self.rejected, "the store accepts mutations again");
    }
}
