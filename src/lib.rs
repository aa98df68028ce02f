//! Polynym: a user directory where one user has many names.
#![forbid(unsafe_code)]
pub mod cli;
pub mod config;
pub mod directory;
pub mod grpc;
pub mod identifier;
pub mod locality;
pub mod proto;
pub mod sample;
pub mod store;
pub mod telemetry;
pub mod transport;
mod wire;
