//! The bytes, calls and streams of a connection: its limits, its use, and its share of those of all
//! connections.

mod activity;
mod byte_budget;
pub mod state;
pub mod streams;
