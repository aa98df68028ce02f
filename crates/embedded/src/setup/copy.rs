//! Copies all tables of a snapshot into a new database.

use redb::{Database, Durability, Key, ReadTransaction, ReadableTable, TableDefinition, Value};

use crate::error::Fault;
use crate::schema::tables::{
    ATTRIBUTE_NAMES, ATTRIBUTES, BULK_CHANGES, BULK_TIMES, BULK_USERS, DELIVERIES, DELIVERY_TIMES,
    ENDED, EVENT_ORDER, EVENT_TIMES, EVENTS, EXPIRES_AT, HOLD_TIMES, IDENTITIES, INBOX,
    INBOX_CONTENT_USERS, INBOX_CONTENTS, INBOX_NOTICES, INBOX_TIMES, META, NEXT_EVENT,
    REQUEST_TIMES, REQUESTS, TENANT_EVENT_TIMES, TENANT_EVENTS, TENANT_USERS, TENANTS, USAGE,
    USAGE_BATCH, USAGE_SERIES, USERS,
};
use polynym_directory::encoded::event::decode_ended;

/// The bytes of rows after which a transaction ends, and the least that a row counts.
pub const TRANSACTION_BYTES: usize = 8 << 20;
const MIN_ROW_BYTES: usize = 400;

/// A place in a copy where it may pause, or end with a fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Before a transaction begins.
    Begin,
    /// After a row.
    Row,
    /// After a transaction that others follow.
    Commit,
}

/// A copy in progress. Its transactions become durable with the next durable one.
pub struct TableCopy<'c, P> {
    from: &'c ReadTransaction,
    to: &'c Database,
    /// Called at each step.
    pause: P,
}

impl<'c, P: FnMut(Step) -> Result<(), Fault>> TableCopy<'c, P> {
    /// A copy of a snapshot.
    pub const fn new(from: &'c ReadTransaction, to: &'c Database, pause: P) -> Self {
        Self { from, to, pause }
    }

    /// Copies all tables.
    pub fn run(mut self) -> Result<(), Fault> {
        let copied = [
            self.copy_table(META)?,
            self.copy_table(USERS)?,
            self.copy_table(IDENTITIES)?,
            self.copy_table(REQUESTS)?,
            self.copy_table(REQUEST_TIMES)?,
            self.copy_table(TENANTS)?,
            self.copy_table(TENANT_USERS)?,
            self.copy_table(EXPIRES_AT)?,
            self.copy_table(HOLD_TIMES)?,
            self.copy_table(ATTRIBUTE_NAMES)?,
            self.copy_table(ATTRIBUTES)?,
            self.copy_table(EVENTS)?,
            self.copy_table(EVENT_TIMES)?,
            self.copy_table(EVENT_ORDER)?,
            self.copy_table(NEXT_EVENT)?,
            self.copy_table(TENANT_EVENTS)?,
            self.copy_table(TENANT_EVENT_TIMES)?,
            self.copy_rows(ENDED, has_users)?,
            self.copy_table(USAGE_SERIES)?,
            self.copy_table(USAGE)?,
            self.copy_table(USAGE_BATCH)?,
            self.copy_table(INBOX)?,
            self.copy_table(INBOX_NOTICES)?,
            self.copy_table(INBOX_TIMES)?,
            self.copy_table(INBOX_CONTENTS)?,
            self.copy_table(INBOX_CONTENT_USERS)?,
            self.copy_table(BULK_CHANGES)?,
            self.copy_table(BULK_TIMES)?,
            self.copy_table(BULK_USERS)?,
            self.copy_table(DELIVERIES)?,
            self.copy_table(DELIVERY_TIMES)?,
        ];
        let copied = copied.into_iter().filter(|copied| *copied).count();
        if self.from.list_tables()?.count() != copied {
            return Err(Fault::damaged("a table that this program does not know"));
        }
        Ok(())
    }

    /// Copies a table. Returns whether it exists.
    fn copy_table<K: Key + 'static, V: Value + 'static>(
        &mut self,
        definition: TableDefinition<'_, K, V>,
    ) -> Result<bool, Fault> {
        self.copy_rows(definition, |_| true)
    }

    /// Copies the rows of a table with these values. Returns whether the table exists.
    fn copy_rows<K: Key + 'static, V: Value + 'static>(
        &mut self,
        definition: TableDefinition<'_, K, V>,
        is_copied: impl Fn(&V::SelfType<'_>) -> bool,
    ) -> Result<bool, Fault> {
        let source = match self.from.open_table(definition) {
            Ok(source) => source,
            Err(redb::TableError::TableDoesNotExist(_)) => return Ok(false),
            Err(error) => return Err(error.into()),
        };
        let mut rows = source.iter()?.peekable();
        loop {
            (self.pause)(Step::Begin)?;
            let mut transaction = self.to.begin_write()?;
            transaction.set_durability(Durability::None)?;
            {
                let (mut target, mut bytes) = (transaction.open_table(definition)?, 0);
                while bytes < TRANSACTION_BYTES
                    && let Some(row) = rows.next()
                {
                    let (key, value) = row?;
                    let value = value.value();
                    bytes += V::as_bytes(&value).as_ref().len().max(MIN_ROW_BYTES);
                    if is_copied(&value) {
                        target.insert(key.value(), value)?;
                    }
                    (self.pause)(Step::Row)?;
                }
            }
            transaction.commit()?;
            if rows.peek().is_none() {
                return Ok(true);
            }
            (self.pause)(Step::Commit)?;
        }
    }
}

/// Whether ended ownerships have users. A row in which nobody is left is not copied.
fn has_users(ended: &&[u8]) -> bool {
    decode_ended(ended).map_or(true, |ended| ended.has_users())
}
