//! The settings of the store on MongoDB.

use std::time::Duration;

use crate::store::owner_hints::HINT_BYTES;

/// The settings of a [`Mongo`](crate::store::mongo::Mongo) store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// The time limit of one operation, retries included.
    pub timeout: Duration,
    /// Memory for owner hints, in bytes. It is allocated as needed.
    pub hint_bytes: usize,
    /// Memory for the cache of look-ups, in bytes; 0 for none.
    pub cache_bytes: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self { timeout: Duration::from_secs(10), hint_bytes: HINT_BYTES, cache_bytes: 0 }
    }
}
