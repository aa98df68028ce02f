//! The messages of the conformance suite.

#![allow(
    dead_code,
    missing_docs,
    unused_qualifications,
    clippy::all,
    rustdoc::all,
    clippy::allow_attributes_without_reason,
    clippy::too_many_lines,
    reason = "generated code"
)]

include!(concat!(env!("OUT_DIR"), "/connectrpc.conformance.v1.rs"));

/// The descriptors of the service.
pub const DESCRIPTORS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/descriptors.bin"));
