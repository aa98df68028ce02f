//! The journal inside one write transaction: events, numbered in the order of their writes, and the
//! ended ownerships of identifiers. Each event has the number of the same user's previous event,
//! and the user's record that of the last one: an event costs one row at the end of the table.

use std::time::Duration;

use locality_uuid::LocalityId;
use redb::{ReadableTable, Table, WriteTransaction};

use crate::error::Fault;
use crate::history::read::{ended_of, next_number};
use crate::schema::event::{StoredEvent, encode_event_row};
use crate::schema::tables::{
    ENDED, EVENT_TIMES, EVENTS, NEXT_EVENT, TENANT_EVENT_TIMES, TENANT_EVENTS,
};
use crate::schema::user::JournalHead;
use polynym_directory::encoded::event::encode_ended;
use polynym_directory::encoded::tenant_event::encode_tenant_event;
use polynym_directory::model::event::{Event, of_sequence};
use polynym_directory::model::ownership::{EndedOwnerships, Ownership};
use polynym_directory::model::record::Record;
use polynym_directory::model::tenant_event::TenantEvent;
use polynym_directory::mutation::Mutation;
use polynym_directory::mutation::journal::beginning;
use polynym_directory::timestamp::Timestamp;
use polynym_identifier::IdentityKey;

/// The most expired events of tenants that are removed when one is added.
const MAX_SWEPT: usize = 4;

pub struct Journal<'t> {
    events: Table<'t, u64, &'static [u8]>,
    event_times: Table<'t, (i64, u64), ()>,
    next_event: Table<'t, (), u64>,
    ended: Table<'t, &'static [u8], &'static [u8]>,
    /// Opens the tables of tenants' events, which few transactions need.
    transaction: &'t WriteTransaction,
    /// The number of the next event.
    next: u64,
    /// `next` as it was when the transaction began.
    first: u64,
}

/// A removed event.
struct Removed {
    /// The number of the user's previous event.
    previous: u64,
    time: Timestamp,
    /// The keys of the identities that the user lost.
    lost: Vec<IdentityKey>,
}

impl<'t> Journal<'t> {
    pub fn open(transaction: &'t WriteTransaction) -> Result<Self, Fault> {
        let next_event = transaction.open_table(NEXT_EVENT)?;
        let next = next_number(&next_event)?;
        Ok(Self {
            events: transaction.open_table(EVENTS)?,
            event_times: transaction.open_table(EVENT_TIMES)?,
            next_event,
            ended: transaction.open_table(ENDED)?,
            transaction,
            next,
            first: next,
        })
    }

    /// Writes an event of a user whose record was `before`. If the user has no history yet, it
    /// first writes an event with the user's former state.
    pub fn add(
        &mut self,
        mutation: &Mutation,
        head: JournalHead,
        before: Option<&Record>,
        event: &Event,
    ) -> Result<JournalHead, Fault> {
        let mut head = head;
        if let Some(before) = before.filter(|_| head.count == 0) {
            head = self.write(mutation, head, beginning(before, event))?;
        }
        self.write(mutation, head, event.clone())
    }

    fn write(
        &mut self,
        mutation: &Mutation,
        head: JournalHead,
        event: Event,
    ) -> Result<JournalHead, Fault> {
        let (number, sequence) = (self.next, head.count + 1);
        let row = encode_event_row(head.last, &Event { sequence, ..event });
        let expiry = mutation.time.plus(mutation.policies.history_retention);
        self.events.insert(number, row.as_slice())?;
        self.event_times.insert((expiry.as_millis(), number), ())?;
        self.next += 1;
        Ok(JournalHead { count: sequence, last: number })
    }

    /// Adds an event of a tenant. Removes a few expired ones, of any tenant, unless the time is
    /// uncertain.
    pub fn add_tenant_event(
        &self,
        event: &TenantEvent,
        retention: Duration,
        clock_uncertain: bool,
    ) -> Result<(), Fault> {
        let mut events = self.transaction.open_table(TENANT_EVENTS)?;
        let mut times = self.transaction.open_table(TENANT_EVENT_TIMES)?;
        let now = (event.time.as_millis(), "", 0);
        let max_swept = if clock_uncertain { 0 } else { MAX_SWEPT };
        let expired = times.extract_from_if(..now, |_, ()| true)?.take(max_swept);
        for entry in expired {
            let (entry, _) = entry?;
            let (_, tenant, number) = entry.value();
            events.remove((tenant, number))?;
        }

        let name = event.tenant.as_str();
        let last = events.range((name, 0)..=(name, u64::MAX))?.next_back().transpose()?;
        let last = last.map_or(0, |(key, _)| key.value().1);
        // At least the time, so that no number is reused once the former events are removed.
        let number = event.time.as_millis().unsigned_abs().max(last + 1);
        events.insert((name, number), encode_tenant_event(event).as_slice())?;
        times.insert((event.time.plus(retention).as_millis(), name, number), ())?;
        Ok(())
    }

    /// Adds to the ended ownerships of a key.
    pub fn end(&mut self, key: &IdentityKey, ownership: &Ownership) -> Result<(), Fault> {
        self.change_ended(key, |ended| ended.push(ownership.clone()))
    }

    /// Removes a user from the ended ownerships of a key.
    pub fn forget(&mut self, key: &IdentityKey, user: LocalityId) -> Result<(), Fault> {
        self.change_ended(key, |ended| {
            if !ended.forget(user) {
                ended.0.clear();
            }
        })
    }

    /// The events of a history, the newest first.
    pub fn history(&self, head: JournalHead) -> Result<Vec<Event>, Fault> {
        let (mut events, mut number) = (Vec::new(), head.last);
        while let Some(row) = self.events.get(number)? {
            let row = StoredEvent::read(row.value())?;
            // A damaged event must not prevent the purge of its user.
            events.extend(row.decode());
            number = row.previous;
        }
        Ok(events)
    }

    /// Replaces the events of a history that have the same sequence numbers as `events`, which are
    /// sorted, the newest first.
    pub fn replace(&mut self, head: JournalHead, events: &[Event]) -> Result<(), Fault> {
        let (mut number, mut left) = (head.last, events.len());
        while left > 0 {
            let Some(row) = self.events.get(number)?.map(|row| row.value().to_vec()) else {
                break;
            };
            let row = StoredEvent::read(&row)?;
            let sequence = row.decode().map(|event| event.sequence).unwrap_or_default();
            if let Some(new) = of_sequence(events, sequence) {
                self.events.insert(number, encode_event_row(row.previous, new).as_slice())?;
                left -= 1;
            }
            number = row.previous;
        }
        Ok(())
    }

    /// Removes the history of a user, and the user from ended ownerships.
    pub fn forget_user(&mut self, id: LocalityId, head: JournalHead) -> Result<(), Fault> {
        let mut number = head.last;
        while let Some(event) = self.remove(number)? {
            number = event.previous;
            for key in event.lost {
                self.forget(&key, id)?;
            }
        }
        Ok(())
    }

    /// Removes the event that expires first if it has expired, and the ownerships that it ended.
    /// Returns whether it had.
    pub fn sweep(&mut self, now: Timestamp) -> Result<bool, Fault> {
        let first = self.event_times.first()?.map(|(entry, _)| entry.value());
        let Some((expiry, number)) = first.filter(|(expiry, _)| *expiry <= now.as_millis()) else {
            return Ok(false);
        };
        self.event_times.remove((expiry, number))?;
        self.forget_event(number)?;
        Ok(true)
    }

    /// Gives an event an earlier expiry, or removes it if that is over.
    pub fn expire_earlier(
        &mut self,
        (expiry, number): (i64, u64),
        earlier: Timestamp,
        now: Timestamp,
    ) -> Result<(), Fault> {
        self.event_times.remove((expiry, number))?;
        if earlier > now {
            self.event_times.insert((earlier.as_millis(), number), ())?;
            return Ok(());
        }
        self.forget_event(number)
    }

    /// Removes an event, and the ownerships that ended with it or before it.
    fn forget_event(&mut self, number: u64) -> Result<(), Fault> {
        if let Some(event) = self.remove(number)? {
            for key in event.lost {
                self.change_ended(&key, |ended| ended.0.retain(|one| one.end > event.time))?;
            }
        }
        Ok(())
    }

    fn remove(&mut self, number: u64) -> Result<Option<Removed>, Fault> {
        let Some(row) = self.events.remove(number)? else { return Ok(None) };
        let row = StoredEvent::read(row.value())?;
        // A damaged event must not prevent other writes.
        let event = row.decode().ok();
        let lost = event.iter().flat_map(Event::lost_keys).collect();
        let time = event.map(|event| event.time).unwrap_or_default();
        Ok(Some(Removed { previous: row.previous, time, lost }))
    }

    fn change_ended(
        &mut self,
        key: &IdentityKey,
        change: impl FnOnce(&mut EndedOwnerships),
    ) -> Result<(), Fault> {
        let mut ended = ended_of(&self.ended, key)?;
        change(&mut ended);
        let key = key.as_str().as_bytes();
        match ended.0.is_empty() {
            true => drop(self.ended.remove(key)?),
            false => drop(self.ended.insert(key, encode_ended(&ended).as_slice())?),
        }
        Ok(())
    }

    /// Writes the number of the next event.
    pub fn finish(&mut self) -> Result<(), Fault> {
        if self.next != self.first {
            self.next_event.insert((), self.next)?;
        }
        Ok(())
    }
}
