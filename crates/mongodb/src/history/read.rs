//! Reads of users' histories: the tail in the user's document, then the buckets, the newest first.

use locality_uuid::LocalityId;
use mongodb::bson::{RawBsonRef, doc};

use crate::client::error::Fault;
use crate::database::collections::Collections;
use crate::database::ordered::OrderedFinds;
use crate::schema::bson::{id_value, read_fields, required};
use crate::schema::fields::{ID, JOURNAL, TAIL, WIRE};
use crate::schema::tail::{Bucket, Tail, buckets_up_to};
use polynym_directory::{
    EncodedUser, Event, History, PageLimit, Tenant, encoded::event::decode_event,
    encoded::event::event_message,
};

/// The buckets in one read. Each has a few KiB.
const READ_BATCH: usize = 64;

impl Collections {
    /// See [`Histories::history`](polynym_directory::stores::Histories::history). `next` is the
    /// sequence number of the next event.
    pub async fn history(
        &self,
        finds: &mut OrderedFinds,
        tenant: &Tenant,
        id: LocalityId,
        next: Option<u64>,
        limit: PageLimit,
    ) -> Result<Option<History>, Fault> {
        let Some((user, tail)) = self.read_tail(finds, tenant, id).await? else { return Ok(None) };
        let start = next.unwrap_or(tail.count).min(tail.count);
        let page = self.fill(finds, EventPage::new(tenant, id, start, limit), &tail).await?;
        let next = Some(page.next).filter(|next| *next > 0);
        Ok(Some(History { user, events: page.events, next }))
    }

    /// Fills a page from the tail, then from the buckets.
    async fn fill<'p>(
        &self,
        finds: &mut OrderedFinds,
        mut page: EventPage<'p>,
        tail: &Tail,
    ) -> Result<EventPage<'p>, Fault> {
        self.add(&mut page, &tail.events).await?;
        while page.next > 0 && page.limit.items() > 0 && !page.is_full {
            let buckets = page.limit.items().div_ceil(4).min(READ_BATCH);
            let options = self.find_options(doc! { ID: -1 }, buckets);
            let journal = self.collection(JOURNAL);
            let filter = buckets_up_to(page.id, page.next);
            let before = page.next;
            for bucket in finds.find_documents(&journal, filter, options).await? {
                self.add(&mut page, &Bucket::events(&bucket)?).await?;
            }
            if page.next == before && !page.is_full {
                // Older events were removed.
                page.next = 0;
            }
        }
        Ok(page)
    }

    /// Adds the next events of stored ones, which ascend by number, to a page.
    pub(super) async fn add(
        &self,
        page: &mut EventPage<'_>,
        stored: &[Vec<u8>],
    ) -> Result<(), Fault> {
        let decode = |event: &Vec<u8>| decode_event(page.tenant, page.id, event);
        let decoded: Result<Vec<_>, _> = stored.iter().map(decode).collect();
        let mut events = decoded.map_err(Fault::damaged)?;
        self.name_events(page.tenant, &mut events).await?;
        page.add(events);
        Ok(())
    }

    /// A user of the tenant, without attributes, and the tail of its history.
    async fn read_tail(
        &self,
        finds: &mut OrderedFinds,
        tenant: &Tenant,
        id: LocalityId,
    ) -> Result<Option<(EncodedUser, Tail)>, Fault> {
        let (by_id, projection) = (doc! { ID: id_value(id) }, doc! { WIRE: 1, TAIL: 1 });
        let document =
            finds.find_document(&self.users, by_id, projection, self.time_limit()).await?;
        let Some(document) = document else { return Ok(None) };
        let [wire, stored_tail] = read_fields(&document, [WIRE, TAIL])?;
        let bytes = required(WIRE, wire, RawBsonRef::as_binary)?.bytes.to_vec();
        let user = EncodedUser::from_stored(bytes.into()).without_attributes();
        let tail = Tail::of(stored_tail)?;
        let is_own = user.tenant() == tenant.as_str().as_bytes();
        Ok(is_own.then_some((user, tail)))
    }
}

/// Events of a user, the newest first.
pub(super) struct EventPage<'p> {
    tenant: &'p Tenant,
    id: LocalityId,
    pub(super) events: Vec<Event>,
    /// The number of the next event; 0 if there are no more.
    next: u64,
    limit: PageLimit,
    is_full: bool,
}

impl<'p> EventPage<'p> {
    /// An empty page that begins with event `next`.
    pub(super) const fn new(
        tenant: &'p Tenant,
        id: LocalityId,
        next: u64,
        limit: PageLimit,
    ) -> Self {
        Self { tenant, id, events: Vec::new(), next, limit, is_full: false }
    }

    /// Adds the next events from `events`, which ascend by number.
    fn add(&mut self, events: Vec<Event>) {
        for event in events.into_iter().rev() {
            if event.sequence > self.next {
                continue;
            }
            if !self.limit.take_message(&event_message(&event)) {
                self.is_full = true;
                break;
            }
            self.next = event.sequence - 1;
            self.events.push(event);
        }
    }
}
