//! The error of decoding stored bytes.

/// The bytes are not an encoded user.
#[derive(Debug, thiserror::Error)]
#[error("not an encoded user: {0}")]
pub struct WireError(pub(crate) String);
