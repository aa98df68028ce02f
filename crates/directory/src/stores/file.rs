//! A store that is one file.

use std::fs::File;

use crate::error::Error;

/// A store that is one file.
pub trait StoreFile: Send + Sync + 'static {
    /// Copies the store to a file that opens as a store and is removed with its last handle. Blocks
    /// on the disk.
    ///
    /// # Errors
    /// [`Error::Unavailable`] if the store cannot be read or the copy cannot be written.
    fn copy(&self) -> Result<File, Error>;
}
