//! Reads of users' histories: the tail in the user's document, then the buckets, the newest first.

use futures_util::TryStreamExt;
use locality_uuid::LocalityId;
use mongodb::bson::{RawBsonRef, RawDocumentBuf, doc};
use mongodb::options::ReadConcern;

use super::collections::Collections;
use super::error::Fault;
use super::schema::{ID, JOURNAL, StoredUser, TAIL, WIRE, fields, id_value, needed};
use super::tail::{Bucket, Tail, buckets_up_to};
use crate::directory::encoded::encoded_user::EncodedUser;
use crate::directory::encoded::event::decode_event;
use crate::directory::model::event::Event;
use crate::directory::model::tenant::Tenant;
use crate::directory::stores::History;
use crate::store::integrity::Past;

/// The limit of a page of all events.
const ALL: usize = u32::MAX as usize;

impl Collections {
    /// See [`Histories::history`](crate::directory::stores::Histories::history). A place is the sequence
    /// number of the event to go on with.
    pub async fn history(
        &self,
        tenant: &Tenant,
        id: LocalityId,
        place: Option<u64>,
        limit: usize,
    ) -> Result<Option<History>, Fault> {
        let Some((user, tail)) = self.read_tail(tenant, id).await? else { return Ok(None) };
        let next = place.unwrap_or(tail.count).min(tail.count);
        let page = self.page(EventPage::new(tenant, id, next, limit), &tail).await?;
        let next = Some(page.next).filter(|next| *next > 0);
        Ok(Some(History { user, events: page.events, next }))
    }

    /// A user with its history, as of one moment; none where it is not there, or the store has no
    /// journal.
    pub async fn past(&self, id: LocalityId) -> Result<Option<Past>, Fault> {
        if !self.fence.versions()?.has_journal() {
            return Ok(None);
        }
        let find = self.users.find_one(doc! { ID: id_value(id) });
        let find = find.read_concern(ReadConcern::majority()).max_time(self.timeout);
        let Some(document) = find.await? else { return Ok(None) };
        let stored = StoredUser::read(&document)?;
        let user = stored.decode(&*self.names_for(&stored).await?)?.user;
        let [tail] = fields(&document, [TAIL])?;
        let tail = Tail::of(tail)?;

        let page = EventPage::new(&user.tenant, id, tail.count, ALL);
        let events = self.page(page, &tail).await?.events;
        let tenant = self.tenant(&user.tenant).await?;
        Ok(Some(Past::new(user, events, tenant)))
    }

    /// Fills a page: from the tail, then from the buckets.
    async fn page<'p>(&self, mut page: EventPage<'p>, tail: &Tail) -> Result<EventPage<'p>, Fault> {
        page.add(&tail.events)?;
        while page.next > 0 && page.room() > 0 {
            let size = i64::try_from(page.room().div_ceil(4)).map_err(Fault::damaged)?;
            let journal = self.database.collection::<RawDocumentBuf>(JOURNAL);
            let find = journal.find(buckets_up_to(page.id, page.next)).sort(doc! { ID: -1 });
            let find = find.limit(size).read_concern(ReadConcern::majority());
            let mut buckets = find.max_time(self.timeout).await?;
            let before = page.next;
            while let Some(bucket) = buckets.try_next().await? {
                page.add(&Bucket::events(&bucket)?)?;
            }
            if page.next == before {
                // Older events were removed.
                page.next = 0;
            }
        }
        Ok(page)
    }

    /// A user of the tenant without attributes, and the end of its history.
    async fn read_tail(
        &self,
        tenant: &Tenant,
        id: LocalityId,
    ) -> Result<Option<(EncodedUser, Tail)>, Fault> {
        let projection = doc! { WIRE: 1, TAIL: 1 };
        let find = self.users.find_one(doc! { ID: id_value(id) }).projection(projection);
        let find = find.read_concern(ReadConcern::majority()).max_time(self.timeout);
        let Some(document) = find.await? else { return Ok(None) };
        let [wire, tail] = fields(&document, [WIRE, TAIL])?;
        let wire = needed(WIRE, wire, RawBsonRef::as_binary)?.bytes.to_vec();
        let user = EncodedUser::from_stored(wire.into()).without_attributes();
        let tail = Tail::of(tail)?;
        let is_own = user.tenant() == tenant.as_str().as_bytes();
        Ok(is_own.then_some((user, tail)))
    }
}

/// Events of a user, the newest first.
struct EventPage<'p> {
    tenant: &'p Tenant,
    id: LocalityId,
    events: Vec<Event>,
    /// The number of the next event; 0 where there are no more.
    next: u64,
    limit: usize,
}

impl<'p> EventPage<'p> {
    /// An empty page, which begins with the event of number `next`.
    const fn new(tenant: &'p Tenant, id: LocalityId, next: u64, limit: usize) -> Self {
        Self { tenant, id, events: Vec::new(), next, limit }
    }

    const fn room(&self) -> usize {
        self.limit - self.events.len()
    }

    /// Adds those of `events`, which are in the order of their numbers, that come next.
    fn add(&mut self, events: &[Vec<u8>]) -> Result<(), Fault> {
        for event in events.iter().rev() {
            let event = decode_event(self.tenant, self.id, event).map_err(Fault::damaged)?;
            if event.sequence <= self.next && self.room() > 0 {
                self.next = event.sequence - 1;
                self.events.push(event);
            }
        }
        Ok(())
    }
}
