//! A copy of the store as it is at one moment, made while it is served: table by table out of one
//! snapshot into a new database, in a file without a name in the store's folder.

use std::fs::File;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use redb::{Database, Durability, Key, ReadTransaction, ReadableTable, TableDefinition, Value};

use super::error::Fault;
use super::inbox::{INBOX, INBOX_NOTICES, INBOX_TIMES};
use super::schema::{
    ATTRIBUTE_NAMES, ATTRIBUTES, ENDED, EVENT_TIMES, EVENTS, EXPIRES_AT, HOLD_TIMES, IDENTITIES,
    META, NEXT_EVENT, REQUEST_TIMES, REQUESTS, TENANT_EVENT_TIMES, TENANT_EVENTS, TENANT_USERS,
    TENANTS, USERS,
};
use super::usage::{USAGE, USAGE_BATCH, USAGE_SERIES};

/// The memory for pages of the copy.
const CACHE: usize = 32 << 20;
/// The rows that are written in one transaction.
const ROWS: usize = 20_000;

/// Copies all tables of a snapshot. Blocks on the disk. The file is removed with its last handle.
pub fn copy(from: &ReadTransaction, folder: &Path) -> Result<File, Fault> {
    let file = tempfile::tempfile_in(folder).map_err(redb::Error::Io)?;
    let handle = file.try_clone().map_err(redb::Error::Io)?;
    let copying = AssertUnwindSafe(|| copy_into(from, handle));
    catch_unwind(copying).unwrap_or(Err(Fault::Panicked))?;
    file.sync_all().map_err(redb::Error::Io)?;
    Ok(file)
}

fn copy_into(from: &ReadTransaction, file: File) -> Result<(), Fault> {
    let to = Database::builder().set_cache_size(CACHE).create_file(file)?;
    let copied = [
        table(from, &to, META)?,
        table(from, &to, USERS)?,
        table(from, &to, IDENTITIES)?,
        table(from, &to, REQUESTS)?,
        table(from, &to, REQUEST_TIMES)?,
        table(from, &to, TENANTS)?,
        table(from, &to, TENANT_USERS)?,
        table(from, &to, EXPIRES_AT)?,
        table(from, &to, HOLD_TIMES)?,
        table(from, &to, ATTRIBUTE_NAMES)?,
        table(from, &to, ATTRIBUTES)?,
        table(from, &to, EVENTS)?,
        table(from, &to, EVENT_TIMES)?,
        table(from, &to, NEXT_EVENT)?,
        table(from, &to, TENANT_EVENTS)?,
        table(from, &to, TENANT_EVENT_TIMES)?,
        table(from, &to, ENDED)?,
        table(from, &to, USAGE_SERIES)?,
        table(from, &to, USAGE)?,
        table(from, &to, USAGE_BATCH)?,
        table(from, &to, INBOX)?,
        table(from, &to, INBOX_NOTICES)?,
        table(from, &to, INBOX_TIMES)?,
    ];
    let copied = copied.into_iter().filter(|copied| *copied).count();
    if from.list_tables()?.count() != copied {
        return Err(Fault::damaged("a table that this program does not know"));
    }

    // What was written without a sync becomes durable with this.
    to.begin_write()?.commit()?;
    Ok(())
}

/// Copies a table. Returns whether it is there.
fn table<K: Key + 'static, V: Value + 'static>(
    from: &ReadTransaction,
    to: &Database,
    definition: TableDefinition<'_, K, V>,
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
            for row in rows.by_ref().take(ROWS) {
                let (key, value) = row?;
                target.insert(key.value(), value.value())?;
            }
        }
        transaction.commit()?;
        if rows.peek().is_none() {
            return Ok(true);
        }
    }
}
