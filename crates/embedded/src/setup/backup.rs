//! A copy of the store while it is served: copies the tables of one snapshot into a new database,
//! in an unnamed file in the store's folder.

use std::fs::File;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use redb::{Database, Durability, Key, ReadTransaction, ReadableTable, TableDefinition, Value};

use crate::error::Fault;
use crate::schema::tables::{
    ATTRIBUTE_NAMES, ATTRIBUTES, ENDED, EVENT_TIMES, EVENTS, EXPIRES_AT, HOLD_TIMES, IDENTITIES,
    INBOX, INBOX_NOTICES, INBOX_TIMES, META, NEXT_EVENT, REQUEST_TIMES, REQUESTS,
    TENANT_EVENT_TIMES, TENANT_EVENTS, TENANT_USERS, TENANTS, USAGE, USAGE_BATCH, USAGE_SERIES,
    USERS,
};
use crate::store::Embedded;
use polynym_directory::encoded::event::decode_ended;
use polynym_directory::error::Error;
use polynym_directory::stores::StoreFile;

/// The memory for pages of the copy, in bytes.
const CACHE_BYTES: usize = 32 << 20;
/// The most rows of one transaction.
const TRANSACTION_ROWS: usize = 20_000;

impl StoreFile for Embedded {
    fn copy(&self) -> Result<File, Error> {
        let snapshot = self.published.load_full().ok_or_else(|| self.closed())?;
        Ok(copy(&snapshot.transaction, &self.folder)?)
    }
}

/// Copies all tables of a snapshot. Blocks on the disk. The last handle removes the file.
fn copy(from: &ReadTransaction, folder: &Path) -> Result<File, Fault> {
    let file = tempfile::tempfile_in(folder).map_err(redb::Error::Io)?;
    let handle = file.try_clone().map_err(redb::Error::Io)?;
    let copying = AssertUnwindSafe(|| copy_into(from, handle));
    catch_unwind(copying).unwrap_or(Err(Fault::Panicked))?;
    file.sync_all().map_err(redb::Error::Io)?;
    Ok(file)
}

fn copy_into(from: &ReadTransaction, file: File) -> Result<(), Fault> {
    let to = Database::builder().set_cache_size(CACHE_BYTES).create_file(file)?;
    let copied = [
        copy_table(from, &to, META)?,
        copy_table(from, &to, USERS)?,
        copy_table(from, &to, IDENTITIES)?,
        copy_table(from, &to, REQUESTS)?,
        copy_table(from, &to, REQUEST_TIMES)?,
        copy_table(from, &to, TENANTS)?,
        copy_table(from, &to, TENANT_USERS)?,
        copy_table(from, &to, EXPIRES_AT)?,
        copy_table(from, &to, HOLD_TIMES)?,
        copy_table(from, &to, ATTRIBUTE_NAMES)?,
        copy_table(from, &to, ATTRIBUTES)?,
        copy_table(from, &to, EVENTS)?,
        copy_table(from, &to, EVENT_TIMES)?,
        copy_table(from, &to, NEXT_EVENT)?,
        copy_table(from, &to, TENANT_EVENTS)?,
        copy_table(from, &to, TENANT_EVENT_TIMES)?,
        copy_rows(from, &to, ENDED, has_users)?,
        copy_table(from, &to, USAGE_SERIES)?,
        copy_table(from, &to, USAGE)?,
        copy_table(from, &to, USAGE_BATCH)?,
        copy_table(from, &to, INBOX)?,
        copy_table(from, &to, INBOX_NOTICES)?,
        copy_table(from, &to, INBOX_TIMES)?,
    ];
    let copied = copied.into_iter().filter(|copied| *copied).count();
    if from.list_tables()?.count() != copied {
        return Err(Fault::damaged("a table that this program does not know"));
    }

    // Makes the transactions without a sync durable.
    to.begin_write()?.commit()?;
    Ok(())
}

/// Whether ended ownerships have users. Earlier versions kept rows in which nobody is left.
fn has_users(ended: &[u8]) -> bool {
    decode_ended(ended).map_or(true, |ended| ended.has_users())
}

/// Copies a table. Returns whether it exists.
fn copy_table<K: Key + 'static, V: Value + 'static>(
    from: &ReadTransaction,
    to: &Database,
    definition: TableDefinition<'_, K, V>,
) -> Result<bool, Fault> {
    copy_rows(from, to, definition, |_| true)
}

/// Copies the rows of a table with these values. Returns whether the table exists.
fn copy_rows<K: Key + 'static, V: Value + 'static>(
    from: &ReadTransaction,
    to: &Database,
    definition: TableDefinition<'_, K, V>,
    is_copied: impl Fn(V::SelfType<'_>) -> bool,
) -> Result<bool, Fault> {
    let source = match from.open_table(definition) {
        Ok(source) => source,
        Err(redb::TableError::TableDoesNotExist(_)) => return Ok(false),
        Err(error) => return Err(error.into()),
    };
    let mut rows = source.iter()?.peekable();
    loop {
        let mut transaction = to.begin_write()?;
        transaction.set_durability(Durability::None)?;
        {
            let mut target = transaction.open_table(definition)?;
            for row in rows.by_ref().take(TRANSACTION_ROWS) {
                let (key, value) = row?;
                if is_copied(value.value()) {
                    target.insert(key.value(), value.value())?;
                }
            }
        }
        transaction.commit()?;
        if rows.peek().is_none() {
            return Ok(true);
        }
    }
}
