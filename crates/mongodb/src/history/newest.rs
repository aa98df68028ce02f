//! The events of a tenant's users, the newest first. An event is in the document of its user or in
//! one of the journal. Both have the times of their events, with an index from the newest on.
//!
//! MongoDB does not sort by one of several values of a field. So a span of time is narrowed until
//! one bounded find in each collection returns all of its documents, on whichever shards: a find
//! without an order returns the newest of each shard first. If too many documents have events of
//! the same millisecond, they are read in the order of their ids.

use std::collections::BTreeMap;
use std::ops::Range;
use std::time::Duration;

use locality_uuid::LocalityId;
use mongodb::Collection;
use mongodb::bson::{Document, RawBsonRef, RawDocument, RawDocumentBuf, doc};
use mongodb::options::Hint;

use crate::client::error::Fault;
use crate::database::collections::Collections;
use crate::database::ordered::OrderedFinds;
use crate::schema::bson::{date, id_of, id_value, read_fields, required};
use crate::schema::fields::{ID, JOURNAL, TAIL, TENANT};
use crate::schema::tail::{Bucket, TIMES, TIMES_INDEX, Tail, bucket_id, read_times};
use polynym_directory::{
    Event, EventPosition, EventsPart, PageLimit, Tenant, Timestamp, encoded::event::decode_event,
    encoded::event::event_message,
};
use polynym_store_common::unreadable::report_damaged_history;

/// The most events of a part, unless they are of one millisecond.
const PART_EVENTS: usize = 64;
/// The documents that a find may return for each wanted event.
const READ_RATIO: usize = 4;
const MILLISECOND: Duration = Duration::from_millis(1);

/// A read of the newest events of a tenant.
pub struct NewestEvents<'r> {
    pub collections: &'r Collections,
    /// Users come first: an event that moves to the journal meanwhile is found twice, not never.
    pub finds: &'r mut OrderedFinds,
    pub tenant: &'r Tenant,
}

/// Documents with events of one span of time.
enum Span {
    Times(Range<Timestamp>),
    /// The events of one time before a position.
    Before(EventPosition),
}

/// The events that finds have returned.
#[derive(Default)]
struct Found {
    events: BTreeMap<EventPosition, Event>,
    /// The times of all events in the span, also of those that cannot be read.
    times: Vec<Timestamp>,
    unreadable: Vec<LocalityId>,
    /// The position from which on these are all events; none if they are all of the span.
    complete_from: Option<EventPosition>,
}

impl NewestEvents<'_> {
    /// See [`Histories::newest_events`](polynym_directory::stores::Histories::newest_events). The
    /// number of a position is that in the history of its user.
    pub async fn part(
        &mut self,
        times: Range<Timestamp>,
        before: Option<EventPosition>,
        limit: PageLimit,
    ) -> Result<EventsPart, Fault> {
        let (oldest, before) = (times.start, before.unwrap_or(first_of(times.end)));
        let wanted = limit.items().min(PART_EVENTS);
        if before != first_of(before.time) {
            return self.of_one_time(before, wanted, limit).await;
        }
        let (mut begin, mut end) = (oldest, before.time);
        while begin < end {
            let found = self.find(&Span::Times(begin..end), wanted).await?;
            let is_all = found.complete_from.is_none();
            if is_all && found.times.is_empty() {
                (begin, end) = (oldest, begin);
            } else if is_all {
                return Ok(found.part(Some(first_of(begin)).filter(|_| begin > oldest), limit));
            } else {
                let newest = found.nth_newest(wanted).unwrap_or(begin);
                let narrowed = newest.max(begin.plus(MILLISECOND));
                if newest <= begin && narrowed >= end {
                    return self.of_one_time(last_of(begin), wanted, limit).await;
                }
                begin = if newest > begin { newest } else { narrowed };
            }
        }
        Ok(EventsPart::default())
    }

    /// Events of one time, before a position.
    async fn of_one_time(
        &mut self,
        before: EventPosition,
        wanted: usize,
        limit: PageLimit,
    ) -> Result<EventsPart, Fault> {
        let found = self.find(&Span::Before(before), wanted).await?;
        let next = found.complete_from.unwrap_or(first_of(before.time));
        Ok(found.part(Some(next), limit))
    }

    /// The events of some documents with events in a span.
    async fn find(&mut self, span: &Span, wanted: usize) -> Result<Found, Fault> {
        let (collections, limit) = (self.collections, wanted * READ_RATIO);
        let mut found = Found::default();
        let users = self.documents(&collections.users, span, id_bound, limit).await?;
        for document in &users {
            let user = id_of(document)?;
            let tail = || Tail::of(read_fields(document, [TAIL])?[0]);
            self.add(&mut found, span, user, document, tail().map(|tail| tail.events)).await?;
        }
        let journal = collections.collection(JOURNAL);
        let buckets = self.documents(&journal, span, bucket_bound, limit).await?;
        for document in &buckets {
            let (user, _) = bucket_of(document)?;
            self.add(&mut found, span, user, document, Bucket::events(document)).await?;
        }
        let last_user = users.last().filter(|_| users.len() == limit).map(|last| id_of(last));
        let last_bucket =
            buckets.last().filter(|_| buckets.len() == limit).map(|last| bucket_of(last));
        let users = last_user.transpose()?.map(|user| (user, 0));
        let least = users.max(last_bucket.transpose()?);
        found.complete_from =
            least.map(|(user, number)| EventPosition { user, number, ..span.first() });
        Ok(found)
    }

    /// Some documents of a collection with events in a span: the newest of each shard or, within
    /// one time, those with the greatest ids.
    async fn documents(
        &mut self,
        from: &Collection<RawDocumentBuf>,
        span: &Span,
        bound: fn(EventPosition) -> Document,
        limit: usize,
    ) -> Result<Vec<RawDocumentBuf>, Fault> {
        let mut options = self.collections.time_limit();
        options.limit = Some(limit as i64);
        options.hint = Some(Hint::Name(TIMES_INDEX.to_owned()));
        let mut filter = doc! { TENANT: self.tenant.as_str() };
        match span {
            Span::Times(times) => {
                let bounds = doc! { "$gte": date(times.start), "$lt": date(times.end) };
                filter.insert(TIMES, doc! { "$elemMatch": bounds });
            }
            Span::Before(position) => {
                filter.insert(TIMES, date(position.time));
                filter.insert(ID, bound(*position));
                options.sort = Some(doc! { ID: -1 });
            }
        }
        self.finds.find_documents(from, filter, options).await
    }

    /// Adds the events of a document that are in the span.
    async fn add(
        &self,
        found: &mut Found,
        span: &Span,
        user: LocalityId,
        document: &RawDocument,
        stored: Result<Vec<Vec<u8>>, Fault>,
    ) -> Result<(), Fault> {
        found.times.extend(read_times(document)?.into_iter().filter(|time| span.has_time(*time)));
        let decode =
            |event: &Vec<u8>| decode_event(self.tenant, user, event).map_err(Fault::damaged);
        let decoded =
            stored.and_then(|stored| stored.iter().map(decode).collect::<Result<Vec<_>, _>>());
        let mut events = match decoded {
            Ok(events) => events,
            Err(fault @ Fault::Damaged(_)) => {
                report_damaged_history(&fault);
                found.unreadable.push(user);
                return Ok(());
            }
            Err(fault) => return Err(fault),
        };
        self.collections.name_events(self.tenant, &mut events).await?;
        let placed = events.into_iter().map(|event| (position_of(&event), event));
        found.events.extend(placed.filter(|(position, _)| span.has(*position)));
        Ok(())
    }
}

impl Span {
    /// The first position that it may have.
    fn first(&self) -> EventPosition {
        match self {
            Self::Times(times) => first_of(times.start),
            Self::Before(position) => first_of(position.time),
        }
    }

    fn has(&self, position: EventPosition) -> bool {
        let is_before = match self {
            Self::Times(times) => position.time < times.end,
            Self::Before(end) => position < *end,
        };
        is_before && position >= self.first()
    }

    fn has_time(&self, time: Timestamp) -> bool {
        match self {
            Self::Times(times) => times.contains(&time),
            Self::Before(position) => position.time == time,
        }
    }
}

impl Found {
    /// The time of the `n`th newest event, from 1 on.
    fn nth_newest(&self, n: usize) -> Option<Timestamp> {
        let mut times = self.times.clone();
        times.sort_unstable_by(|one, other| other.cmp(one));
        times.get(n - 1).copied()
    }

    /// The part with these events that fit `limit`, before one that begins at `next`.
    fn part(self, next: Option<EventPosition>, mut limit: PageLimit) -> EventsPart {
        let mut part = EventsPart { unreadable: self.unreadable, next, ..EventsPart::default() };
        let complete = self.complete_from.unwrap_or(first_of(Timestamp::MIN));
        for (position, event) in self.events.into_iter().rev() {
            if position < complete {
                break;
            }
            if !limit.take_message(&event_message(&event)) {
                part.next = part.events.last().map(|(last, _)| *last);
                break;
            }
            part.events.push((position, event));
        }
        part
    }
}

/// The position of an event.
fn position_of(event: &Event) -> EventPosition {
    EventPosition { time: event.time, user: event.user, number: event.sequence }
}

/// The least position of a time.
fn first_of(time: Timestamp) -> EventPosition {
    EventPosition { time, user: LocalityId::from([0; 16]), number: 0 }
}

/// A position after all of a time.
fn last_of(time: Timestamp) -> EventPosition {
    EventPosition { time, user: LocalityId::from([u8::MAX; 16]), number: u64::MAX }
}

/// The condition on the ids of users with events before a position.
fn id_bound(position: EventPosition) -> Document {
    doc! { "$lte": id_value(position.user) }
}

/// The condition on the ids of buckets with events before a position.
fn bucket_bound(position: EventPosition) -> Document {
    doc! { "$lt": bucket_id(position.user, position.number) }
}

/// The user of a bucket, and the number of its first event.
fn bucket_of(document: &RawDocument) -> Result<(LocalityId, u64), Fault> {
    let [id] = read_fields(document, [ID])?;
    let id = required(ID, id, RawBsonRef::as_binary)?.bytes;
    let (user, number) =
        id.split_first_chunk::<16>().ok_or_else(|| Fault::damaged("a short id"))?;
    let number = number.try_into().map_err(Fault::damaged)?;
    Ok((LocalityId::from(*user), u64::from_be_bytes(number)))
}
