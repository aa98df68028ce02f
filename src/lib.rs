//! Polynym: a user directory where one user has many names.
#![forbid(unsafe_code)]
pub mod arguments;
pub mod grpc;
pub mod http;
pub mod operators;
pub mod readiness;
pub mod sample;
pub mod settings;
pub mod telemetry;

/// The maximum message of a stream to AdminService, in bytes: a user with the undo record of its
/// merge.
const MAX_STREAM_BYTES: usize = 1 << 20;
/// The target of the log of reads.
const READ_LOG: &str = "polynym::reads";
