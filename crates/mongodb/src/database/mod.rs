//! The open store: its collections, transactions on them, and operations as tasks.

pub mod away;
pub mod collections;
pub mod commit;
pub mod connected;
pub mod freshness;
pub mod lateness;
pub mod operations;
pub mod ordered;
pub mod shares;
pub mod snapshot_read;
pub mod times;
pub mod transaction;
pub mod updates;
pub mod writes;
