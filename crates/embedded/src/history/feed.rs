//! The feed of events, read from snapshots by their numbers. A watcher holds only its cursor. The
//! window of recent events wakes it; one with an older cursor reads all events until it has caught
//! up.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use prost::Message;
use tokio::task::yield_now;
use tokio::time::{Instant, timeout_at};

use crate::error::Fault;
use crate::lookup::snapshot::Snapshot;
use crate::recent_events::{NextEvents, PAGE_EVENTS};
use crate::schema::event::StoredEvent;
use crate::store::Embedded;
use polynym_directory::{
    Error, Event, EventFeed, FeedPage, ResumeToken, Tenant, stores::foreign_token,
};
use polynym_store_common::operations::{Begun, Operation};
use polynym_store_common::unreadable::report_unreadable;

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
        let position = |snapshot: &Snapshot| snapshot.cursor(snapshot.next_event()?);
        Ok(self.on_snapshot(Operation::Feed, position)?.encode_to_vec())
    }

    async fn events(
        &self,
        tenant: &Tenant,
        after: &ResumeToken,
        patience: Duration,
    ) -> Result<FeedPage, Error> {
        let mut begun = Operation::Feed.begin();
        let page = self.next_page(tenant, after, patience, &mut begun).await;
        begun.end(&page);
        page
    }
}

impl Embedded {
    /// See [`EventFeed::events`].
    async fn next_page(
        &self,
        tenant: &Tenant,
        after: &ResumeToken,
        patience: Duration,
        begun: &mut Begun,
    ) -> Result<FeedPage, Error> {
        let mut cursor = Cursor::decode(&**after).map_err(|_| foreign_token())?;
        if !self.read_step(|snapshot| snapshot.has_issued(&cursor))? {
            return Err(foreign_token());
        }
        let deadline = Instant::now() + patience;
        let (mut changed, mut alive) = (self.recent.subscribe(tenant), self.alive.clone());
        loop {
            changed.mark_unchanged();
            let is_late = Instant::now() >= deadline;
            let page = match self.recent.next(tenant, cursor.number) {
                NextEvents::None(end) if is_late => {
                    let cursor = self.read_step(|snapshot| snapshot.cursor(end))?;
                    let resume_token = cursor.encode_to_vec();
                    return Ok(FeedPage { events: Vec::new(), resume_token });
                }
                NextEvents::None(_) => {
                    let wait = async {
                        tokio::select! {
                            _ = timeout_at(deadline, changed.changed()) => Ok(()),
                            _ = alive.changed() => Err(self.closed()),
                        }
                    };
                    begun.pause(wait).await?;
                    continue;
                }
                NextEvents::Read(page) => page,
                NextEvents::Unread(unread) => {
                    let page = self.read_step(|snapshot| snapshot.events(&unread.numbers))?;
                    self.recent.share(tenant, &unread, &page);
                    page
                }
                NextEvents::Unknown => {
                    yield_now().await;
                    self.read_step(|snapshot| snapshot.scan_events(tenant, cursor.number))?
                }
            };
            if is_late || !page.events.is_empty() {
                return Ok(page);
            }
            cursor = Cursor::decode(&*page.resume_token).map_err(|_| foreign_token())?;
        }
    }
}

impl Snapshot {
    /// The position before the event with this number.
    fn cursor(&self, number: u64) -> Result<Cursor, Fault> {
        let previous = self.event_row(number.wrapping_sub(1))?;
        let before = previous.map_or(0, |row| fingerprint(&row));
        Ok(Cursor { number, before })
    }

    /// Whether this store has issued a cursor.
    fn has_issued(&self, cursor: &Cursor) -> Result<bool, Fault> {
        let previous = self.event_row(cursor.number.wrapping_sub(1))?;
        let expected = previous.map(|row| fingerprint(&row));
        let is_known = expected.is_none_or(|expected| expected == cursor.before);
        Ok(is_known && cursor.number <= self.next_event()?)
    }

    /// The events with these numbers, up to the size of a page. Those that were removed since are
    /// absent.
    fn events(&self, numbers: &[u64]) -> Result<FeedPage, Fault> {
        let mut page = PageBuilder::default();
        for number in numbers {
            match self.event_row(*number)? {
                Some(row) => page.add(*number, &row),
                None => page.next = number + 1,
            }
            if page.is_full() {
                break;
            }
        }
        self.page(page)
    }

    /// The events of a tenant among the next ones of all tenants.
    fn scan_events(&self, tenant: &Tenant, from: u64) -> Result<FeedPage, Fault> {
        let mut page = PageBuilder { next: from, ..PageBuilder::default() };
        let mut is_end = true;
        for (n, row) in self.event_rows(from)?.enumerate() {
            if n == PAGE_EVENTS || page.is_full() {
                is_end = false;
                break;
            }
            let (number, row) = row?;
            page.next = number + 1;
            // One that cannot be read is reported, whoever's it is.
            let stored = StoredEvent::read(row.value());
            if stored.map_or(true, |stored| stored.tenant() == tenant.as_str()) {
                page.add(number, row.value());
            }
        }
        if is_end {
            page.next = self.next_event()?;
        }
        self.page(page)
    }

    fn page(&self, page: PageBuilder) -> Result<FeedPage, Fault> {
        let resume_token = self.cursor(page.next)?.encode_to_vec();
        Ok(FeedPage { events: page.events, resume_token })
    }
}

/// A page that is being read.
#[derive(Default)]
struct PageBuilder {
    events: Vec<(Arc<Event>, ResumeToken)>,
    bytes: usize,
    /// The number after the last event that was read.
    next: u64,
}

impl PageBuilder {
    /// Adds an event. One that cannot be read is left out.
    fn add(&mut self, number: u64, row: &[u8]) {
        self.next = number + 1;
        self.bytes += row.len();
        match StoredEvent::read(row).and_then(|stored| Ok((stored.decode()?, stored))) {
            Ok((event, stored)) => {
                let cursor = Cursor { number: self.next, before: stored.fingerprint(&event) };
                self.events.push((Arc::new(event), cursor.encode_to_vec()));
            }
            Err(fault) => report_unreadable(None, &fault),
        }
    }

    fn is_full(&self) -> bool {
        self.events.len() == PAGE_EVENTS || self.bytes > PAGE_BYTES
    }
}

/// The fingerprint of a row, or 0 if it cannot be read.
fn fingerprint(row: &[u8]) -> u64 {
    let stored = StoredEvent::read(row);
    stored.and_then(|stored| Ok(stored.fingerprint(&stored.decode()?))).unwrap_or(0)
}
