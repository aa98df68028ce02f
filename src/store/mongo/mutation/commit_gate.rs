//! The gate that a mutation passes before it commits. A caller whose wait has ended shuts it, and
//! then knows whether the mutation may still happen.

use std::sync::atomic::AtomicU8;
use std::sync::atomic::Ordering::SeqCst;

use tokio::time::Instant;

const OPEN: u8 = 0;
const PASSED: u8 = 1;
const CLOSED: u8 = 2;

pub struct CommitGate {
    stage: AtomicU8,
    deadline: Instant,
}

impl CommitGate {
    /// Open until `deadline`.
    pub const fn new(deadline: Instant) -> Self {
        Self { stage: AtomicU8::new(OPEN), deadline }
    }

    /// Until when it is open.
    pub const fn deadline(&self) -> Instant {
        self.deadline
    }

    /// Passes, where it is not closed: a commit is sent next.
    pub fn pass(&self) -> bool {
        !self.is_closed() && self.stage.compare_exchange(OPEN, PASSED, SeqCst, SeqCst).is_ok()
    }

    /// Comes back: the commit came to nothing.
    pub fn back(&self) {
        self.stage.store(OPEN, SeqCst);
    }

    /// Closes it for good, unless a commit has passed: then the outcome is not known yet.
    pub fn close(&self) -> bool {
        self.stage.compare_exchange(OPEN, CLOSED, SeqCst, SeqCst).is_ok()
    }

    pub fn is_closed(&self) -> bool {
        self.stage.load(SeqCst) == CLOSED || Instant::now() >= self.deadline()
    }
}
