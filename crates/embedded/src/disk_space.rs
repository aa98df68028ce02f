//! The free space of the store's disk. Copies of the store and notices leave some of it to other
//! mutations: users can still be changed when the disk is nearly full.

use std::path::{Path, PathBuf};

use crate::error::Fault;
use crate::measure::set_disk_bytes;

/// The most bytes that are reserved.
const MAX_RESERVED_BYTES: u64 = 8 << 30;

/// The disk of a store.
#[derive(Clone, Debug)]
pub struct DiskSpace {
    folder: PathBuf,
    reserved_bytes: Option<u64>,
}

impl DiskSpace {
    /// The disk of a folder. Without `reserved_bytes`, a tenth of the disk is reserved.
    pub fn new(folder: &Path, reserved_bytes: Option<u64>) -> Self {
        Self { folder: folder.to_owned(), reserved_bytes }
    }

    /// Checks that the disk has space for `bytes` besides the reserved ones.
    ///
    /// # Errors
    /// [`Fault::DiskFull`].
    pub fn check(&self, bytes: u64) -> Result<(), Fault> {
        // A file system that does not say is not known to be full.
        let Some((size, free)) = size_and_free(&self.folder) else { return Ok(()) };
        let reserved = self.reserved_bytes.unwrap_or_else(|| reserved_of(size));
        if free >= bytes.saturating_add(reserved) { Ok(()) } else { Err(Fault::DiskFull) }
    }
}

/// Reports the bytes of the disk of a folder.
pub fn measure(folder: &Path) {
    if let Some((size, free)) = size_and_free(folder) {
        set_disk_bytes(size, free);
    }
}

/// The bytes of the disk of a folder, and those of them that are free.
fn size_and_free(folder: &Path) -> Option<(u64, u64)> {
    let disk = rustix::fs::statvfs(folder).ok()?;
    let bytes = |blocks: u64| blocks.saturating_mul(disk.f_frsize);
    Some((bytes(disk.f_blocks), bytes(disk.f_bavail)))
}

/// The reserved bytes of a disk of this size.
fn reserved_of(size: u64) -> u64 {
    (size / 10).min(MAX_RESERVED_BYTES)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tenth_of_the_disk_is_reserved() {
        assert_eq!(reserved_of(1_000), 100);
        assert_eq!(reserved_of(1 << 50), MAX_RESERVED_BYTES);
    }

    #[test]
    fn a_disk_has_space_up_to_its_reserve() {
        let folder = tempfile::tempdir().unwrap();
        let check = |reserved, bytes| DiskSpace::new(folder.path(), Some(reserved)).check(bytes);
        assert!(check(0, 1).is_ok());
        assert!(matches!(check(1 << 60, 1), Err(Fault::DiskFull)));
        assert!(matches!(check(0, u64::MAX), Err(Fault::DiskFull)));
    }
}
