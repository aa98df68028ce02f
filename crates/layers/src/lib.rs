//! Look-ups in front of a store: coalescing, caching, and metrics of each operation.

pub mod coalesce;
pub mod lookup_cache;
pub mod measured;
