//! Polynym: a user directory where one user has many names.
#![forbid(unsafe_code)]
pub mod arguments;
pub mod grpc;
pub mod http;
pub mod operators;
pub mod sample;
pub mod settings;
pub mod telemetry;
