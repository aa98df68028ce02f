//! Opening a folder as a store: making one that is new, and telling what is wrong with one that cannot be used.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use redb::{Database, ReadableDatabase, TableError};

use super::error::OpenError;
use super::file::StoreFile;
use super::schema::{IDENTITIES, META, REQUEST_TIMES, REQUESTS, USERS, VERSION};

const FILE: &str = "directory.redb";
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

    pub fn damaged(&self, reason: impl ToString) -> OpenError {
        OpenError::damaged(&self.file, reason)
    }

    /// Opens the database, or makes it where there is none. Until it is known to be a sound store of this version,
    /// nothing is written to its file.
    pub fn open(&self) -> Result<Database, OpenError> {
        let io = |error| OpenError::io(&self.file, error);
        fs::create_dir_all(&self.folder).map_err(|error| OpenError::io(&self.folder, error))?;
        let mut file = writable().open(&self.file).map_err(io)?;
        let is_new = file.metadata().map_err(io)?.len() == 0;
        if !is_new {
            self.check_magic(&mut file).map_err(io)??;
        }
        let (file, staging) = StoreFile::new(file).map_err(|error| OpenError::database(&self.file, error))?;
        let attempt = AssertUnwindSafe(|| self.open_database(file, is_new));
        let database = catch_unwind(attempt).unwrap_or_else(|_| Err(self.damaged("its structure makes no sense")))?;
        staging.release().map_err(io)?;
        self.sync_folder().map_err(io)?;
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
        builder.set_cache_size(self.cache_bytes);
        let database = builder.create_with_backend(file).map_err(|e| OpenError::database(&self.file, e))?;
        if is_new {
            initialise(&database).map_err(fault)?;
        }
        match version(&database).map_err(fault)? {
            Some(VERSION) => Ok(database),
            Some(found) => Err(OpenError::Version { path: self.file.clone(), found, known: VERSION }),
            None => Err(OpenError::Foreign { path: self.file.clone(), reason: "it is another program's database" }),
        }
    }

    /// Makes the file's entry in its folder durable.
    fn sync_folder(&self) -> io::Result<()> {
        File::open(&self.folder)?.sync_all()
    }
}

fn writable() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    options
}

fn initialise(database: &Database) -> Result<(), redb::Error> {
    let transaction = database.begin_write()?;
    transaction.open_table(META)?.insert("schema", VERSION)?;
    transaction.open_table(USERS)?;
    transaction.open_table(IDENTITIES)?;
    transaction.open_table(REQUESTS)?;
    transaction.open_table(REQUEST_TIMES)?;
    Ok(transaction.commit()?)
}

fn version(database: &Database) -> Result<Option<u64>, redb::Error> {
    match database.begin_read()?.open_table(META) {
        Ok(meta) => Ok(meta.get("schema")?.map(|version| version.value())),
        Err(TableError::TableDoesNotExist(_) | TableError::TableTypeMismatch { .. }) => Ok(None),
        Err(error) => Err(error.into()),
    }
}
