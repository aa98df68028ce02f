//! Look-ups in front of a store: coalescing, caching, a path for each runtime, and metrics of each
//! operation.

pub mod coalesce;
pub mod latency;
pub mod lookup_cache;
pub mod measured;
pub mod per_runtime;
