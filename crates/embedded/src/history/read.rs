//! Reads of the journal on a snapshot.

use std::collections::HashMap;

use locality_uuid::LocalityId;
use redb::{AccessGuard, ReadableTable};

use crate::error::Fault;
use crate::lookup::snapshot::Snapshot;
use crate::schema::event::StoredEvent;
use crate::schema::user::StoredUser;
use polynym_directory::{
    EndedOwnerships, History, PageLimit, Tenant, TenantEvent, TenantRecord,
    encoded::event::decode_ended, encoded::event::event_message,
    encoded::tenant_event::decode_tenant_event,
};
use polynym_identifier::IdentityKey;
use polynym_store_common::integrity::Past;

/// The number of an event, and its row.
type EventRow = (u64, AccessGuard<'static, &'static [u8]>);

impl Snapshot {
    /// See [`Histories::history`](polynym_directory::stores::Histories::history). `cursor` is the
    /// number of an event.
    pub fn history(
        &self,
        tenant: &Tenant,
        id: LocalityId,
        cursor: Option<u64>,
        mut limit: PageLimit,
    ) -> Result<Option<History>, Fault> {
        let Some(record) = self.users.get(id.as_bytes())? else { return Ok(None) };
        let stored = StoredUser::read(record.value())?;
        if stored.tenant()? != tenant.as_str() {
            return Ok(None);
        }
        let mut history = History { user: stored.basic(), events: Vec::new(), next: None };
        let mut number = cursor.unwrap_or_else(|| stored.head().last);
        while let Some(row) = self.journal.events.get(number)? {
            let stored = StoredEvent::read(row.value())?;
            if stored.user != id {
                return Err(Fault::damaged("an event of another user in a history"));
            }
            let event = stored.decode()?;
            if !limit.take_message(&event_message(&event)) {
                history.next = Some(number);
                break;
            }
            history.events.push(event);
            number = stored.previous;
        }
        Ok(Some(history))
    }

    /// See [`Histories::tenant_history`](polynym_directory::stores::Histories::tenant_history).
    pub fn tenant_history(
        &self,
        tenant: &Tenant,
        before: Option<u64>,
        limit: usize,
    ) -> Result<Vec<TenantEvent>, Fault> {
        let Some(table) = &self.journal.tenant_events else { return Ok(Vec::new()) };
        let name = tenant.as_str();
        let rows = table.range((name, 0)..(name, before.unwrap_or(u64::MAX)))?.rev();
        let events = rows.take(limit).map(|row| {
            let (key, row) = row?;
            decode_tenant_event(key.value().1, row.value()).map_err(Fault::damaged)
        });
        events.collect()
    }

    /// The number of the next event.
    pub fn next_event(&self) -> Result<u64, Fault> {
        next_number(&self.journal.next_event)
    }

    /// The row of the event with this number.
    pub fn event_row(&self, number: u64) -> Result<Option<Vec<u8>>, Fault> {
        Ok(self.journal.events.get(number)?.map(|row| row.value().to_vec()))
    }

    /// The rows of events from a number on, with their numbers.
    pub fn event_rows(
        &self,
        from: u64,
    ) -> Result<impl Iterator<Item = Result<EventRow, Fault>>, Fault> {
        Ok(self.journal.events.range(from..)?.map(|row| {
            let (number, row) = row?;
            Ok((number.value(), row))
        }))
    }

    /// A user with its history. None if the user does not exist. `tenants` has the records of
    /// tenants that were read.
    pub fn past(
        &self,
        id: LocalityId,
        tenants: &mut HashMap<Tenant, Option<TenantRecord>>,
    ) -> Result<Option<Past>, Fault> {
        let Some(record) = self.users.get(id.as_bytes())? else { return Ok(None) };
        let user = self.decode(&StoredUser::read(record.value())?)?.user;
        let history = self.history(&user.tenant, id, None, PageLimit::unlimited())?;
        if !tenants.contains_key(&user.tenant) {
            tenants.insert(user.tenant.clone(), self.tenant(&user.tenant)?);
        }
        Ok(history.map(|history| {
            let tenant = tenants.get(&user.tenant).and_then(Option::as_ref);
            Past::new(user, history.events, tenant)
        }))
    }

    /// The ended ownerships of a key.
    pub fn ended(&self, key: &IdentityKey) -> Result<EndedOwnerships, Fault> {
        ended_of(&self.journal.ended, key)
    }
}

/// The number of the next event.
pub fn next_number(table: &impl ReadableTable<(), u64>) -> Result<u64, Fault> {
    Ok(table.get(())?.map_or(1, |next| next.value()))
}

/// The ended ownerships of a key.
pub fn ended_of(
    table: &impl ReadableTable<&'static [u8], &'static [u8]>,
    key: &IdentityKey,
) -> Result<EndedOwnerships, Fault> {
    let ended = table.get(key.as_str().as_bytes())?.map(|row| decode_ended(row.value()));
    Ok(ended.transpose().map_err(Fault::damaged)?.unwrap_or_default())
}
