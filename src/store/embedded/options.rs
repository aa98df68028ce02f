//! The settings of the embedded store.

use crate::store::owner_hints::HINT_BYTES;

/// The settings of an [`Embedded`](super::Embedded) store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Memory for pages of the database, in bytes. It is taken as it is needed.
    pub cache_bytes: usize,
    /// Memory for guesses of keys' owners, in bytes. It is taken as it is needed.
    pub hint_bytes: usize,
    /// Mutations that may share one sync; 1 syncs each alone.
    pub group_limit: usize,
    /// Whether a folder that is empty or not there becomes an empty store.
    pub create: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self { cache_bytes: 1 << 30, hint_bytes: HINT_BYTES, group_limit: 1_024, create: true }
    }
}
