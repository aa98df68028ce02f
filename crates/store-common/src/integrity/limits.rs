//! The limits of what a verification does at once.

/// The rows of a walk that are checked together.
pub const BATCH_ROWS: usize = 500;
/// The most batches that are checked at once.
pub const MAX_CONCURRENT_BATCHES: usize = 4;
/// The events of users after which no more histories are read together. A history is read whole.
pub const PART_EVENTS: u64 = 20_000;
/// The most concurrent checks of single records.
pub const MAX_CONCURRENT_CHECKS: usize = 16;
