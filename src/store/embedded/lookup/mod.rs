//! Look-ups and lists on a snapshot.

pub mod caches;
pub mod export;
pub mod names;
pub mod scan;
pub mod snapshot;
