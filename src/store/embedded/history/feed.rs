//! The events of the store as they are committed: by their numbers, each from a snapshot. A watcher
//! holds nothing but its place.

use std::time::Duration;

use async_trait::async_trait;
use prost::Message;
use tokio::time::{Instant, timeout_at};

use super::Embedded;
use super::error::Fault;
use super::read::Snapshot;
use super::stored_event::StoredEvent;
use crate::directory::error::Error;
use crate::directory::feed::{EventFeed, FeedPage, Place, foreign_place};

/// The most events of one answer, and the bytes after which it ends.
const MOST: usize = 512;
const MOST_BYTES: usize = 256 << 10;

/// A place: before the event of this number.
#[derive(Clone, PartialEq, Message)]
struct PlaceRecord {
    #[prost(uint64, tag = "1")]
    number: u64,
    /// The [fingerprint](StoredEvent::fingerprint) of the event before it, by which another
    /// store's place is told; 0 where there is none.
    #[prost(fixed64, tag = "2")]
    before: u64,
}

#[async_trait]
impl EventFeed for Embedded {
    async fn place(&self) -> Result<Place, Error> {
        let place = self.on_journal(|snapshot| {
            let number = snapshot.next_event()?;
            let before = snapshot.event_row(number.wrapping_sub(1))?;
            let before = before.map_or(Ok(0), |row| fingerprint(&row))?;
            Ok(PlaceRecord { number, before })
        });
        Ok(place?.encode_to_vec())
    }

    async fn events(&self, after: &Place, patience: Duration) -> Result<FeedPage, Error> {
        let place = PlaceRecord::decode(&**after).map_err(|_| foreign_place())?;
        let deadline = Instant::now() + patience;
        let mut commits = self.commits.clone();
        loop {
            commits.mark_unchanged();
            let page = self.on_journal(|snapshot| snapshot.events_after(&place))?;
            let page = page.ok_or_else(foreign_place)?;
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
    /// Reads a snapshot of a store that writes events.
    fn on_journal<T>(&self, look: impl FnOnce(&Snapshot) -> Result<T, Fault>) -> Result<T, Error> {
        let look = |snapshot: &Snapshot| snapshot.has_journal().then(|| look(snapshot)).transpose();
        self.on_snapshot(look)?.ok_or(Error::WatchUnsupported)
    }
}

impl Snapshot {
    /// The events from a place on. None where it is not of this store.
    fn events_after(&self, place: &PlaceRecord) -> Result<Option<FeedPage>, Fault> {
        let (mut number, mut before) = (place.number, place.before);
        let last = self.event_row(number.wrapping_sub(1))?;
        let last = last.map(|row| fingerprint(&row)).transpose()?;
        if number > self.next_event()? || last.is_some_and(|last| last != before) {
            return Ok(None);
        }
        let (mut events, mut bytes) = (Vec::new(), 0);
        for row in self.event_rows(number)? {
            let (found, row) = row?;
            bytes += row.value().len();
            let stored = StoredEvent::read(row.value())?;
            let event = stored.decode()?;
            (number, before) = (found + 1, stored.fingerprint(&event));
            events.push((event, PlaceRecord { number, before }.encode_to_vec()));
            if events.len() == MOST || bytes > MOST_BYTES {
                break;
            }
        }
        Ok(Some(FeedPage { events, place: PlaceRecord { number, before }.encode_to_vec() }))
    }
}

fn fingerprint(row: &[u8]) -> Result<u64, Fault> {
    let row = StoredEvent::read(row)?;
    Ok(row.fingerprint(&row.decode()?))
}
