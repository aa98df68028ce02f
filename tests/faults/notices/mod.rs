//! Notices to users while servers and primaries are killed.

mod delivery;
mod merges;
pub mod servers;
