//! Bulk changes. Their tables exist once a tenant has had one.

use async_trait::async_trait;
use redb::{ReadableTable, Table, WriteTransaction};

use crate::error::Fault;
use crate::lookup::snapshot::{Snapshot, optional};
use crate::schema::tables::{BULK_CHANGES, BULK_TIMES};
use crate::store::Embedded;
use polynym_directory::error::Error;
use polynym_directory::model::bulk::change::BulkChange;
use polynym_directory::model::tenant::Tenant;
use polynym_directory::stores::BulkChanges;
use polynym_directory::timestamp::Timestamp;

/// Greater than the id of any bulk change.
const LAST_ID: &str = "\u{10ffff}";

#[async_trait]
impl BulkChanges for Embedded {
    async fn bulk_change(&self, tenant: &Tenant, id: &str) -> Result<Option<BulkChange>, Error> {
        self.on_snapshot(|snapshot| snapshot.bulk_change(tenant, id))
    }

    async fn bulk_changes(&self, tenant: &Tenant) -> Result<Vec<BulkChange>, Error> {
        self.on_snapshot(|snapshot| snapshot.bulk_changes(tenant))
    }

    async fn due_bulk_changes(
        &self,
        now: Timestamp,
        limit: usize,
    ) -> Result<Vec<(Tenant, String)>, Error> {
        self.on_snapshot(|snapshot| snapshot.due_bulk_changes(true, now, limit))
    }

    async fn expired_bulk_changes(
        &self,
        now: Timestamp,
        limit: usize,
    ) -> Result<Vec<(Tenant, String)>, Error> {
        self.on_snapshot(|snapshot| snapshot.due_bulk_changes(false, now, limit))
    }

    async fn remove_bulk_changes(&self, tenant: &Tenant) -> Result<(), Error> {
        let tenant = tenant.clone();
        self.write_aside(move |transaction| {
            let mut tables = BulkTables::open(transaction)?;
            for id in tables.ids(&tenant)? {
                tables.remove(&tenant, &id)?;
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
}

impl<'t> BulkTables<'t> {
    /// Opens the tables, and creates them if they are missing.
    pub fn open(transaction: &'t WriteTransaction) -> Result<Self, Fault> {
        let changes = transaction.open_table(BULK_CHANGES)?;
        Ok(Self { changes, times: transaction.open_table(BULK_TIMES)? })
    }

    /// A bulk change.
    pub fn get(&self, tenant: &Tenant, id: &str) -> Result<Option<BulkChange>, Fault> {
        let row = self.changes.get((tenant.as_str(), id))?;
        row.map(|row| decode(row.value().2)).transpose()
    }

    /// The number of a tenant's running bulk changes.
    pub fn count_running(&self, tenant: &Tenant) -> Result<usize, Fault> {
        let mut count = 0;
        for row in self.changes.range(all_of(tenant))? {
            count += usize::from(row?.1.value().1);
        }
        Ok(count)
    }

    /// Stores a bulk change.
    pub fn put(&mut self, change: &BulkChange) -> Result<(), Fault> {
        let (tenant, id, due) = (change.tenant.as_str(), &*change.id, change.due_time());
        self.remove(&change.tenant, id)?;
        let row = (due.as_millis(), change.is_running(), &*change.encode());
        self.changes.insert((tenant, id), row)?;
        self.times.insert((due.as_millis(), tenant, id), ())?;
        Ok(())
    }

    /// Removes a bulk change.
    pub fn remove(&mut self, tenant: &Tenant, id: &str) -> Result<(), Fault> {
        let key = (tenant.as_str(), id);
        let due = self.changes.remove(key)?.map(|row| row.value().0);
        if let Some(due) = due {
            self.times.remove((due, tenant.as_str(), id))?;
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
        let row = changes.get((tenant.as_str(), id))?;
        row.map(|row| decode(row.value().2)).transpose()
    }

    fn bulk_changes(&self, tenant: &Tenant) -> Result<Vec<BulkChange>, Fault> {
        let Some(changes) = optional(self.transaction.open_table(BULK_CHANGES))? else {
            return Ok(Vec::new());
        };
        changes.range(all_of(tenant))?.map(|row| decode(row?.1.value().2)).collect()
    }

    /// The bulk changes that are due and run, or have ended.
    fn due_bulk_changes(
        &self,
        is_running: bool,
        now: Timestamp,
        limit: usize,
    ) -> Result<Vec<(Tenant, String)>, Fault> {
        let Some(times) = optional(self.transaction.open_table(BULK_TIMES))? else {
            return Ok(Vec::new());
        };
        let changes = self.transaction.open_table(BULK_CHANGES)?;
        let mut due = Vec::new();
        for row in times.range(..(now.as_millis().saturating_add(1), "", ""))? {
            if due.len() == limit {
                break;
            }
            let key = row?.0;
            let (_, tenant, id) = key.value();
            let change = changes.get((tenant, id))?;
            if change.is_some_and(|row| row.value().1 == is_running) {
                due.push((Tenant::parse(tenant).map_err(Fault::damaged)?, id.to_owned()));
            }
        }
        Ok(due)
    }
}

fn all_of(tenant: &Tenant) -> std::ops::RangeInclusive<(&str, &str)> {
    (tenant.as_str(), "")..=(tenant.as_str(), LAST_ID)
}

fn decode(bytes: &[u8]) -> Result<BulkChange, Fault> {
    BulkChange::decode(bytes).map_err(Fault::damaged)
}
