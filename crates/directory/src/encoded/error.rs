//! Why stored bytes cannot be read.

/// Why an encoded user cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("not an encoded user: {0}")]
pub struct WireError(pub(crate) String);
