//! Bulk changes. Their tables exist once a tenant has had one.

use async_trait::async_trait;
use locality_uuid::LocalityId;
use redb::{ReadTransaction, ReadableTable, Table, WriteTransaction};

use crate::error::Fault;
use crate::lookup::snapshot::{Snapshot, optional};
use crate::schema::tables::{BULK_CHANGES, BULK_TIMES, BULK_USERS};
use crate::store::Embedded;
use polynym_directory::encoded::bulk_change::{decode_users, encode_users};
use polynym_directory::{
    BulkChange, BulkChangeKey, BulkChanges, BulkList, DueBulkChange, Error, Tenant, Timestamp,
};
use polynym_store_common::integrity::{BulkFault, BulkKey};
use polynym_store_common::operations::Operation;
use polynym_store_common::unreadable::report_unreadable_bulk;

/// Greater than the id of any bulk change.
const LAST_ID: &str = "\u{10ffff}";

#[async_trait]
impl BulkChanges for Embedded {
    async fn bulk_change(&self, tenant: &Tenant, id: &str) -> Result<Option<BulkChange>, Error> {
        self.on_snapshot(Operation::Bulk, |snapshot| snapshot.bulk_change(tenant, id))
    }

    async fn listed_users(
        &self,
        tenant: &Tenant,
        id: &str,
        batch: u32,
    ) -> Result<Vec<LocalityId>, Error> {
        self.on_snapshot(Operation::Bulk, |snapshot| {
            snapshot.listed_users((tenant.as_str(), id, batch))
        })
    }

    async fn bulk_changes(&self, tenant: &Tenant) -> Result<Vec<BulkChange>, Error> {
        self.on_snapshot(Operation::Bulk, |snapshot| snapshot.bulk_changes(tenant))
    }

    async fn due_bulk_changes(
        &self,
        now: Timestamp,
        limit: usize,
    ) -> Result<Vec<DueBulkChange>, Error> {
        self.on_snapshot(Operation::Bulk, |snapshot| snapshot.due_bulk_changes(true, now, limit))
    }

    async fn expired_bulk_changes(
        &self,
        now: Timestamp,
        limit: usize,
    ) -> Result<Vec<BulkChangeKey>, Error> {
        let expired = self.on_snapshot(Operation::Bulk, |snapshot| {
            snapshot.due_bulk_changes(false, now, limit)
        })?;
        Ok(expired.into_iter().map(|change| change.key).collect())
    }

    async fn remove_bulk_changes(&self, tenant: &Tenant) -> Result<(), Error> {
        let tenant = tenant.clone();
        self.write_aside(Operation::Bulk, move |transaction| {
            let mut tables = BulkTables::open(transaction)?;
            for id in tables.ids(&tenant)? {
                tables.remove((tenant.as_str(), &id))?;
            }
            Ok(())
        })
        .await
    }
}

/// The tables of bulk changes inside a write transaction.
pub struct BulkTables<'t> {
    changes: Table<'t, (&'static str, &'static str), (i64, bool, &'static [u8])>,
    times: Table<'t, (i64, &'static str, &'static str), ()>,
    /// Opened for lists alone.
    transaction: &'t WriteTransaction,
}

impl<'t> BulkTables<'t> {
    /// Opens the tables, and creates them if they are missing.
    pub fn open(transaction: &'t WriteTransaction) -> Result<Self, Fault> {
        let changes = transaction.open_table(BULK_CHANGES)?;
        Ok(Self { changes, times: transaction.open_table(BULK_TIMES)?, transaction })
    }

    /// A bulk change.
    pub fn get(&self, tenant: &Tenant, id: &str) -> Result<Option<BulkChange>, Fault> {
        read_change(&self.changes, (tenant.as_str(), id))
    }

    /// The number of a tenant's running bulk changes.
    pub fn count_running(&self, tenant: &Tenant) -> Result<usize, Fault> {
        let mut count = 0;
        for row in self.changes.range(all_of(tenant))? {
            let (key, row) = row?;
            let (_, is_running, bytes) = row.value();
            // One that cannot be read does not run.
            count += usize::from(is_running && decode(key.value(), bytes).is_ok());
        }
        Ok(count)
    }

    /// Stores a bulk change.
    pub fn put(&mut self, change: &BulkChange) -> Result<(), Fault> {
        let (tenant, id, due) = (change.tenant.as_str(), &*change.id, change.due_time());
        self.remove_row((tenant, id))?;
        let row = (due.as_millis(), change.is_running(), &*change.encode());
        self.changes.insert((tenant, id), row)?;
        self.times.insert((due.as_millis(), tenant, id), ())?;
        Ok(())
    }

    /// Stores the users of a bulk change by a list, in place of those that it had.
    pub fn put_users(&self, (tenant, id): (&str, &str), users: &[LocalityId]) -> Result<(), Fault> {
        let mut rows = self.transaction.open_table(BULK_USERS)?;
        rows.retain_in(batches_of((tenant, id)), |_, _| false)?;
        for (users, n) in users.chunks(BulkList::BATCH_USERS).zip(0..) {
            rows.insert((tenant, id, n), &*encode_users(users))?;
        }
        Ok(())
    }

    /// Removes a bulk change, and its list.
    pub fn remove(&mut self, key: (&str, &str)) -> Result<(), Fault> {
        self.remove_row(key)?;
        self.remove_users(key)
    }

    fn remove_users(&self, key: (&str, &str)) -> Result<(), Fault> {
        let mut rows = self.transaction.open_table(BULK_USERS)?;
        Ok(rows.retain_in(batches_of(key), |_, _| false)?)
    }

    /// Removes a bulk change without its list.
    fn remove_row(&mut self, (tenant, id): (&str, &str)) -> Result<(), Fault> {
        if let Some(row) = self.changes.remove((tenant, id))? {
            self.times.remove((row.value().0, tenant, id))?;
        }
        Ok(())
    }

    /// Stops a bulk change, unless it cannot be read.
    pub fn stop(&mut self, key: (&str, &str), reason: &str, now: Timestamp) -> Result<(), Fault> {
        let found = self.changes.get(key)?.and_then(|row| decode(key, row.value().2).ok());
        if let Some(mut change) = found {
            change.stop(reason, now);
            self.put(&change)?;
        }
        Ok(())
    }

    /// Repairs a fault, unless the bulk change cannot be read.
    pub fn repair(&mut self, fault: &BulkFault) -> Result<(), Fault> {
        match fault {
            BulkFault::Unreadable(_) | BulkFault::LostUsers(_) => {}
            BulkFault::StrayUsers(BulkKey { tenant, id }) => self.remove_users((tenant, id))?,
            BulkFault::Tenantless(BulkKey { tenant, id }) => self.remove((tenant, id))?,
            BulkFault::Unscheduled(BulkKey { tenant, id }) => {
                if let Some(change) = read_change(&self.changes, (tenant, id))? {
                    self.put(&change)?;
                }
            }
            BulkFault::StrayTime(due, BulkKey { tenant, id }) => {
                self.times.remove((*due, &**tenant, &**id))?;
            }
        }
        Ok(())
    }

    fn ids(&self, tenant: &Tenant) -> Result<Vec<String>, Fault> {
        let rows = self.changes.range(all_of(tenant))?;
        rows.map(|row| Ok(row?.0.value().1.to_owned())).collect()
    }
}

impl Snapshot {
    fn bulk_change(&self, tenant: &Tenant, id: &str) -> Result<Option<BulkChange>, Fault> {
        let Some(changes) = optional(self.transaction.open_table(BULK_CHANGES))? else {
            return Ok(None);
        };
        read_change(&changes, (tenant.as_str(), id))
    }

    fn listed_users(&self, batch: (&str, &str, u32)) -> Result<Vec<LocalityId>, Fault> {
        let rows = optional(self.transaction.open_table(BULK_USERS))?;
        let row = rows.map(|rows| rows.get(batch)).transpose()?.flatten();
        let users = row.map(|row| decode_users(row.value()).map_err(Fault::damaged));
        Ok(users.transpose()?.unwrap_or_default())
    }

    fn bulk_changes(&self, tenant: &Tenant) -> Result<Vec<BulkChange>, Fault> {
        let Some(changes) = optional(self.transaction.open_table(BULK_CHANGES))? else {
            return Ok(Vec::new());
        };
        let mut found = Vec::new();
        for row in changes.range(all_of(tenant))? {
            let (key, row) = row?;
            found.extend(readable(key.value(), decode(key.value(), row.value().2))?);
        }
        Ok(found)
    }

    /// The bulk changes that are due and run, or have ended.
    fn due_bulk_changes(
        &self,
        is_running: bool,
        now: Timestamp,
        limit: usize,
    ) -> Result<Vec<DueBulkChange>, Fault> {
        let changes = optional(self.transaction.open_table(BULK_CHANGES))?;
        let times = optional(self.transaction.open_table(BULK_TIMES))?;
        let (Some(changes), Some(times)) = (changes, times) else { return Ok(Vec::new()) };
        let mut due = Vec::new();
        for row in times.range(..(now.as_millis().saturating_add(1), "", ""))? {
            if due.len() == limit {
                break;
            }
            let key = row?.0;
            let (time, tenant, id) = key.value();
            if changes.get((tenant, id))?.is_some_and(|row| row.value().1 != is_running) {
                continue;
            }
            let change = readable((tenant, id), change_at(&changes, time, (tenant, id)))?;
            due.extend(change.map(DueBulkChange::from));
        }
        Ok(due)
    }
}

/// The tenants and ids of all running bulk changes.
pub fn running_bulk_changes(transaction: &ReadTransaction) -> Result<Vec<(String, String)>, Fault> {
    let mut running = Vec::new();
    if let Some(changes) = optional(transaction.open_table(BULK_CHANGES))? {
        for row in changes.iter()? {
            let (key, row) = row?;
            let (tenant, id) = key.value();
            if row.value().1 {
                running.push((tenant.to_owned(), id.to_owned()));
            }
        }
    }
    Ok(running)
}

/// The bulk change that is due at a time.
fn change_at(
    changes: &impl ReadableTable<(&'static str, &'static str), (i64, bool, &'static [u8])>,
    time: i64,
    key: (&str, &str),
) -> Result<BulkChange, Fault> {
    let row = changes.get(key)?.filter(|row| row.value().0 == time);
    let row = row.ok_or_else(|| Fault::damaged("a time without its bulk change"))?;
    decode(key, row.value().2)
}

fn read_change(
    changes: &impl ReadableTable<(&'static str, &'static str), (i64, bool, &'static [u8])>,
    key: (&str, &str),
) -> Result<Option<BulkChange>, Fault> {
    let row = changes.get(key)?;
    row.map(|row| decode(key, row.value().2)).transpose()
}

/// Leaves a bulk change out that is damaged.
fn readable(
    (tenant, id): (&str, &str),
    read: Result<BulkChange, Fault>,
) -> Result<Option<BulkChange>, Fault> {
    match read {
        Err(fault @ Fault::Damaged(_)) => {
            report_unreadable_bulk(tenant, id, &fault);
            Ok(None)
        }
        read => read.map(Some),
    }
}

fn all_of(tenant: &Tenant) -> std::ops::RangeInclusive<(&str, &str)> {
    (tenant.as_str(), "")..=(tenant.as_str(), LAST_ID)
}

/// The batches of the list of a bulk change.
pub fn batches_of<'k>(
    (tenant, id): (&'k str, &'k str),
) -> std::ops::RangeInclusive<(&'k str, &'k str, u32)> {
    (tenant, id, 0)..=(tenant, id, u32::MAX)
}

/// Decodes a bulk change that is stored under this tenant and id.
pub fn decode(key: (&str, &str), bytes: &[u8]) -> Result<BulkChange, Fault> {
    BulkChange::decode(key, bytes).map_err(Fault::damaged)
}
