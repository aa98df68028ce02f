//! Deliveries. Their tables exist once a tenant has had one.

use std::ops::RangeInclusive;

use async_trait::async_trait;
use redb::{ReadTransaction, ReadableTable, Table, WriteTransaction};

use crate::error::Fault;
use crate::lookup::snapshot::{Snapshot, optional};
use crate::schema::tables::{DELIVERIES, DELIVERY_TIMES};
use crate::store::Embedded;
use polynym_directory::{Deliveries, DeliveryKey, Error, EventDelivery, Tenant, Timestamp};
use polynym_store_common::operations::Operation;
use polynym_store_common::unreadable::report_unreadable_delivery;

/// Greater than the id of any delivery.
const LAST_ID: &str = "\u{10ffff}";

#[async_trait]
impl Deliveries for Embedded {
    async fn delivery(&self, tenant: &Tenant, id: &str) -> Result<Option<EventDelivery>, Error> {
        self.on_snapshot(Operation::Delivery, |snapshot| snapshot.delivery(tenant, id))
    }

    async fn deliveries(&self, tenant: &Tenant) -> Result<Vec<EventDelivery>, Error> {
        self.on_snapshot(Operation::Delivery, |snapshot| snapshot.deliveries(tenant))
    }

    async fn due_deliveries(
        &self,
        now: Timestamp,
        limit: usize,
    ) -> Result<Vec<DeliveryKey>, Error> {
        self.on_snapshot(Operation::Delivery, |snapshot| snapshot.due_deliveries(now, limit))
    }

    async fn remove_deliveries(&self, tenant: &Tenant) -> Result<(), Error> {
        let tenant = tenant.clone();
        self.write_aside(Operation::Delivery, move |transaction| {
            let mut tables = DeliveryTables::open(transaction)?;
            for id in tables.ids(&tenant)? {
                tables.remove((tenant.as_str(), &id))?;
            }
            Ok(())
        })
        .await
    }
}

/// The tables of deliveries inside a write transaction.
pub struct DeliveryTables<'t> {
    deliveries: Table<'t, (&'static str, &'static str), &'static [u8]>,
    times: Table<'t, (&'static str, &'static str), i64>,
}

impl<'t> DeliveryTables<'t> {
    /// Opens the tables, and creates them if they are missing.
    pub fn open(transaction: &'t WriteTransaction) -> Result<Self, Fault> {
        let deliveries = transaction.open_table(DELIVERIES)?;
        Ok(Self { deliveries, times: transaction.open_table(DELIVERY_TIMES)? })
    }

    /// A delivery.
    pub fn get(&self, tenant: &Tenant, id: &str) -> Result<Option<EventDelivery>, Fault> {
        read(&self.deliveries, (tenant.as_str(), id))
    }

    /// The number of a tenant's deliveries.
    pub fn count(&self, tenant: &Tenant) -> Result<usize, Fault> {
        Ok(self.deliveries.range(all_of(tenant))?.count())
    }

    /// Stores a delivery.
    pub fn put(&mut self, delivery: &EventDelivery) -> Result<(), Fault> {
        let key = (delivery.tenant.as_str(), &*delivery.id);
        self.deliveries.insert(key, &*delivery.encode())?;
        match delivery.due_time() {
            Some(due) => self.times.insert(key, due.as_millis())?,
            None => self.times.remove(key)?,
        };
        Ok(())
    }

    /// Removes a delivery.
    pub fn remove(&mut self, key: (&str, &str)) -> Result<(), Fault> {
        self.deliveries.remove(key)?;
        self.times.remove(key)?;
        Ok(())
    }

    /// Pauses a delivery. One that cannot be read is not due any more.
    pub fn pause(&mut self, key: (&str, &str), reason: &str, now: Timestamp) -> Result<(), Fault> {
        match read(&self.deliveries, key) {
            Ok(Some(mut delivery)) => {
                delivery.stop(reason, "", now);
                self.put(&delivery)
            }
            _ => Ok(self.times.remove(key).map(drop)?),
        }
    }

    fn ids(&self, tenant: &Tenant) -> Result<Vec<String>, Fault> {
        let rows = self.deliveries.range(all_of(tenant))?;
        rows.map(|row| Ok(row?.0.value().1.to_owned())).collect()
    }
}

impl Snapshot {
    fn delivery(&self, tenant: &Tenant, id: &str) -> Result<Option<EventDelivery>, Fault> {
        let Some(table) = optional(self.transaction.open_table(DELIVERIES))? else {
            return Ok(None);
        };
        read(&table, (tenant.as_str(), id))
    }

    fn deliveries(&self, tenant: &Tenant) -> Result<Vec<EventDelivery>, Fault> {
        let Some(table) = optional(self.transaction.open_table(DELIVERIES))? else {
            return Ok(Vec::new());
        };
        let mut found = Vec::new();
        for row in table.range(all_of(tenant))? {
            let (key, row) = row?;
            match decode(key.value(), row.value()) {
                Ok(delivery) => found.push(delivery),
                Err(fault) => {
                    let (tenant, id) = key.value();
                    report_unreadable_delivery(tenant, id, &fault);
                }
            }
        }
        Ok(found)
    }

    fn due_deliveries(&self, now: Timestamp, limit: usize) -> Result<Vec<DeliveryKey>, Fault> {
        let mut due = Vec::new();
        if let Some(times) = optional(self.transaction.open_table(DELIVERY_TIMES))? {
            for row in times.iter()? {
                let (key, time) = row?;
                if time.value() <= now.as_millis() {
                    let (tenant, id) = key.value();
                    // One that cannot be read hides no other.
                    match Tenant::parse(tenant).map_err(Fault::damaged) {
                        Ok(tenant) => due.push((time.value(), (tenant, id.to_owned()))),
                        Err(fault) => report_unreadable_delivery(tenant, id, &fault),
                    }
                }
            }
        }
        due.sort();
        due.truncate(limit);
        Ok(due.into_iter().map(|(_, key)| key).collect())
    }
}

/// The tenants and ids of all deliveries that are not paused.
pub fn active_deliveries(transaction: &ReadTransaction) -> Result<Vec<(String, String)>, Fault> {
    let mut active = Vec::new();
    if let Some(times) = optional(transaction.open_table(DELIVERY_TIMES))? {
        for row in times.iter()? {
            let key = row?.0;
            let (tenant, id) = key.value();
            active.push((tenant.to_owned(), id.to_owned()));
        }
    }
    Ok(active)
}

/// The tenants and ids of deliveries that cannot be read.
pub fn unreadable_deliveries(transaction: &ReadTransaction) -> Result<Vec<String>, Fault> {
    let mut unreadable = Vec::new();
    if let Some(table) = optional(transaction.open_table(DELIVERIES))? {
        for row in table.iter()? {
            let (key, row) = row?;
            if decode(key.value(), row.value()).is_err() {
                let (tenant, id) = key.value();
                unreadable.push(format!("{tenant}/{id}"));
            }
        }
    }
    Ok(unreadable)
}

fn read(
    table: &impl ReadableTable<(&'static str, &'static str), &'static [u8]>,
    key: (&str, &str),
) -> Result<Option<EventDelivery>, Fault> {
    let row = table.get(key)?;
    row.map(|row| decode(key, row.value())).transpose()
}

/// Decodes the delivery that is stored under this tenant and id.
fn decode(key: (&str, &str), bytes: &[u8]) -> Result<EventDelivery, Fault> {
    EventDelivery::decode(key, bytes).map_err(Fault::damaged)
}

fn all_of(tenant: &Tenant) -> RangeInclusive<(&str, &str)> {
    (tenant.as_str(), "")..=(tenant.as_str(), LAST_ID)
}
