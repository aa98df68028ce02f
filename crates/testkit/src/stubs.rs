//! The client stubs of the services, generated from `proto/`: calls without retries, so that a test
//! sees each of them.

#![allow(
    missing_docs,
    unused_qualifications,
    clippy::all,
    rustdoc::all,
    clippy::allow_attributes_without_reason,
    clippy::too_many_lines,
    reason = "generated code"
)]

tonic::include_proto!("polynym.v1");
