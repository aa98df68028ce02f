//! Look-ups in front of a store: coalescing, caching, and a path for each runtime.

pub mod coalesce;
pub mod latency;
pub mod lookup_cache;
pub mod per_runtime;
