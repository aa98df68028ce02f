//! The check of bulk changes: compares each with the row in which it is stored, with the time at
//! which servers look for it, and with its list of users.

use redb::{Range, ReadOnlyTable, ReadTransaction};

use crate::bulk_changes::{batches_of, decode};
use crate::error::Fault;
use crate::lookup::snapshot::optional;
use crate::schema::tables::{BULK_CHANGES, BULK_TIMES, BULK_USERS, TENANTS};
use polynym_directory::BulkList;
use polynym_directory::encoded::bulk_change::decode_users;
use polynym_store_common::integrity::{BulkFault, BulkKey};

type Key = (&'static str, &'static str);
type Row = (i64, bool, &'static [u8]);
type Time = (i64, &'static str, &'static str);
type Batch = (&'static str, &'static str, u32);

/// The check of all bulk changes: one item for each of them, then one for each time and for each
/// batch of a list.
pub struct BulkCheck {
    changes: ReadOnlyTable<Key, Row>,
    times: ReadOnlyTable<Time, ()>,
    tenants: ReadOnlyTable<&'static str, &'static [u8]>,
    changes_left: Range<'static, Key, Row>,
    times_left: Range<'static, Time, ()>,
    /// The batches of lists, if there ever was a list.
    users: Option<ReadOnlyTable<Batch, &'static [u8]>>,
    users_left: Option<Range<'static, Batch, &'static [u8]>>,
}

impl BulkCheck {
    /// The check of a store. None if it never had a bulk change.
    pub fn new(transaction: &ReadTransaction) -> Result<Option<Self>, Fault> {
        let changes = optional(transaction.open_table(BULK_CHANGES))?;
        let times = optional(transaction.open_table(BULK_TIMES))?;
        let (Some(changes), Some(times)) = (changes, times) else { return Ok(None) };
        let users = optional(transaction.open_table(BULK_USERS))?;
        let all = users.as_ref().map(|users| users.range::<(&str, &str, u32)>(..));
        Ok(Some(Self {
            users_left: all.transpose()?,
            users,
            changes_left: changes.range::<(&str, &str)>(..)?,
            times_left: times.range::<(i64, &str, &str)>(..)?,
            tenants: transaction.open_table(TENANTS)?,
            changes,
            times,
        }))
    }

    fn step(&mut self) -> Result<Option<Option<BulkFault>>, Fault> {
        if let Some(row) = self.changes_left.next() {
            let (key, row) = row?;
            return self.check_change(key.value(), row.value()).map(Some);
        }
        let Some(row) = self.times_left.next() else { return self.next_batch() };
        let key = row?.0;
        let (time, tenant, id) = key.value();
        let is_stray = !self.has_change_at(time, (tenant, id))?;
        Ok(Some(is_stray.then(|| BulkFault::StrayTime(time, BulkKey::new((tenant, id))))))
    }

    /// The check of the next batch. A list has at most one finding.
    fn next_batch(&mut self) -> Result<Option<Option<BulkFault>>, Fault> {
        let Some(row) = self.users_left.as_mut().and_then(Iterator::next) else { return Ok(None) };
        let key = row?.0;
        let (tenant, id, batch) = key.value();
        let change = self.changes.get((tenant, id))?;
        let is_own = change.is_some_and(|row| {
            decode((tenant, id), row.value().2).map_or(true, |change| change.list.is_some())
        });
        let is_stray = !is_own && batch == 0;
        Ok(Some(is_stray.then(|| BulkFault::StrayUsers(BulkKey::new((tenant, id))))))
    }

    /// Whether the list of a bulk change has all its batches.
    fn has_users(&self, key: (&str, &str), list: BulkList) -> Result<bool, Fault> {
        let Some(users) = &self.users else { return Ok(false) };
        let mut count = 0;
        for row in users.range(batches_of(key))? {
            count += decode_users(row?.1.value()).map_or(0, |users| users.len() as u64);
        }
        Ok(count == list.users)
    }

    fn check_change(
        &self,
        key: (&str, &str),
        (due, is_running, bytes): (i64, bool, &[u8]),
    ) -> Result<Option<BulkFault>, Fault> {
        let (tenant, id) = key;
        let Ok(change) = decode(key, bytes) else {
            return Ok(Some(BulkFault::Unreadable(BulkKey::new(key).to_string())));
        };
        if self.tenants.get(tenant)?.is_none() {
            return Ok(Some(BulkFault::Tenantless(BulkKey::new(key))));
        }
        let is_own = (due, is_running) == (change.due_time().as_millis(), change.is_running());
        let is_found = is_own && self.times.get((due, tenant, id))?.is_some();
        if !is_found {
            return Ok(Some(BulkFault::Unscheduled(BulkKey::new(key))));
        }
        let has_users = change.list.map(|list| self.has_users(key, list)).transpose()?;
        Ok((has_users == Some(false)).then(|| BulkFault::LostUsers(BulkKey::new(key))))
    }

    /// Whether a bulk change is due at this time by its row or by its content. If the two differ,
    /// the bulk change has that fault.
    fn has_change_at(&self, time: i64, key: (&str, &str)) -> Result<bool, Fault> {
        let Some(row) = self.changes.get(key)? else { return Ok(false) };
        let (due, _, bytes) = row.value();
        let is_own = |due: i64| due == time;
        Ok(is_own(due) || decode(key, bytes).is_ok_and(|own| is_own(own.due_time().as_millis())))
    }
}

impl Iterator for BulkCheck {
    type Item = Result<Option<BulkFault>, Fault>;

    fn next(&mut self) -> Option<Self::Item> {
        self.step().transpose()
    }
}
