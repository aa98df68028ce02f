//! A backup of the store while it is served: copies the tables of one snapshot into a new database,
//! in an unnamed file in the store's folder. A copy rests as long as it works.

use std::fs::{self, File};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};

use redb::{Database, Durability, ReadTransaction};

use crate::bulk_changes::{BulkTables, running_bulk_changes};
use crate::deliveries::{DeliveryTables, active_deliveries};
use crate::disk_space::DiskSpace;
use crate::error::Fault;
use crate::file::backup_file::{Body, seal};
use crate::file::opener::FILE;
use crate::setup::background::{self, Rests};
use crate::setup::copy::{Step, TRANSACTION_BYTES, TableCopy};
use crate::store::Embedded;
use polynym_directory::{Error, StoreFile, Timestamp};
use polynym_store_common::operations::Operation;

/// The memory for pages of the copy, in bytes.
const CACHE_BYTES: usize = 32 << 20;
/// Bulk changes or deliveries that one transaction stops.
const STOPPED_AT_ONCE: usize = 100;
/// The reason why the bulk changes and deliveries of a copy have stopped.
const RESTORED: &str = "RESTORED";

impl StoreFile for Embedded {
    fn copy(&self, is_cancelled: &AtomicBool) -> Result<File, Error> {
        let begun = Operation::Copy.begin();
        let copied = self.copy_file(is_cancelled);
        begun.end(&copied);
        copied
    }
}

impl Embedded {
    /// See [`StoreFile::copy`].
    fn copy_file(&self, is_cancelled: &AtomicBool) -> Result<File, Error> {
        let size = fs::metadata(self.folder.join(FILE))
            .map_err(|error| Error::Unavailable(error.into()))?;
        self.disk.check(size.len())?;
        let snapshot = self.published.load_full().ok_or_else(|| self.closed())?;
        let copy = || {
            let (from, disk) = (&snapshot.transaction, &self.disk);
            let to = tempfile::tempfile_in(&self.folder).map_err(redb::Error::Io)?;
            Copying { from, to, disk, is_cancelled, rests: Rests::new() }.copy()
        };
        Ok(background::run(copy)?)
    }
}

/// A copy in progress.
struct Copying<'c> {
    from: &'c ReadTransaction,
    /// The last handle removes the file.
    to: File,
    disk: &'c DiskSpace,
    is_cancelled: &'c AtomicBool,
    rests: Rests,
}

impl Copying<'_> {
    /// Copies all tables of the snapshot.
    fn copy(mut self) -> Result<File, Fault> {
        self.check()?;
        let to = self.to.try_clone().map_err(redb::Error::Io)?;
        let attempt = AssertUnwindSafe(|| self.copy_into(Body(to)));
        catch_unwind(attempt).unwrap_or(Err(Fault::Panicked))?;
        let file = self.to.try_clone().map_err(redb::Error::Io)?;
        seal(&file, || self.pause(Step::Row))?;
        file.sync_all().map_err(redb::Error::Io)?;
        Ok(file)
    }

    /// Checks that the caller waits, and that the disk has space.
    fn check(&self) -> Result<(), Fault> {
        if self.is_cancelled.load(Ordering::Relaxed) {
            return Err(Fault::Cancelled);
        }
        self.disk.check(TRANSACTION_BYTES as u64)
    }

    /// Leaves the processor, the disk and its space to others.
    fn pause(&mut self, step: Step) -> Result<(), Fault> {
        match step {
            Step::Begin => self.check(),
            Step::Row if self.rests.rest() => self.check(),
            Step::Row => Ok(()),
            // Syncs of the store wait for little of the copy at a time.
            Step::Commit => Ok(self.to.sync_data().map_err(redb::Error::Io)?),
        }
    }

    fn copy_into(&mut self, body: Body) -> Result<(), Fault> {
        let to = Database::builder().set_cache_size(CACHE_BYTES).create_with_backend(body)?;
        let from = self.from;
        TableCopy::new(from, &to, |step| self.pause(step)).run()?;
        self.stop_bulk_changes(&to)?;
        self.pause_deliveries(&to)?;

        // Makes the transactions without a sync durable.
        to.begin_write()?.commit()?;
        Ok(())
    }

    /// Stops the bulk changes in the copy. Who restores it decides whether they go on.
    fn stop_bulk_changes(&mut self, to: &Database) -> Result<(), Fault> {
        let now = Timestamp::now();
        for keys in running_bulk_changes(self.from)?.chunks(STOPPED_AT_ONCE) {
            self.check()?;
            let mut transaction = to.begin_write()?;
            transaction.set_durability(Durability::None)?;
            {
                let mut tables = BulkTables::open(&transaction)?;
                for (tenant, id) in keys {
                    tables.stop((tenant, id), RESTORED, now)?;
                }
            }
            transaction.commit()?;
            self.rests.rest();
        }
        Ok(())
    }

    /// Pauses the deliveries in the copy: the original sends these events.
    fn pause_deliveries(&mut self, to: &Database) -> Result<(), Fault> {
        let now = Timestamp::now();
        for keys in active_deliveries(self.from)?.chunks(STOPPED_AT_ONCE) {
            self.check()?;
            let mut transaction = to.begin_write()?;
            transaction.set_durability(Durability::None)?;
            {
                let mut tables = DeliveryTables::open(&transaction)?;
                for (tenant, id) in keys {
                    tables.pause((tenant, id), RESTORED, now)?;
                }
            }
            transaction.commit()?;
            self.rests.rest();
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::Options;

    fn copied(options: Options, is_cancelled: bool) -> Result<File, Error> {
        let folder = tempfile::tempdir().unwrap();
        let store = Embedded::open(folder.path(), options).unwrap();
        let files = || fs::read_dir(folder.path()).unwrap().count();
        let before = files();
        let copied = store.copy(&AtomicBool::new(is_cancelled));
        assert_eq!(files(), before, "the copy has no name");
        copied
    }

    #[test]
    fn a_copy_needs_a_caller_that_waits() {
        assert!(copied(Options::default(), false).is_ok());
        assert!(matches!(copied(Options::default(), true), Err(Error::Unavailable(_))));
    }

    #[test]
    fn a_copy_leaves_the_reserved_space() {
        let options = Options { reserved_disk_bytes: Some(1 << 60), ..Options::default() };
        assert!(matches!(copied(options, false), Err(Error::DiskFull)));
    }
}
