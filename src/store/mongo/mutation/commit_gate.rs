//! The gate that a mutation passes before it commits. A caller that times out closes it, and then
//! knows whether the mutation can still happen.

use std::sync::atomic::AtomicU8;
use std::sync::atomic::Ordering::SeqCst;

use tokio::time::Instant;

const OPEN: u8 = 0;
const PASSED: u8 = 1;
const CLOSED: u8 = 2;

/// Lets a commit pass until the deadline, unless the caller closes it.
pub struct CommitGate {
    state: AtomicU8,
    deadline: Instant,
}

impl CommitGate {
    /// A gate that is open until `deadline`.
    pub const fn new(deadline: Instant) -> Self {
        Self { state: AtomicU8::new(OPEN), deadline }
    }

    /// The time until which it is open.
    pub const fn deadline(&self) -> Instant {
        self.deadline
    }

    /// Passes unless it is closed: the commit is sent next.
    pub fn pass(&self) -> bool {
        !self.is_closed() && self.state.compare_exchange(OPEN, PASSED, SeqCst, SeqCst).is_ok()
    }

    /// Reopens it after a commit that wrote nothing.
    pub fn reopen(&self) {
        self.state.store(OPEN, SeqCst);
    }

    /// Closes it for good, unless a commit has passed: then the outcome is not known yet.
    pub fn close(&self) -> bool {
        self.state.compare_exchange(OPEN, CLOSED, SeqCst, SeqCst).is_ok()
    }

    pub fn is_closed(&self) -> bool {
        self.state.load(SeqCst) == CLOSED || Instant::now() >= self.deadline()
    }
}
