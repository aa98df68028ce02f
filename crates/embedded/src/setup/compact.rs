//! `store compact`: copies the tables of a store that no server has open into a new file without
//! free pages, which then takes the place of the old one. Until then the old file is not written.

use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use redb::{Database, ReadableDatabase};
use tempfile::NamedTempFile;

use crate::error::{Fault, OpenError, chain};
use crate::file::lock::{FileId, Locker};
use crate::file::opener::{DRAFT_PREFIX, FILE, sync};
use crate::file::owner::give_to_owner_of;
use crate::setup::copy::TableCopy;
use crate::setup::integrity::{CACHE_BYTES, IntegritySession};
use crate::version::Supported;

/// The size of a store's file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileSize {
    /// Its length.
    pub bytes: u64,
    /// The space that it takes on the disk, which is smaller if parts of it were never written.
    pub on_disk: u64,
}

impl FileSize {
    /// The size in units of 512 bytes is the same on every system.
    fn of(file: &Metadata) -> Self {
        Self { bytes: file.len(), on_disk: file.blocks() * 512 }
    }
}

/// The sizes of a file before and after it was compacted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Compacted {
    /// Before.
    pub before: FileSize,
    /// After.
    pub after: FileSize,
}

/// Compacts the file of the store in `folder`, which must exist and not be in use. Reports each
/// step to `progress`. Needs as much free space on the disk as the new file takes. Blocks.
///
/// # Errors
/// [`OpenError`]. The store is then as it was.
pub fn compact(folder: &Path, progress: &dyn Fn(&str)) -> Result<Compacted, OpenError> {
    let fault = |error| OpenError::io(folder, error);
    progress("checking the pages of the file");
    // Until it is dropped, no server opens the folder. A page with another checksum is not copied.
    let session = IntegritySession::checked(folder, Supported::PRESENT)?.0;
    // The file may be a link to another disk.
    let file = folder.join(FILE).canonicalize().map_err(fault)?;
    let beside = file.parent().unwrap_or(folder);
    // Another run, whose store links into the same folder, has its draft there.
    let mut locker = Locker::default();
    if !is_same(folder, beside).map_err(fault)? && !locker.lock_folder(beside).map_err(fault)? {
        return Err(OpenError::InUse { path: beside.to_owned() });
    }
    let opened = session.file_id();
    let before = FileSize::of(&opened.at(&file).map_err(fault)?);
    remove_drafts(beside).map_err(fault)?;

    let draft = tempfile::Builder::new().prefix(DRAFT_PREFIX).tempfile_in(beside).map_err(fault)?;
    progress("copying the content to a new file");
    let failed = |error: Fault| fault(io::Error::other(chain(&error)));
    let attempt = AssertUnwindSafe(|| copy(session.database(), &draft));
    catch_unwind(attempt).unwrap_or(Err(Fault::Panicked)).map_err(failed)?;

    let after = replace(draft, &file, opened).map_err(fault)?;
    sync(beside).map_err(fault)?;
    Ok(Compacted { before, after })
}

/// Whether two names are of one folder.
fn is_same(folder: &Path, other: &Path) -> io::Result<bool> {
    Ok(FileId::of(&fs::metadata(folder)?) == FileId::of(&fs::metadata(other)?))
}

/// Removes what runs that were killed have left.
fn remove_drafts(folder: &Path) -> io::Result<()> {
    for entry in folder.read_dir()? {
        let entry = entry?;
        if entry.file_name().as_encoded_bytes().starts_with(DRAFT_PREFIX.as_bytes()) {
            fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

/// Copies a store to a new file, without free pages, and checks it.
fn copy(store: &Database, draft: &NamedTempFile) -> Result<(), Fault> {
    let file = draft.as_file().try_clone().map_err(redb::Error::Io)?;
    let mut to = Database::builder().set_cache_size(CACHE_BYTES).create_file(file)?;
    TableCopy::new(&store.begin_read()?, &to, |_| Ok(())).run()?;
    to.compact()?;
    if to.check_integrity()? { Ok(()) } else { Err(Fault::damaged("the new file is damaged")) }
}

/// Puts a durable draft in place of a file, which must be the one with this id, with its owner and
/// its mode. Returns the size of the draft.
fn replace(draft: NamedTempFile, file: &Path, id: FileId) -> io::Result<FileSize> {
    let (old, new) = (id.at(file)?, draft.as_file());
    give_to_owner_of(&old, new)?;
    new.set_permissions(old.permissions())?;
    new.sync_all()?;
    let size = FileSize::of(&FileId::of_open(new)?.at(draft.path())?);
    id.at(file)?;
    draft.persist(file).map_err(|error| error.error)?;
    Ok(size)
}
