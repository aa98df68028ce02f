//! Polynym: a user directory where one user has many names.
#![forbid(unsafe_code)]
pub mod directory;
pub mod grpc;
pub mod identifier;
pub mod locality;
pub mod proto;
pub mod store;
