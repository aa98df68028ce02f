//! Opening a folder as a store: making one that is new, and telling what is wrong with one that
//! cannot be used.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::DirBuilderExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{self, Path, PathBuf};
use std::sync::Arc;

use redb::{Database, ReadableDatabase, StorageError, TableError, WriteTransaction};

use super::error::{Fault, OpenError};
use super::file::{Gate, StoreFile};
use super::header;
use super::inbox::Inboxes;
use super::lock::{FileId, Locker};
use super::measure;
use super::schema::{
    ATTRIBUTE_NAMES, ATTRIBUTES, ENDED, EVENT_TIMES, EVENTS, EXPIRES_AT, HOLD_TIMES, IDENTITIES,
    META, META_MOVING, META_RULES, META_SCHEMA, NEXT_EVENT, REQUEST_TIMES, REQUESTS, TENANT_USERS,
    TENANTS, USERS,
};
use super::version::{OLDEST, VERSION};
use crate::directory::stored_rules::StoredRules;
use crate::identifier::{RULES_VERSION, Rules};
use crate::store::attribute_names::AttributeNames;
use crate::store::owner_hints::OwnerHints;

const FILE: &str = "directory.redb";
/// The prefix of a file that is to become a store.
const DRAFT: &str = ".directory.redb-";
/// The bytes that must fit before a disk counts as having space.
const ROOM: usize = 4 << 20;

/// What is remembered beside the file, for as long as the store is open.
#[derive(Clone)]
pub struct Caches {
    /// Guesses of keys' owners.
    pub hints: Arc<OwnerHints>,
    /// The names of attributes.
    pub names: Arc<AttributeNames>,
}

/// Opens one folder, as often as need be. What it has opened is locked until all of it is dropped.
pub struct Opener {
    folder: PathBuf,
    file: PathBuf,
    cache_bytes: usize,
    caches: Caches,
    /// The latest rules of normalisation that the program supports.
    rules: u32,
    locker: Locker,
}

/// A database and the gate to its file. The gate is dropped last: closing the database writes.
pub struct Open {
    pub database: Database,
    pub gate: Gate,
}

impl Open {
    /// Commits a transaction; what fails may have happened.
    pub fn commit(&self, transaction: WriteTransaction) -> Result<(), Fault> {
        measure::sync(|| transaction.commit())?;
        // The error of a failed write is kept by the gate alone.
        Ok(self.gate.check().map_err(StorageError::Io)?)
    }
}

impl Opener {
    pub fn new(folder: &Path, cache_bytes: usize) -> Self {
        let locker = Locker::default();
        Self {
            folder: folder.to_owned(),
            file: folder.join(FILE),
            cache_bytes,
            caches: Caches { hints: OwnerHints::new(0), names: Arc::default() },
            rules: RULES_VERSION,
            locker,
        }
    }

    /// The same for a program that supports later rules of normalisation.
    pub fn supporting(self, rules: u32) -> Self {
        Self { rules, ..self }
    }

    /// The same with guesses of keys' owners.
    pub fn with_hints(self, hints: Arc<OwnerHints>) -> Self {
        Self { caches: Caches { hints, ..self.caches }, ..self }
    }

    pub const fn caches(&self) -> &Caches {
        &self.caches
    }

    /// The part that pages may take. Where there is more to read than fits, each takes a quarter
    /// more memory than the database counts: it is a little larger than a size in which memory is
    /// given out.
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

    /// Opens the database, or makes it where there is none.
    pub fn open_or_make(&mut self) -> Result<Open, OpenError> {
        make_folder(&self.folder).map_err(|error| OpenError::io(&self.folder, error))?;
        let open = if self.is_there() { self.reopen() } else { self.make() }?;
        self.sync_folder()?;
        Ok(open)
    }

    /// Opens the database, which must be there.
    pub fn open_existing(&mut self) -> Result<Open, OpenError> {
        if self.is_there() {
            self.reopen()
        } else {
            Err(OpenError::Missing { folder: self.folder.clone() })
        }
    }

    /// Whether anything has the file's name, be it a link that leads nowhere.
    fn is_there(&self) -> bool {
        fs::symlink_metadata(&self.file)
            .map_or_else(|error| error.kind() != io::ErrorKind::NotFound, |_| true)
    }

    /// Opens the database that is there, and never makes one. Until it is known to be a sound store
    /// of this version, nothing is written to its file.
    pub fn reopen(&mut self) -> Result<Open, OpenError> {
        self.lock_folder()?;
        let io = |error| OpenError::io(&self.file, error);
        let file = OpenOptions::new().read(true).write(true).open(&self.file).map_err(io)?;
        self.check_header(&file)?;
        self.open_file(file, false)
    }

    /// Makes a database under another name, then renames it: a run that is killed leaves no file
    /// that looks like a damaged store.
    fn make(&mut self) -> Result<Open, OpenError> {
        self.lock_folder()?;
        let io = |error| OpenError::io(&self.file, error);
        let file = tempfile::Builder::new().prefix(DRAFT).tempfile_in(&self.folder).map_err(io)?;
        let (file, draft) = file.into_parts();
        let open = self.open_file(file, true)?;
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
        let (file, gate) = StoreFile::new(file, id, locks);
        let attempt = AssertUnwindSafe(|| self.open_database(file, is_new));
        let database = catch_unwind(attempt)
            .unwrap_or_else(|_| Err(self.damaged("its structure makes no sense")))?;
        gate.open().map_err(|error| OpenError::io(&self.file, error))?;
        Ok(Open { database, gate })
    }

    /// Whether what was opened is still what other programs find in its place.
    pub fn is_in_place(&self, open: &Open) -> bool {
        self.file_id() == Some(open.gate.file_id())
    }

    /// The file that is there.
    pub fn file_id(&self) -> Option<FileId> {
        fs::metadata(&self.file).ok().map(|metadata| FileId::of(&metadata))
    }

    /// Whether the disk accepts writes, tried on a separate file.
    pub fn probe(&self) -> Result<(), OpenError> {
        let write = || {
            let mut file = tempfile::tempfile_in(&self.folder)?;
            file.write_all(&vec![0x5a; ROOM])?;
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
            return Err(OpenError::Foreign {
                path: self.file.clone(),
                reason: "it is another kind of file",
            });
        }

        let wanted = header::file_length(file).map_err(fault)?;
        let there = file.metadata().map_err(fault)?.len();
        if there < wanted {
            return Err(self.damaged(format_args!("it has {there} of {wanted} bytes")));
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
            initialise(&database).map_err(fault)?;
        }

        match versions(&database).map_err(fault)? {
            Some(found) if found.are_supported(self.rules) => {}
            Some(found) => {
                let (found, rules) = (found.schema, found.latest_rules());
                return Err(OpenError::Version { path: self.file.clone(), found, rules });
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
        sync(&self.folder).map_err(|error| OpenError::io(&self.folder, error))
    }
}

/// Makes a folder and those that are missing above it, durably and for this user alone.
fn make_folder(folder: &Path) -> io::Result<()> {
    let folder = path::absolute(folder)?;
    let missing: Vec<_> = folder.ancestors().take_while(|folder| !folder.exists()).collect();
    DirBuilder::new().recursive(true).mode(0o700).create(&folder)?;
    missing.iter().filter_map(|made| made.parent()).try_for_each(sync)
}

/// Makes the entries of a folder durable.
fn sync(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

fn initialise(database: &Database) -> Result<(), redb::Error> {
    let transaction = database.begin_write()?;
    {
        let mut meta = transaction.open_table(META)?;
        meta.insert(META_SCHEMA, VERSION)?;
        meta.insert(META_RULES, u64::from(RULES_VERSION))?;
    }
    transaction.open_table(USERS)?;
    transaction.open_table(IDENTITIES)?;
    transaction.open_table(REQUESTS)?;
    transaction.open_table(REQUEST_TIMES)?;
    transaction.open_table(TENANTS)?;
    transaction.open_table(EXPIRES_AT)?;
    transaction.open_table(HOLD_TIMES)?;
    transaction.open_table(TENANT_USERS)?;
    transaction.open_table(ATTRIBUTE_NAMES)?;
    transaction.open_table(ATTRIBUTES)?;
    create_journal(&transaction)?;
    drop(Inboxes::open(&transaction)?);

    Ok(transaction.commit()?)
}

/// Makes the tables of the journal.
pub fn create_journal(transaction: &WriteTransaction) -> Result<(), redb::Error> {
    transaction.open_table(EVENTS)?;
    transaction.open_table(EVENT_TIMES)?;
    transaction.open_table(NEXT_EVENT)?;
    transaction.open_table(ENDED)?;
    Ok(())
}

/// The versions of a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Versions {
    pub schema: u64,
    pub rules: StoredRules,
}

impl Versions {
    fn are_supported(self, rules: u32) -> bool {
        (OLDEST..=VERSION).contains(&self.schema) && self.latest_rules() <= rules
    }

    /// The latest rules of which there are identities.
    fn latest_rules(self) -> u32 {
        self.rules.next.unwrap_or(self.rules.version)
    }
}

/// The versions of the store in a database; none where it is no store.
pub fn versions(database: &Database) -> Result<Option<Versions>, redb::Error> {
    match database.begin_read()?.open_table(META) {
        Ok(meta) => {
            let of = |name| -> Result<Option<u32>, redb::Error> {
                Ok(meta.get(name)?.map(|rules| rules.value().try_into().unwrap_or(u32::MAX)))
            };
            let rules = StoredRules {
                version: of(META_RULES)?.unwrap_or(Rules::UNNAMED),
                next: of(META_MOVING)?,
            };
            Ok(meta.get(META_SCHEMA)?.map(|schema| Versions { schema: schema.value(), rules }))
        }
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
    transaction.open_table(EXPIRES_AT)?;
    transaction.open_table(HOLD_TIMES)?;
    Ok(())
}
