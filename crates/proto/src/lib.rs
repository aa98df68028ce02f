//! The messages of the API and their descriptors, generated from `proto/` by prost alone, the kinds
//! of their events and the text of their times. The methods are in `src/grpc/methods.rs` and in the
//! crate `polynym-client`.

#![allow(
    missing_docs,
    unused_qualifications,
    clippy::all,
    rustdoc::all,
    clippy::allow_attributes_without_reason,
    clippy::too_many_lines,
    reason = "generated code"
)]

pub use polynym::v1;

pub mod event;
pub mod time;

/// The packages under `google`.
pub mod google {
    /// The package `google.rpc`.
    pub mod rpc {
        include!(concat!(env!("OUT_DIR"), "/google.rpc.rs"));
    }
}

/// The packages under `polynym`.
pub mod polynym {
    /// The package `polynym.v1`.
    pub mod v1 {
        include!(concat!(env!("OUT_DIR"), "/polynym.v1.rs"));
    }
}

/// The descriptors of all files in `proto/` and their imports, for reflection and JSON.
pub const DESCRIPTORS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/descriptors.bin"));
