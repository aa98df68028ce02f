//! The connection to MongoDB: options, errors, and what repeats or outlives a call.

pub mod backoff;
pub mod concern;
pub mod connect;
pub mod current;
pub mod detach_on_drop;
pub mod documents;
pub mod driver_text;
pub mod error;
pub mod options;
pub mod pool;
pub mod reachability;
pub mod supported;
