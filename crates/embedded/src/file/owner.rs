//! The owners of files that the superuser creates: the user of a service could not read its own.

use std::fs;
use std::io;
use std::os::unix::fs::{MetadataExt, chown};
use std::path::Path;

/// Gives `path` to the owner of `other`, if this process is the superuser's.
pub fn give_to_owner_of(other: &Path, path: &Path) -> io::Result<()> {
    if !rustix::process::geteuid().is_root() {
        return Ok(());
    }
    let owner = fs::metadata(other)?;
    chown(path, Some(owner.uid()), Some(owner.gid()))
}
