//! Creates a store from a backup.

use std::fs::{self, File, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{self, Path};
use std::sync::Arc;

use rustix::fs::{AtFlags, Mode, OFlags, unlinkat};
use tempfile::{TempDir, TempPath};

use crate::error::OpenError;
use crate::file::backup_file::BackupFile;
use crate::file::lock::{FileId, Locker};
use crate::file::opener::{FILE, Opener, sync};
use crate::file::owner::give_to_owner_of;
use crate::setup::integrity::{CACHE_BYTES, IntegritySession};

/// The prefix of a folder that is to become a store.
const DRAFTS: &str = ".polynym-restore-";

/// A store that was created from a backup.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Restored {
    /// Whether the backup had a checksum. Without one, its pages alone were checked.
    pub had_checksum: bool,
    /// The users whose records cannot be read. They were damaged before the backup.
    pub unreadable_users: u64,
}

/// Creates a store in `folder`, which must be empty or not exist, from a backup. The backup stays.
/// The store belongs to the owner of the folder, or of the folder in which it is created.
///
/// # Errors
/// [`OpenError`] where the folder is not empty, or the backup is damaged or not of a store. No
/// store is created.
pub fn restore(backup: &Path, folder: &Path) -> Result<Restored, OpenError> {
    let source = BackupFile::open(backup)?;
    let fault = |error| OpenError::io(folder, error);
    let target = path::absolute(folder).map_err(fault)?;
    let existing = target.ancestors().find(|above| above.exists()).unwrap_or(Path::new("/"));
    remove_drafts(existing);
    check_empty(folder).map_err(fault)?;

    // A draft on the same disk. Nothing else is written until it has proved to be a store.
    let mut drafts = tempfile::Builder::new();
    let private = drafts.prefix(DRAFTS).permissions(Permissions::from_mode(0o700));
    let draft = private.tempdir_in(existing).map_err(fault)?;
    let opened = Arc::new(open_folder(draft.path()).map_err(fault)?);
    // Until the end, no other run removes it. Some file systems cannot lock folders.
    let _ = opened.try_lock();
    let file = source.extract(&draft.path().join(FILE))?;
    let locker = Locker::holding(&opened).map_err(fault)?;
    let unreadable_users = check(draft.path(), locker).map_err(|error| error.of_backup(backup))?;

    let give = || {
        let owner = fs::metadata(existing)?;
        give_to_owner_of(&owner, &file)?;
        // From here on that user can rename what is in it.
        give_to_owner_of(&owner, &opened)?;
        FileId::of_open(&opened)?.at(draft.path())?;
        FileId::of_open(&file)?.at(&draft.path().join(FILE))
    };
    give().map_err(fault)?;
    move_to(&target, draft, existing).map_err(fault)?;
    Ok(Restored { had_checksum: source.has_checksum(), unreadable_users })
}

/// Opens a folder, not what a link leads to.
fn open_folder(folder: &Path) -> io::Result<File> {
    let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(rustix::fs::open(folder, flags, Mode::empty())?.into())
}

/// Removes what runs that were killed have left: folders with a prefix of drafts that nobody has
/// locked.
fn remove_drafts(existing: &Path) {
    for entry in existing.read_dir().into_iter().flatten().flatten() {
        if entry.file_name().as_encoded_bytes().starts_with(DRAFTS.as_bytes()) {
            remove_draft(&entry.path());
        }
    }
}

/// Removes a folder with the file of a store at most, unless another process has locked it. One
/// that cannot be removed stays: it hinders nobody.
fn remove_draft(path: &Path) {
    let Ok(folder) = open_folder(path) else { return };
    if folder.try_lock().is_ok() {
        let _ = unlinkat(&folder, FILE, AtFlags::empty());
        let _ = fs::remove_dir(path);
    }
}

fn check_empty(folder: &Path) -> io::Result<()> {
    let Ok(mut entries) = folder.read_dir() else { return Ok(()) };
    match entries.next().transpose()? {
        None => Ok(()),
        Some(entry) => {
            let name = entry.file_name();
            let reason = format!("the folder is not empty, it has {}", name.display());
            Err(io::Error::other(format!("{reason}: move its content away, or name another one")))
        }
    }
}

/// Checks all pages of a store and the records of its users. Returns the number of those that
/// cannot be read.
fn check(folder: &Path, locker: Locker) -> Result<u64, OpenError> {
    let opener = Opener::new(folder, CACHE_BYTES).locked_by(locker);
    let (session, is_sound) = IntegritySession::checked_by(opener)?;
    let damaged = |reason: &str| OpenError::damaged(folder, reason);
    if !is_sound {
        return Err(damaged("its pages do not match their checksums"));
    }
    session.unreadable_users().map_err(|_| damaged("its users cannot be read"))
}

/// Moves a draft to the folder, durably. `existing` is the folder, or the nearest one above it.
fn move_to(folder: &Path, draft: TempDir, existing: &Path) -> io::Result<()> {
    if existing == folder {
        // The folder may be a mount point, and its owner need not be able to write above it.
        let file = TempPath::try_from_path(draft.path().join(FILE))?;
        file.persist_noclobber(folder.join(FILE)).map_err(|error| error.error)?;
        draft.close()?;
        return sync(folder);
    }
    let parent = folder.parent().unwrap_or(existing);
    fs::create_dir_all(parent)?;
    File::open(draft.path())?.sync_all()?;
    fs::rename(draft.path(), folder)?;
    // The folder is no longer temporary.
    let _ = draft.keep();
    parent.ancestors().take_while(|above| above.starts_with(existing)).try_for_each(sync)
}
