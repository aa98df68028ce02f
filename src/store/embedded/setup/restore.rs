//! A store out of a backup.

use std::fs::{self, File};
use std::io;
use std::path::Path;

use super::error::OpenError;
use super::{Embedded, Options};

const FILE: &str = "directory.redb";

/// Makes a store in `folder`, which is empty or not there, of a backup. The backup stays.
///
/// # Errors
/// [`OpenError`] where the folder is not empty, or the backup does not open as a store.
pub fn restore(backup: &Path, folder: &Path) -> Result<(), OpenError> {
    let fault = |error| OpenError::io(folder, error);
    let mut source = File::open(backup).map_err(|error| OpenError::io(backup, error))?;
    let is_there = folder.read_dir().is_ok_and(|mut entries| entries.next().is_some());
    if is_there {
        return Err(fault(io::Error::other("the folder is not empty")));
    }

    // Opens it in a folder beside, which takes the place of the wanted one once it is whole.
    let parent = std::path::absolute(folder).map_err(fault)?;
    let parent = parent.parent().unwrap_or(Path::new("/"));
    fs::create_dir_all(parent).map_err(fault)?;
    let draft = tempfile::Builder::new().prefix(".restore-").tempdir_in(parent).map_err(fault)?;
    let mut copy = File::create_new(draft.path().join(FILE)).map_err(fault)?;
    io::copy(&mut source, &mut copy).map_err(fault)?;
    copy.sync_all().map_err(fault)?;
    drop(copy);
    drop(Embedded::open(draft.path(), Options { create: false, ..Options::default() })?);
    File::open(draft.path()).and_then(|folder| folder.sync_all()).map_err(fault)?;

    fs::rename(draft.path(), folder).map_err(fault)?;
    // It is not a temporary folder any more.
    let _ = draft.keep();
    File::open(parent).and_then(|folder| folder.sync_all()).map_err(fault)
}
