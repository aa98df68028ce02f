//! What a connection may use and has in use: bytes, calls and streams, with its share of what all
//! connections have.

mod activity;
mod byte_budget;
pub mod state;
pub mod streams;
