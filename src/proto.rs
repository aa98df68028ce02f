//! The API's types and services, generated from `proto/`. Nothing is written by hand here.

#![allow(
    missing_docs,
    unused_qualifications,
    clippy::all,
    clippy::allow_attributes_without_reason,
    clippy::too_many_lines,
    reason = "generated code"
)]

/// The package `polynym.v1`: messages and clients.
pub mod v1 {
    tonic::include_proto!("polynym.v1");
}

/// The services of `polynym.v1`, for the server.
pub(crate) mod services {
    include!(concat!(env!("OUT_DIR"), "/services/polynym.v1.rs"));
}

/// The descriptors of every file of `proto/` and of what they import, for reflection and for JSON.
pub const DESCRIPTORS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/descriptors.bin"));
