//! Settings of a coalescing store.

use std::time::Duration;

/// The settings of a [`Coalesced`](super::Coalesced) store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// The most concurrent calls of look-ups that could share one. 0 counts as 1. Stalled calls do
    /// not count.
    pub calls: usize,
    /// The most keys of one call. A look-up of more keys has a call to itself.
    pub keys: usize,
    /// The least time after which a call counts as stalled, so that others need not wait for it.
    pub stall_timeout: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self { calls: 8, keys: 1_024, stall_timeout: Duration::from_millis(100) }
    }
}
