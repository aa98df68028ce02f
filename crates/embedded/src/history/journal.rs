//! The journal inside one write transaction: events, numbered in the order of their writes, and the
//! ended ownerships of identifiers. Each event has the number of the same user's previous event,
//! and the user's record that of the last one: an event costs one row at the end of the table.

use std::time::Duration;

use locality_uuid::LocalityId;
use redb::{ReadableTable, Table, WriteTransaction};

use crate::error::Fault;
use crate::history::read::{ended_of, next_number};
use crate::recent_events::EventChanges;
use crate::schema::event::{StoredEvent, encode_event_row};
use crate::schema::tables::{
    ENDED, EVENT_ORDER, EVENT_TIMES, EVENTS, NEXT_EVENT, TENANT_EVENT_TIMES, TENANT_EVENTS,
};
use crate::schema::user::JournalHead;
use polynym_directory::{
    EndedOwnerships, Event, HistoryEvents, HistoryPart, Mutation, Ownership, PageLimit, Record,
    TenantEvent, Timestamp, encoded::event::encode_ended,
    encoded::tenant_event::encode_tenant_event, model::event::of_sequence,
    mutation::journal::beginning,
};
use polynym_identifier::IdentityKey;
use polynym_store_common::unreadable::report_damaged_history;

/// The most expired events of tenants that are removed when one is added.
const MAX_SWEPT: usize = 4;

pub struct Journal<'t> {
    events: Table<'t, u64, &'static [u8]>,
    event_times: Table<'t, (i64, u64), ()>,
    event_order: Table<'t, (&'static str, i64, u64), ()>,
    next_event: Table<'t, (), u64>,
    ended: Table<'t, &'static [u8], &'static [u8]>,
    /// Opens the tables of tenants' events, which few transactions need.
    transaction: &'t WriteTransaction,
    /// The number of the next event.
    next: u64,
    changes: EventChanges,
}

impl<'t> Journal<'t> {
    pub fn open(transaction: &'t WriteTransaction) -> Result<Self, Fault> {
        let next_event = transaction.open_table(NEXT_EVENT)?;
        let next = next_number(&next_event)?;
        Ok(Self {
            events: transaction.open_table(EVENTS)?,
            event_times: transaction.open_table(EVENT_TIMES)?,
            event_order: transaction.open_table(EVENT_ORDER)?,
            next_event,
            ended: transaction.open_table(ENDED)?,
            transaction,
            next,
            changes: EventChanges::default(),
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
        let event = Event { sequence, ..event };
        let row = encode_event_row(head.last, &event);
        let expiry = mutation.now.time.plus(mutation.policies.history_retention);
        self.events.insert(number, row.as_slice())?;
        self.event_times.insert((expiry.as_millis(), number), ())?;
        let place = (event.tenant.as_str(), event.time.as_millis(), number);
        self.event_order.insert(place, ())?;
        self.changes.added.push((event.tenant, number));
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

    /// Removes a user from the ended ownerships of a key. A damaged row may name the user: it is
    /// removed.
    pub fn forget(&mut self, key: &IdentityKey, user: LocalityId) -> Result<(), Fault> {
        let forgotten = self.change_ended(key, |ended| ended.forget(user));
        if unless_damaged(forgotten)?.is_none() {
            self.ended.remove(key.as_str().as_bytes())?;
        }
        Ok(())
    }

    /// A part of a history. A damaged event must not prevent the purge of its user: the history
    /// ends there.
    pub fn part(&self, head: JournalHead, part: HistoryPart) -> Result<HistoryEvents, Fault> {
        let mut limit = PageLimit::new(part.limit, part.max_bytes());
        let (mut read, mut number) = (HistoryEvents::default(), part.cursor.unwrap_or(head.last));
        while let Some(row) = self.events.get(number)? {
            if !limit.take(row.value().len()) {
                read.next = Some(number);
                break;
            }
            let Some(row) = unless_damaged(event_of(part.user, row.value()))? else {
                read.is_damaged = true;
                break;
            };
            let event = row.decode();
            read.is_damaged |= event.is_err();
            read.events.extend(event);
            number = row.previous;
        }
        Ok(read)
    }

    /// Replaces the events of a part that have the same sequence numbers as `events`, which are
    /// sorted, the newest first.
    pub fn replace(
        &mut self,
        head: JournalHead,
        part: HistoryPart,
        events: &[Event],
    ) -> Result<(), Fault> {
        self.changes.rewrites = true;
        let (mut number, mut left) = (part.cursor.unwrap_or(head.last), events.len());
        while left > 0 {
            let Some(row) = self.events.get(number)?.map(|row| row.value().to_vec()) else {
                break;
            };
            let row = event_of(part.user, &row)?;
            let sequence = row.decode().map(|event| event.sequence).unwrap_or_default();
            if let Some(new) = of_sequence(events, sequence) {
                self.events.insert(number, encode_event_row(row.previous, new).as_slice())?;
                left -= 1;
            }
            number = row.previous;
        }
        Ok(())
    }

    /// Removes the events of a user from a number on to the oldest, and the user from the ended
    /// ownerships of the identifiers that it lost by them. The search for events without users
    /// removes those behind a damaged one.
    pub fn forget_events(&mut self, id: LocalityId, from: u64) -> Result<(), Fault> {
        self.changes.rewrites = true;
        let mut number = from;
        loop {
            let Some(row) = self.events.get(number)?.map(|row| row.value().to_vec()) else {
                return Ok(());
            };
            let is_of_other = StoredEvent::read(&row).is_ok_and(|event| event.user != id);
            if !is_of_other {
                self.remove_event(number)?;
            }
            let Some(row) = unless_damaged(event_of(id, &row))? else { return Ok(()) };
            number = row.previous;
            let event = row.decode().ok();
            for key in event.iter().flat_map(Event::lost_keys) {
                self.forget(&key, id)?;
            }
        }
    }

    /// The user of an event.
    pub fn user_of(&self, number: u64) -> Result<Option<LocalityId>, Fault> {
        let row = self.events.get(number)?;
        row.map(|row| Ok(StoredEvent::read(row.value())?.user)).transpose()
    }

    /// Removes an event of a user that is gone, and the user from the ended ownerships of the
    /// identifiers that it lost.
    pub fn forget_stray(&mut self, number: u64, user: LocalityId) -> Result<(), Fault> {
        let removed = self.remove_event(number)?;
        let event = removed.and_then(|row| StoredEvent::read(&row).ok()?.decode().ok());
        for key in event.iter().flat_map(Event::lost_keys) {
            self.forget(&key, user)?;
        }
        Ok(())
    }

    /// Takes a step towards removing the event that expires first, with the ownerships that it
    /// ended, if it has expired. Returns whether it had.
    ///
    /// A history has no gaps: an earlier event of the same user, which a longer retention keeps
    /// for longer, then expires at the same time, and goes first.
    pub fn sweep(&mut self, now: Timestamp) -> Result<bool, Fault> {
        let first = self.event_times.first()?.map(|(entry, _)| entry.value());
        let Some((expiry, number)) = first.filter(|(expiry, _)| *expiry <= now.as_millis()) else {
            return Ok(false);
        };
        if let Some(previous) = self.previous(number)? {
            self.event_times.insert((expiry, previous), ())?;
            return Ok(true);
        }
        self.event_times.remove((expiry, number))?;
        self.forget_event(number)?;
        Ok(true)
    }

    /// The number of the event before this one in the same history, if there is one.
    fn previous(&self, number: u64) -> Result<Option<u64>, Fault> {
        let Some(row) = self.events.get(number)? else { return Ok(None) };
        // A damaged event must not prevent its removal.
        let previous = StoredEvent::read(row.value()).map_or(0, |row| row.previous);
        let exists = previous < number && self.events.get(previous)?.is_some();
        Ok(exists.then_some(previous))
    }

    /// Gives an event an earlier expiry.
    pub fn expire_earlier(
        &mut self,
        (expiry, number): (i64, u64),
        earlier: Timestamp,
    ) -> Result<(), Fault> {
        self.event_times.remove((expiry, number))?;
        self.event_times.insert((earlier.as_millis(), number), ())?;
        Ok(())
    }

    /// Removes an event, and its place among those of its tenant. Returns its row. The place of a
    /// damaged event remains, and leads to nothing.
    fn remove_event(&mut self, number: u64) -> Result<Option<Vec<u8>>, Fault> {
        let Some(row) = self.events.remove(number)?.map(|row| row.value().to_vec()) else {
            return Ok(None);
        };
        if let Ok(place) = StoredEvent::read(&row).and_then(|stored| stored.place(number)) {
            self.event_order.remove(place)?;
        }
        Ok(Some(row))
    }

    /// Removes an event, and the ownerships that ended with it or before it. A damaged record must
    /// not prevent the removal of others.
    fn forget_event(&mut self, number: u64) -> Result<(), Fault> {
        let Some(row) = self.remove_event(number)? else { return Ok(()) };
        let event = StoredEvent::read(&row).and_then(|row| row.decode());
        let Some(event) = unless_damaged(event)? else { return Ok(()) };
        for key in event.lost_keys() {
            let expire = |ended: &mut EndedOwnerships| ended.0.retain(|one| one.end > event.time);
            unless_damaged(self.change_ended(&key, expire))?;
        }
        Ok(())
    }

    fn change_ended(
        &mut self,
        key: &IdentityKey,
        change: impl FnOnce(&mut EndedOwnerships),
    ) -> Result<(), Fault> {
        let mut ended = ended_of(&self.ended, key)?;
        change(&mut ended);
        let key = key.as_str().as_bytes();
        match ended.has_users() {
            true => drop(self.ended.insert(key, encode_ended(&ended).as_slice())?),
            false => drop(self.ended.remove(key)?),
        }
        Ok(())
    }

    /// Writes the number of the next event. Returns the changes of events.
    pub fn finish(mut self) -> Result<EventChanges, Fault> {
        if !self.changes.added.is_empty() {
            self.next_event.insert((), self.next)?;
        }
        Ok(self.changes)
    }
}

/// The event in a row of a user's history. Damage may lead a history to the events of others, which
/// must stay.
fn event_of(user: LocalityId, row: &[u8]) -> Result<StoredEvent<'_>, Fault> {
    let event = StoredEvent::read(row)?;
    if event.user == user { Ok(event) } else { Err(Fault::damaged("an event of another user")) }
}

/// Logs a damaged record: it must not prevent the removal of others.
fn unless_damaged<T>(outcome: Result<T, Fault>) -> Result<Option<T>, Fault> {
    match outcome {
        Err(fault @ Fault::Damaged(_)) => {
            report_damaged_history(&fault);
            Ok(None)
        }
        outcome => outcome.map(Some),
    }
}
