//! The owners of files that the superuser creates: the user of a service could not read its own.
//! That user owns the folder and may rename what is in it, so names are not trusted: a change of an
//! owner or of a mode concerns an open file.

use std::fs::{File, Metadata};
use std::io;
use std::os::unix::fs::{MetadataExt, fchown};

/// Gives an open file or folder to the owner of another one, if this process is the superuser's.
pub fn give_to_owner_of(other: &Metadata, file: &File) -> io::Result<()> {
    if !rustix::process::geteuid().is_root() {
        return Ok(());
    }
    fchown(file, Some(other.uid()), Some(other.gid()))
}
