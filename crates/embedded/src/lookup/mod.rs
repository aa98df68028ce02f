//! Look-ups and lists on a snapshot.

pub mod export;
pub mod scan;
pub mod snapshot;
