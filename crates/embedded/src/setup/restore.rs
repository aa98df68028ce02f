//! Creates a store from a backup.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;

use crate::error::OpenError;
use crate::file::opener::FILE;
use crate::options::Options;
use crate::store::Embedded;

/// Creates a store in `folder`, which must be empty or not exist, from a backup. The backup stays.
/// Only the user of this process can read the store.
///
/// # Errors
/// [`OpenError`] where the folder is not empty, or the backup does not open as a store.
pub fn restore(backup: &Path, folder: &Path) -> Result<(), OpenError> {
    let fault = |error| OpenError::io(folder, error);
    let mut source = File::open(backup).map_err(|error| OpenError::io(backup, error))?;
    let is_empty = folder.read_dir().map_or(true, |mut entries| entries.next().is_none());
    if !is_empty {
        return Err(fault(io::Error::other("the folder is not empty")));
    }

    // Opens the copy in a folder beside, which is renamed once it has proved to be a store.
    let parent = std::path::absolute(folder).map_err(fault)?;
    let parent = parent.parent().unwrap_or(Path::new("/"));
    fs::create_dir_all(parent).map_err(fault)?;
    let mut drafts = tempfile::Builder::new();
    let private = drafts.prefix(".restore-").permissions(Permissions::from_mode(0o700));
    let draft = private.tempdir_in(parent).map_err(fault)?;
    let mut new_file = OpenOptions::new();
    let private = new_file.write(true).create_new(true).mode(0o600);
    let mut copy = private.open(draft.path().join(FILE)).map_err(fault)?;
    io::copy(&mut source, &mut copy).map_err(fault)?;
    copy.sync_all().map_err(fault)?;
    drop(copy);
    drop(Embedded::open(draft.path(), Options { create: false, ..Options::default() })?);
    File::open(draft.path()).and_then(|folder| folder.sync_all()).map_err(fault)?;

    fs::rename(draft.path(), folder).map_err(fault)?;
    // The folder is no longer temporary.
    let _ = draft.keep();
    File::open(parent).and_then(|folder| folder.sync_all()).map_err(fault)
}
