//! Opening a folder as a store: making one that is new, and telling what is wrong with one that cannot be used.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use redb::{Database, ReadableDatabase, TableError};

use super::error::OpenError;
use super::file::StoreFile;
use super::schema::{DUE, HOLD_TIMES, IDENTITIES, META, REQUEST_TIMES, REQUESTS, TENANTS, USERS, VERSION};

const FILE: &str = "directory.redb";
/// How the name of a file begins that is to become a store.
const DRAFT: &str = ".directory.redb-";
/// The first bytes of a redb file (redb, docs/design.md).
const MAGIC: &[u8] = b"redb\x1A\x0A\xA9\x0D\x0A";

/// Opens one folder, as often as need be.
pub struct Opener {
    folder: PathBuf,
    file: PathBuf,
    cache_bytes: usize,
}

impl Opener {
    pub fn new(folder: &Path, cache_bytes: usize) -> Self {
        Self { folder: folder.to_owned(), file: folder.join(FILE), cache_bytes }
    }

    /// The part of the cache that guesses may take: an eighth, with which a look-up that needs no claim is worth more
    /// than with more pages.
    pub const fn hint_bytes(&self) -> usize {
        self.cache_bytes / 8
    }

    pub fn damaged(&self, reason: impl ToString) -> OpenError {
        OpenError::damaged(&self.file, reason)
    }

    /// Opens the database, or makes it where there is none.
    pub fn open(&self) -> Result<Database, OpenError> {
        let io = |error| OpenError::io(&self.file, error);
        fs::create_dir_all(&self.folder).map_err(|error| OpenError::io(&self.folder, error))?;
        let database = if self.file.try_exists().map_err(io)? { self.reopen() } else { self.make() }?;
        self.sync_folder().map_err(io)?;
        Ok(database)
    }

    /// Opens the database that is there, and never makes one. Until it is known to be a sound store of this version,
    /// nothing is written to its file.
    pub fn reopen(&self) -> Result<Database, OpenError> {
        let io = |error| OpenError::io(&self.file, error);
        let mut file = OpenOptions::new().read(true).write(true).open(&self.file).map_err(io)?;
        self.check_magic(&mut file).map_err(io)??;
        self.open_file(file, false)
    }

    /// Makes a database under another name and then gives it its own: whoever is killed half-way leaves no file behind
    /// that looks like a damaged store, and whoever comes second does not replace the first one's.
    fn make(&self) -> Result<Database, OpenError> {
        let io = |error| OpenError::io(&self.file, error);
        let file = tempfile::Builder::new().prefix(DRAFT).tempfile_in(&self.folder).map_err(io)?;
        let (file, draft) = file.into_parts();
        let database = self.open_file(file, true)?;
        draft.persist_noclobber(&self.file).map_err(|error| match error.error.kind() {
            io::ErrorKind::AlreadyExists => OpenError::InUse { path: self.file.clone() },
            _ => io(error.error),
        })?;
        Ok(database)
    }

    fn open_file(&self, file: File, is_new: bool) -> Result<Database, OpenError> {
        let (file, staging) = StoreFile::new(file).map_err(|error| OpenError::database(&self.file, error))?;
        let attempt = AssertUnwindSafe(|| self.open_database(file, is_new));
        let database = catch_unwind(attempt).unwrap_or_else(|_| Err(self.damaged("its structure makes no sense")))?;
        staging.release().map_err(|error| OpenError::io(&self.file, error))?;
        Ok(database)
    }

    fn check_magic(&self, file: &mut File) -> io::Result<Result<(), OpenError>> {
        let mut start = Vec::new();
        file.take(MAGIC.len() as u64).read_to_end(&mut start)?;
        let foreign = || OpenError::Foreign { path: self.file.clone(), reason: "it is another kind of file" };
        Ok(if start == MAGIC { Ok(()) } else { Err(foreign()) })
    }

    fn open_database(&self, file: StoreFile, is_new: bool) -> Result<Database, OpenError> {
        let fault = |error: redb::Error| self.damaged(error);
        let mut builder = Database::builder();
        builder.set_cache_size(self.cache_bytes - self.hint_bytes());
        let database = builder.create_with_backend(file).map_err(|e| OpenError::database(&self.file, e))?;
        if is_new {
            initialise(&database).map_err(fault)?;
        }
        match version(&database).map_err(fault)? {
            Some(VERSION) => {}
            Some(found) => return Err(OpenError::Version { path: self.file.clone(), found, known: VERSION }),
            None => {
                let reason = "it is another program's database";
                return Err(OpenError::Foreign { path: self.file.clone(), reason });
            }
        }
        check_tables(&database).map_err(fault)?;
        Ok(database)
    }

    /// Makes the file's entry in its folder durable.
    fn sync_folder(&self) -> io::Result<()> {
        File::open(&self.folder)?.sync_all()
    }
}

fn initialise(database: &Database) -> Result<(), redb::Error> {
    let transaction = database.begin_write()?;
    transaction.open_table(META)?.insert("schema", VERSION)?;
    transaction.open_table(USERS)?;
    transaction.open_table(IDENTITIES)?;
    transaction.open_table(REQUESTS)?;
    transaction.open_table(REQUEST_TIMES)?;
    transaction.open_table(TENANTS)?;
    transaction.open_table(DUE)?;
    transaction.open_table(HOLD_TIMES)?;
    Ok(transaction.commit()?)
}

fn version(database: &Database) -> Result<Option<u64>, redb::Error> {
    match database.begin_read()?.open_table(META) {
        Ok(meta) => Ok(meta.get("schema")?.map(|version| version.value())),
        Err(TableError::TableDoesNotExist(_) | TableError::TableTypeMismatch { .. }) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Fails where a table is missing or of another type.
fn check_tables(database: &Database) -> Result<(), redb::Error> {
    let transaction = database.begin_read()?;
    transaction.open_table(USERS)?;
    transaction.open_table(IDENTITIES)?;
    transaction.open_table(REQUESTS)?;
    transaction.open_table(REQUEST_TIMES)?;
    transaction.open_table(TENANTS)?;
    transaction.open_table(DUE)?;
    transaction.open_table(HOLD_TIMES)?;
    Ok(())
}
