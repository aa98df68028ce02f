//! Reads of users' histories: the tail in the user's document, then the buckets, the newest first.

use futures_util::TryStreamExt;
use locality_uuid::LocalityId;
use mongodb::bson::{RawBsonRef, RawDocumentBuf, doc};
use mongodb::options::ReadConcern;

use super::collections::Collections;
use super::error::Fault;
use super::schema::{ID, JOURNAL, StoredUser, TAIL, WIRE, fields, id_value, needed};
use super::tail::{Bucket, Tail, buckets_up_to};
use crate::directory::model::tenant::Tenant;
use crate::directory::model::timestamp::Timestamp;
use crate::directory::store::History;
use crate::store::integrity::Past;
use crate::wire::encoded_user::EncodedUser;
use crate::wire::event::decode_event;

/// Events that are read at once for a verification.
const PAGE: usize = 1_000;

impl Collections {
    /// See [`Store::history`](crate::directory::store::Store::history). A place is the sequence
    /// number of the event to go on with.
    pub async fn history(
        &self,
        tenant: &Tenant,
        id: LocalityId,
        place: Option<u64>,
        limit: usize,
    ) -> Result<Option<History>, Fault> {
        let Some((user, tail)) = self.read_tail(tenant, id).await? else { return Ok(None) };
        let mut history = History { user, events: Vec::new(), next: None };
        let mut next = place.unwrap_or(tail.count).min(tail.count);
        let begin = tail.count - tail.events.len() as u64;
        if next > begin {
            let known = tail.events.into_iter().take((next - begin) as usize);
            next = self.take(tenant, id, known.collect(), next, limit, &mut history)?;
        }

        while next > 0 && history.events.len() < limit {
            let size = (limit - history.events.len()).div_ceil(4) as u32;
            let journal = self.database.collection::<RawDocumentBuf>(JOURNAL);
            let find = journal.find(buckets_up_to(id, next));
            let find = find.sort(doc! { ID: -1 }).limit(size.into());
            let find = find.read_concern(ReadConcern::majority()).max_time(self.timeout);
            let mut buckets = find.await?;
            let before = next;
            while let Some(bucket) = buckets.try_next().await? {
                if history.events.len() < limit {
                    let events = Bucket::events(&bucket)?;
                    next = self.take(tenant, id, events, next, limit, &mut history)?;
                }
            }
            if next == before {
                // What is older is gone.
                next = 0;
            }
        }
        history.next = Some(next).filter(|next| *next > 0);
        Ok(Some(history))
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
        let tail = tail.and_then(RawBsonRef::as_binary);
        let tail = tail.map_or(Ok(Tail::default()), |tail| Tail::read(tail.bytes))?;

        let (mut events, mut place) = (Vec::new(), Some(tail.count).filter(|count| *count > 0));
        while let Some(next) = place {
            let history = self.history(&user.tenant, id, Some(next), PAGE).await?;
            let Some(history) = history else { return Ok(None) };
            events.extend(history.events);
            place = history.next;
        }
        let policies = self.tenant(&user.tenant).await?.map(|tenant| tenant.policies);
        let begin = policies.unwrap_or_default().history_begins(Timestamp::now());
        Ok(Some(Past { user, events, begin }))
    }

    /// Adds events that end with the one of number `last`, the newest first. Returns the number of
    /// the next one.
    fn take(
        &self,
        tenant: &Tenant,
        id: LocalityId,
        events: Vec<Vec<u8>>,
        last: u64,
        limit: usize,
        history: &mut History,
    ) -> Result<u64, Fault> {
        let mut next = last;
        for event in events.iter().rev() {
            let event = decode_event(tenant, id, event).map_err(Fault::damaged)?;
            if event.sequence <= last && history.events.len() < limit {
                next = event.sequence - 1;
                history.events.push(event);
            }
        }
        Ok(next)
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
        let tail = tail.and_then(RawBsonRef::as_binary);
        let tail = tail.map_or(Ok(Tail::default()), |tail| Tail::read(tail.bytes))?;
        let is_own = user.tenant() == tenant.as_str().as_bytes();
        Ok(is_own.then_some((user, tail)))
    }
}
