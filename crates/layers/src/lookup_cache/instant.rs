//! The times of the cache.

/// A time of the monotonic clock: nanoseconds since the cache was created, plus 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct CacheInstant(pub u64);
