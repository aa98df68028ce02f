//! What a mutation passes before it commits, so that a caller who waits no longer knows whether it may still happen.

use std::sync::atomic::{AtomicU8, Ordering::SeqCst};

const OPEN: u8 = 0;
const PASSED: u8 = 1;
const CLOSED: u8 = 2;

#[derive(Default)]
pub struct Gate(AtomicU8);

impl Gate {
    /// Passes, where it is not closed: a commit is sent next.
    pub fn pass(&self) -> bool {
        self.0.compare_exchange(OPEN, PASSED, SeqCst, SeqCst).is_ok()
    }

    /// Comes back: the commit came to nothing.
    pub fn back(&self) {
        self.0.store(OPEN, SeqCst);
    }

    /// Closes it for good, unless a commit has passed: then nobody can tell yet.
    pub fn close(&self) -> bool {
        self.0.compare_exchange(OPEN, CLOSED, SeqCst, SeqCst).is_ok()
    }

    pub fn is_closed(&self) -> bool {
        self.0.load(SeqCst) == CLOSED
    }
}
