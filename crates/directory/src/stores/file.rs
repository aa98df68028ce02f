//! A store that is one file.

use std::fs::File;
use std::sync::atomic::AtomicBool;

use crate::error::Error;

/// A store that is one file.
pub trait StoreFile: Send + Sync + 'static {
    /// Copies the store to the file of a backup, which is removed with its last handle. Blocks on
    /// the disk. Ends soon once `is_cancelled` is set.
    ///
    /// # Errors
    /// [`Error::DiskFull`] if the copy would leave too little space;
    /// [`Error::Unavailable`] if the store cannot be read, the copy cannot be written, or it was
    /// cancelled.
    fn copy(&self, is_cancelled: &AtomicBool) -> Result<File, Error>;
}
