//! Settings of a coalescing store.

use std::time::Duration;

/// How a [`Coalesced`](super::Coalesced) store works.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// The most calls under way at once of look-ups that could share one; 0 counts as 1. Calls that
    /// hang do not count.
    pub calls: usize,
    /// Keys in one call. A look-up of more has a call to itself.
    pub keys: usize,
    /// How long a call may be under way before it counts as one that hangs, so that others need not
    /// wait for it.
    pub stall_timeout: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self { calls: 8, keys: 1_024, stall_timeout: Duration::from_millis(100) }
    }
}
