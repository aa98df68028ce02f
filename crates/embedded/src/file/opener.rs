//! Opening a folder as a store, or creating one in it. An error names what is wrong with the
//! folder.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::DirBuilderExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{self, Path, PathBuf};

use redb::{Database, StorageError, WriteTransaction};

use crate::error::{Fault, OpenError};
use crate::file::lock::{FileId, Locker};
use crate::file::owner::give_to_owner_of;
use crate::file::store_file::{Gate, StoreFile};
use crate::file::{backup_file, header};
use crate::measure;
use crate::schema::tables::{check_tables, create_tables};
use crate::schema::versions::versions;
use crate::version::Supported;

/// The name of the store's file in its folder.
pub const FILE: &str = "directory.redb";
/// The prefix of a file that is to become a store.
pub const DRAFT_PREFIX: &str = ".directory.redb-";
/// The bytes that must fit before a disk counts as having space.
const PROBE_BYTES: usize = 4 << 20;

/// Opens one folder, any number of times. Locks are held until everything opened is dropped.
pub struct Opener {
    folder: PathBuf,
    file: PathBuf,
    cache_bytes: usize,
    /// The latest versions that the program supports.
    supported: Supported,
    /// Whether to wait for the disk.
    is_durable: bool,
    locker: Locker,
}

/// A database and the gate to its file. The gate is dropped last: closing the database writes.
pub struct Open {
    pub database: Database,
    pub gate: Gate,
}

impl Open {
    /// Commits a transaction. A commit that fails may have taken effect.
    pub fn commit(&self, transaction: WriteTransaction) -> Result<(), Fault> {
        measure::sync(|| transaction.commit())?;
        // The database does not see failed writes: only the gate has the error.
        Ok(self.gate.check().map_err(StorageError::Io)?)
    }
}

impl Opener {
    pub fn new(folder: &Path, cache_bytes: usize) -> Self {
        Self {
            folder: folder.to_owned(),
            file: folder.join(FILE),
            cache_bytes,
            supported: Supported::PRESENT,
            is_durable: true,
            locker: Locker::default(),
        }
    }

    /// Sets the latest versions that the program supports.
    pub fn supporting(self, supported: Supported) -> Self {
        Self { supported, ..self }
    }

    /// Sets the locks that the opening takes over.
    pub fn locked_by(self, locker: Locker) -> Self {
        Self { locker, ..self }
    }

    /// Sets whether a commit waits until the disk has it.
    pub fn durable(self, is_durable: bool) -> Self {
        Self { is_durable, ..self }
    }

    /// The cache size to give the database. A full cache takes a quarter more memory than the
    /// database counts: a page is a little larger than a size class of the allocator.
    const fn page_bytes(&self) -> usize {
        self.cache_bytes / 4 * 3
    }

    /// The store's file.
    pub fn file(&self) -> &Path {
        &self.file
    }

    pub fn damaged(&self, reason: impl ToString) -> OpenError {
        OpenError::damaged(&self.file, reason)
    }

    /// Opens the database, or creates it.
    pub fn open_or_create(&mut self) -> Result<Open, OpenError> {
        create_folder(&self.folder).map_err(|error| OpenError::io(&self.folder, error))?;
        let open = if self.exists() { self.reopen() } else { self.create() }?;
        self.sync_folder()?;
        Ok(open)
    }

    /// Opens the database, which must exist.
    pub fn open_existing(&mut self) -> Result<Open, OpenError> {
        if self.exists() {
            self.reopen()
        } else {
            Err(OpenError::Missing { folder: self.folder.clone() })
        }
    }

    /// Whether anything has the file's name, even a dangling link.
    fn exists(&self) -> bool {
        fs::symlink_metadata(&self.file)
            .map_or_else(|error| error.kind() != io::ErrorKind::NotFound, |_| true)
    }

    /// Opens the existing database. Writes nothing to its file until it has proved to be a sound
    /// store of this version.
    pub fn reopen(&mut self) -> Result<Open, OpenError> {
        self.lock_folder()?;
        let io = |error| OpenError::io(&self.file, error);
        let file = OpenOptions::new().read(true).write(true).open(&self.file).map_err(io)?;
        self.check_header(&file)?;
        self.open_file(file, false)
    }

    /// Creates a database under another name, then renames it: a killed process leaves no file that
    /// looks like a damaged store.
    fn create(&mut self) -> Result<Open, OpenError> {
        self.lock_folder()?;
        let io = |error| OpenError::io(&self.file, error);
        let file =
            tempfile::Builder::new().prefix(DRAFT_PREFIX).tempfile_in(&self.folder).map_err(io)?;
        let (file, draft) = file.into_parts();
        let owner = fs::metadata(&self.folder).map_err(io)?;
        give_to_owner_of(&owner, &file).map_err(io)?;
        let open = self.open_file(file, true)?;
        open.gate.file_id().at(&draft).map_err(|error| OpenError::io(&self.file, error))?;
        draft
            .persist_noclobber(&self.file)
            .map_err(|error| OpenError::io(&self.file, error.error))?;
        Ok(open)
    }

    fn open_file(&mut self, file: File, is_new: bool) -> Result<Open, OpenError> {
        let metadata = file.metadata().map_err(|error| OpenError::io(&self.file, error))?;
        let id = FileId::of(&metadata);
        let locks =
            self.locker.locks(id, &file).map_err(|error| OpenError::database(&self.file, error))?;
        let (file, gate) = StoreFile::new(file, id, locks, self.is_durable);
        let attempt = AssertUnwindSafe(|| self.open_database(file, is_new));
        let database = catch_unwind(attempt)
            .unwrap_or_else(|_| Err(self.damaged("its structure is invalid")))?;
        gate.open().map_err(|error| OpenError::io(&self.file, error))?;
        Ok(Open { database, gate })
    }

    /// Whether other programs still find the opened file under its path.
    pub fn is_in_place(&self, open: &Open) -> bool {
        self.file_id() == Some(open.gate.file_id())
    }

    /// The id of the file that is under the store's path.
    pub fn file_id(&self) -> Option<FileId> {
        fs::metadata(&self.file).ok().map(|metadata| FileId::of(&metadata))
    }

    /// Whether the disk accepts writes, tried on a separate file.
    pub fn probe(&self) -> Result<(), OpenError> {
        let write = || {
            let mut file = tempfile::tempfile_in(&self.folder)?;
            file.write_all(&vec![0x5a; PROBE_BYTES])?;
            file.sync_all()
        };
        write().map_err(|error| OpenError::io(&self.folder, error))
    }

    fn lock_folder(&mut self) -> Result<(), OpenError> {
        match self.locker.lock_folder(&self.folder) {
            Ok(true) => Ok(()),
            Ok(false) => Err(OpenError::InUse { path: self.file.clone() }),
            Err(error) => Err(OpenError::io(&self.folder, error)),
        }
    }

    fn check_header(&self, file: &File) -> Result<(), OpenError> {
        let fault = |error| OpenError::reading(&self.file, error);
        if !header::is_database(file).map_err(fault)? {
            let reason = match backup_file::is_backup(file).map_err(fault)? {
                true => "it is a backup, from which `polynym store restore` makes a store",
                false => "it is another kind of file",
            };
            return Err(OpenError::Foreign { path: self.file.clone(), reason });
        }

        let expected = header::file_length(file).map_err(fault)?;
        let length = file.metadata().map_err(fault)?.len();
        if length < expected {
            return Err(self.damaged(format_args!("it has {length} of {expected} bytes")));
        }

        Ok(())
    }

    fn open_database(&self, file: StoreFile, is_new: bool) -> Result<Database, OpenError> {
        let fault = |error: redb::Error| self.damaged(error);
        let mut builder = Database::builder();
        builder.set_cache_size(self.page_bytes());
        let database =
            builder.create_with_backend(file).map_err(|e| OpenError::database(&self.file, e))?;
        if is_new {
            create_tables(&database).map_err(fault)?;
        }

        match versions(&database).map_err(fault)? {
            Some(found) if found.are_supported(self.supported) => {}
            Some(found) => {
                let (path, supported) = (self.file.clone(), self.supported);
                let (found, rules) = (found.schema, found.decisive_rules());
                return Err(OpenError::Version { path, found, rules, supported });
            }
            None => {
                let reason = "it is another program's database";
                return Err(OpenError::Foreign { path: self.file.clone(), reason });
            }
        }
        check_tables(&database).map_err(fault)?;

        Ok(database)
    }

    /// Makes the file's entry in its folder durable.
    fn sync_folder(&self) -> Result<(), OpenError> {
        if !self.is_durable {
            return Ok(());
        }
        sync(&self.folder).map_err(|error| OpenError::io(&self.folder, error))
    }
}

/// Creates a folder and its missing parents, durably and for this user alone.
fn create_folder(folder: &Path) -> io::Result<()> {
    let folder = path::absolute(folder)?;
    let missing: Vec<_> = folder.ancestors().take_while(|folder| !folder.exists()).collect();
    DirBuilder::new().recursive(true).mode(0o700).create(&folder)?;
    missing.iter().filter_map(|created| created.parent()).try_for_each(sync)
}

/// Makes the entries of a folder durable.
pub fn sync(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}
