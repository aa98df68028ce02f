//! The servers that other tests run on: they are what they should be, and nothing of them is left behind.

#![allow(clippy::unwrap_used, reason = "where a test cannot go on, it has failed")]

#[path = "harness/cluster.rs"]
mod cluster;
#[path = "harness/faults.rs"]
mod faults;
#[path = "harness/hashed.rs"]
mod hashed;
#[path = "harness/moving.rs"]
mod moving;
#[path = "support/mongo/mod.rs"]
mod servers;
