//! Polynym: a user directory where one user has many names.
#![forbid(unsafe_code)]
pub mod grpc;
pub mod http;
pub mod operators;
pub mod sample;
pub mod telemetry;
