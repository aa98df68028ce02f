//! The feed of events, read from snapshots by their numbers. A watcher holds only its cursor.

use std::time::Duration;

use async_trait::async_trait;
use prost::Message;
use tokio::time::{Instant, timeout_at};

use crate::error::Fault;
use crate::lookup::snapshot::Snapshot;
use crate::schema::event::StoredEvent;
use crate::store::Embedded;
use polynym_directory::error::Error;
use polynym_directory::stores::{EventFeed, FeedPage, ResumeToken, foreign_token};

/// The most events of one page.
const PAGE_EVENTS: usize = 512;
/// The bytes of events after which a page ends.
const PAGE_BYTES: usize = 256 << 10;

/// The position before an event.
#[derive(Clone, PartialEq, Message)]
struct Cursor {
    /// The number of the event.
    #[prost(uint64, tag = "1")]
    number: u64,
    /// The [fingerprint](StoredEvent::fingerprint) of the previous event, or 0. It differs in
    /// another store.
    #[prost(fixed64, tag = "2")]
    before: u64,
}

#[async_trait]
impl EventFeed for Embedded {
    async fn position(&self) -> Result<ResumeToken, Error> {
        let place = self.on_journal(|snapshot| {
            let number = snapshot.next_event()?;
            let row = snapshot.event_row(number.wrapping_sub(1))?;
            let before = row.map_or(Ok(0), |row| fingerprint(&row))?;
            Ok(Cursor { number, before })
        });
        Ok(place?.encode_to_vec())
    }

    async fn events(&self, after: &ResumeToken, patience: Duration) -> Result<FeedPage, Error> {
        let place = Cursor::decode(&**after).map_err(|_| foreign_token())?;
        let deadline = Instant::now() + patience;
        let mut commits = self.commits.clone();
        loop {
            commits.mark_unchanged();
            let found = self.on_journal(|snapshot| snapshot.events_after(&place))?;
            let page = found.ok_or_else(foreign_token)?;
            if !page.events.is_empty() {
                return Ok(page);
            }
            match timeout_at(deadline, commits.changed()).await {
                Ok(Ok(())) => {}
                Ok(Err(_)) => return Err(self.closed().into()),
                Err(_) => return Ok(page),
            }
        }
    }
}

impl Embedded {
    /// Reads a snapshot. Fails in stores of older schemas, which have no journal.
    fn on_journal<T>(&self, read: impl FnOnce(&Snapshot) -> Result<T, Fault>) -> Result<T, Error> {
        self.on_snapshot(|snapshot| snapshot.has_journal().then(|| read(snapshot)).transpose())?
            .ok_or(Error::WatchUnsupported)
    }
}

impl Snapshot {
    /// The events after a cursor. None if the cursor belongs to another store.
    fn events_after(&self, cursor: &Cursor) -> Result<Option<FeedPage>, Fault> {
        let (mut number, mut before) = (cursor.number, cursor.before);
        let previous = self.event_row(number.wrapping_sub(1))?;
        let expected = previous.map(|row| fingerprint(&row)).transpose()?;
        if number > self.next_event()? || expected.is_some_and(|expected| expected != before) {
            return Ok(None);
        }
        let (mut events, mut bytes) = (Vec::new(), 0);
        for row in self.event_rows(number)? {
            let (found, row) = row?;
            bytes += row.value().len();
            let stored = StoredEvent::read(row.value())?;
            let event = stored.decode()?;
            (number, before) = (found + 1, stored.fingerprint(&event));
            events.push((event, Cursor { number, before }.encode_to_vec()));
            if events.len() == PAGE_EVENTS || bytes > PAGE_BYTES {
                break;
            }
        }
        Ok(Some(FeedPage { events, resume_token: Cursor { number, before }.encode_to_vec() }))
    }
}

fn fingerprint(row: &[u8]) -> Result<u64, Fault> {
    let event = StoredEvent::read(row)?;
    Ok(event.fingerprint(&event.decode()?))
}
