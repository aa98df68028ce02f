//! The limits of what a verification does at once.

/// The rows of a walk that are checked together.
pub const BATCH_ROWS: usize = 500;
/// The most batches that are checked at once.
pub const MAX_CONCURRENT_BATCHES: usize = 4;
/// The most concurrent checks of single records.
pub const MAX_CONCURRENT_CHECKS: usize = 16;
