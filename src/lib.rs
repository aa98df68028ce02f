//! Polynym: a user directory where one user has many names.
#![forbid(unsafe_code)]
pub mod access;
pub mod cli;
pub mod client;
pub mod config;
pub mod directory;
pub mod grpc;
pub mod identifier;
pub mod operators;
pub mod proto;
mod reload;
pub mod sample;
pub mod store;
pub mod telemetry;
pub mod transport;

// The power-loss tests of the embedded store run on a simulated disk, which only this crate's own
// tests can put in place, and compare with the reference model: the model is compiled with them.
#[cfg(test)]
#[path = "../crates/conformance/src/lib.rs"]
#[allow(dead_code, reason = "the contract itself runs in the integration tests")]
mod conformance;
#[cfg(test)]
extern crate self as polynym;
