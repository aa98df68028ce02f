//! The journal inside one write transaction: events by numbers in the order in which they are
//! written, and the ended ownerships of identifiers. Each event has the number of the one before it
//! of the same user, so that a user's history is a chain that begins at its record: an event costs
//! one row at the end of the table.

use locality_uuid::LocalityId;
use redb::{ReadableTable, Table, WriteTransaction};

use super::error::Fault;
use super::schema::{
    ENDED, ENDED_TIMES, ENDED_USERS, EVENT_TIMES, EVENTS, JournalHead, NEXT_EVENT, StoredEvent,
    encode_event_row,
};
use crate::directory::journal::beginning;
use crate::directory::model::event::Event;
use crate::directory::model::ownership::{EndedOwnerships, Ownership};
use crate::directory::model::record::Record;
use crate::directory::model::timestamp::Timestamp;
use crate::directory::mutation::Mutation;
use crate::identifier::IdentityKey;
use crate::wire::event::{decode_ended, encode_ended};

pub struct Journal<'t> {
    events: Table<'t, u64, &'static [u8]>,
    event_times: Table<'t, (i64, u64), ()>,
    next_event: Table<'t, (), u64>,
    ended: Table<'t, &'static [u8], &'static [u8]>,
    ended_users: Table<'t, (&'static [u8; 16], &'static [u8]), ()>,
    ended_times: Table<'t, (i64, &'static [u8], i64), ()>,
    /// The number of the next event.
    next: u64,
    first: u64,
}

impl<'t> Journal<'t> {
    pub fn open(transaction: &'t WriteTransaction) -> Result<Self, Fault> {
        let next_event = transaction.open_table(NEXT_EVENT)?;
        let next = next_event.get(())?.map_or(1, |next| next.value());
        Ok(Self {
            events: transaction.open_table(EVENTS)?,
            event_times: transaction.open_table(EVENT_TIMES)?,
            next_event,
            ended: transaction.open_table(ENDED)?,
            ended_users: transaction.open_table(ENDED_USERS)?,
            ended_times: transaction.open_table(ENDED_TIMES)?,
            next,
            first: next,
        })
    }

    /// Writes the event of a user whose record was `before`. The history of a user who has none is
    /// begun with what the user was.
    pub fn add(
        &mut self,
        mutation: &Mutation,
        head: JournalHead,
        before: Option<&Record>,
        event: &Event,
    ) -> Result<JournalHead, Fault> {
        let begun = before.filter(|_| head.count == 0).map(|before| beginning(before, event));
        let head = begun.map_or(Ok(head), |begun| self.write(mutation, head, begun))?;
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

    /// Adds to the ended ownerships of a key.
    pub fn end(
        &mut self,
        mutation: &Mutation,
        key: &IdentityKey,
        ownership: &Ownership,
    ) -> Result<(), Fault> {
        let key = key.as_str().as_bytes();
        let mut ended = self.ended(key)?;
        ended.push(ownership.clone());
        self.ended.insert(key, encode_ended(&ended).as_slice())?;
        if let Some(user) = ownership.user {
            self.ended_users.insert((user.as_bytes(), key), ())?;
        }
        let expiry = ownership.end.plus(mutation.policies.history_retention);
        self.ended_times.insert((expiry.as_millis(), key, ownership.end.as_millis()), ())?;
        Ok(())
    }

    fn ended(&self, key: &[u8]) -> Result<EndedOwnerships, Fault> {
        let ended = self.ended.get(key)?.map(|ended| decode_ended(ended.value()));
        Ok(ended.transpose().map_err(Fault::damaged)?.unwrap_or_default())
    }

    /// Removes the history of a user, and the user from ended ownerships.
    pub fn forget_user(&mut self, id: LocalityId, head: JournalHead) -> Result<(), Fault> {
        let mut number = head.last;
        while let Some(row) = self.events.remove(number)? {
            number = StoredEvent::read(row.value())?.previous;
        }

        let (first, last) = (id.as_bytes(), id.as_bytes());
        let owned = self.ended_users.range((first, [].as_slice())..)?;
        let mut keys = Vec::new();
        for entry in owned {
            let entry = entry?.0;
            let (user, key) = entry.value();
            if user != last {
                break;
            }
            keys.push(key.to_vec());
        }
        for key in keys {
            self.ended_users.remove((id.as_bytes(), key.as_slice()))?;
            let mut ended = self.ended(&key)?;
            match ended.forget(id) {
                true => drop(self.ended.insert(key.as_slice(), encode_ended(&ended).as_slice())?),
                false => drop(self.ended.remove(key.as_slice())?),
            }
        }
        Ok(())
    }

    /// Removes an event whose time is over. Returns whether there was one.
    pub fn sweep_event(&mut self, now: i64) -> Result<bool, Fault> {
        let first = self.event_times.first()?.map(|(entry, _)| entry.value());
        let Some((expiry, number)) = first.filter(|(expiry, _)| *expiry <= now) else {
            return Ok(false);
        };
        self.event_times.remove((expiry, number))?;
        self.events.remove(number)?;
        Ok(true)
    }

    /// Removes an ended ownership whose time is over. Returns whether there was one.
    pub fn sweep_ended(&mut self, now: i64) -> Result<bool, Fault> {
        let first = self.ended_times.first()?;
        let first = first.map(|(entry, _)| {
            let (expiry, key, end) = entry.value();
            (expiry, key.to_vec(), end)
        });
        let Some((expiry, key, end)) = first.filter(|(expiry, ..)| *expiry <= now) else {
            return Ok(false);
        };
        self.ended_times.remove((expiry, key.as_slice(), end))?;
        let mut ended = self.ended(&key)?;
        let (gone, left): (Vec<_>, Vec<_>) =
            ended.0.drain(..).partition(|one| one.end <= Timestamp::from_millis(end));
        for user in gone.iter().filter_map(|one| one.user) {
            if left.iter().all(|one| one.user != Some(user)) {
                self.ended_users.remove((user.as_bytes(), key.as_slice()))?;
            }
        }
        match left.is_empty() {
            true => drop(self.ended.remove(key.as_slice())?),
            false => {
                let left = encode_ended(&EndedOwnerships(left));
                self.ended.insert(key.as_slice(), left.as_slice())?;
            }
        }
        Ok(true)
    }

    /// Writes the number of the next event.
    pub fn finish(&mut self) -> Result<(), Fault> {
        if self.next != self.first {
            self.next_event.insert((), self.next)?;
        }
        Ok(())
    }
}
