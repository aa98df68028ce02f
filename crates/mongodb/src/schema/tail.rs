//! The end of a user's history, which is part of the user's document, so that most mutations need
//! no further statement. When it is full, its events become a document of the journal. Large events
//! go there at once, so that the user's document stays small.

use locality_uuid::LocalityId;
use mongodb::bson::spec::BinarySubtype;
use mongodb::bson::{Binary, Bson, Document, RawBsonRef, RawDocument, doc};
use prost::Message;

use crate::client::error::Fault;
use crate::schema::bson::{bytes, date, read_fields, required};
use crate::schema::event::encode_stored_event;
use crate::schema::fields::{EVENTS, EXPIRES_AT, ID, TENANT};
use polynym_directory::{
    Event, Record, Tenant, Timestamp, encoded::event::time_of, mutation::journal::beginning,
};
use polynym_store_common::attribute_names::KnownNames;

/// Of a user or a bucket: the times of the events in its tail or in the bucket, from the oldest on.
pub const TIMES: &str = "s";
/// The name of the index of times.
pub const TIMES_INDEX: &str = "t_1_s_-1__id_1";

/// The limits of a tail.
pub const MAX_EVENTS: usize = 8;
const MAX_BYTES: usize = 1 << 10;

/// The end of a user's history.
#[derive(Clone, PartialEq, Message)]
pub struct Tail {
    /// The number of events that the user has had.
    #[prost(uint64, tag = "1")]
    pub count: u64,
    /// The latest events, in order.
    #[prost(bytes = "vec", repeated, tag = "2")]
    pub events: Vec<Vec<u8>>,
    /// The number of events that the last write of the user has added. They are the last ones of
    /// `events` or, if they are large, a document of the journal.
    #[prost(uint32, optional, tag = "3")]
    pub added: Option<u32>,
}

/// Events that leave a tail for a document of their own.
pub struct Bucket {
    /// The sequence number of the first.
    first: u64,
    events: Vec<Vec<u8>>,
}

/// The encoded form of a bucket's events.
#[derive(Clone, PartialEq, Message)]
struct BucketRecord {
    #[prost(bytes = "vec", repeated, tag = "1")]
    events: Vec<Vec<u8>>,
}

impl Tail {
    /// The tail in a user's field; empty if the user has no history.
    pub fn of(field: Option<RawBsonRef<'_>>) -> Result<Self, Fault> {
        let Some(tail) = field.and_then(RawBsonRef::as_binary) else { return Ok(Self::default()) };
        Self::decode(tail.bytes).map_err(Fault::damaged)
    }

    /// Whether there are events before `time`.
    pub fn has_older(&self, time: Timestamp) -> bool {
        let oldest = self.events.first().and_then(|event| time_of(event).ok());
        oldest.is_some_and(|oldest| oldest < time)
    }

    /// Removes the events before `time`. The count stays: numbers are used once.
    pub fn forget_older(&mut self, time: Timestamp) {
        while self.has_older(time) {
            self.events.remove(0);
        }
    }

    /// Adds an event of a user whose record was `before`. If the user has no history yet, an event
    /// with that record comes first. `names` has the tokens that events contain. Returns the events
    /// that do not fit.
    pub fn add(
        &mut self,
        before: Option<&Record>,
        event: &Event,
        names: &KnownNames,
    ) -> Vec<Bucket> {
        let begun = before.filter(|_| self.count == 0).map(|before| beginning(before, event));
        let mut new = Vec::new();
        for event in begun.into_iter().chain([event.clone()]) {
            self.count += 1;
            new.push(encode_stored_event(Event { sequence: self.count, ..event }, names));
        }
        self.added = Some(new.len() as u32);
        let first = self.count + 1 - new.len() as u64;
        let mut buckets = Vec::new();
        if !self.events.is_empty() && !fits(self.events.iter().chain(&new)) {
            let events = std::mem::take(&mut self.events);
            buckets.push(Bucket { first: first - events.len() as u64, events });
        }
        if !fits(&new) {
            buckets.push(Bucket { first, events: new });
        } else {
            self.events.append(&mut new);
        }
        buckets
    }

    /// Whether the last write has added events.
    pub fn has_added(&self) -> bool {
        self.added() > 0
    }

    /// The events that the last write has added, unless they are a document of the journal.
    pub fn added_events(&self) -> &[Vec<u8>] {
        &self.events[self.events.len().saturating_sub(self.added() as usize)..]
    }

    /// The id of the document of the journal that has the events that the last write has added.
    pub fn added_bucket(&self, user: LocalityId) -> Option<Bson> {
        let is_in_bucket = self.added() as usize > self.events.len();
        let first = (self.count + 1).checked_sub(self.added().into());
        first.filter(|_| is_in_bucket).map(|first| bucket_id(user, first))
    }
}

/// The times of stored events, as [`TIMES`] has them. One that cannot be read has none.
pub fn times_of(events: &[Vec<u8>]) -> Vec<Bson> {
    events.iter().filter_map(|event| time_of(event).ok()).map(date).collect()
}

/// The times in a document.
pub fn read_times(document: &RawDocument) -> Result<Vec<Timestamp>, Fault> {
    let [times] = read_fields(document, [TIMES])?;
    let times = required(TIMES, times, RawBsonRef::as_array)?;
    let time = |time: Option<RawBsonRef<'_>>| {
        let time = required(TIMES, time, RawBsonRef::as_datetime)?;
        Ok(Timestamp::from_millis(time.timestamp_millis()))
    };
    times.into_iter().map(|item| time(item.ok())).collect()
}

/// Whether a document has the times of these events.
pub fn has_times_of(document: &RawDocument, events: &[Vec<u8>]) -> bool {
    let times = read_times(document).unwrap_or_default();
    times.into_iter().map(date).eq(times_of(events))
}

/// Whether events fit one tail.
fn fits<'e>(events: impl IntoIterator<Item = &'e Vec<u8>>) -> bool {
    let (mut count, mut bytes) = (0, 0);
    for event in events {
        count += 1;
        bytes += event.len();
    }
    count <= MAX_EVENTS && bytes <= MAX_BYTES
}

impl Bucket {
    /// The statement that writes the bucket of a user, which expires at `expiry`. It may exist
    /// already if users were restored from an older backup.
    pub fn statement(self, tenant: &Tenant, user: LocalityId, expiry: Timestamp) -> Document {
        let (id, times) = (bucket_id(user, self.first), times_of(&self.events));
        let events = encode_bucket(self.events);
        let name = tenant.as_str();
        let bucket = doc! { EVENTS: events, EXPIRES_AT: date(expiry), TENANT: name, TIMES: times };
        doc! { "q": { ID: id }, "u": bucket, "upsert": true }
    }

    /// The events of a document of this tenant, in order. Fails unless their times find it.
    pub fn found_events(document: &RawDocument, tenant: &Tenant) -> Result<Vec<Vec<u8>>, Fault> {
        let events = Self::events(document)?;
        let [name] = read_fields(document, [TENANT])?;
        let is_of_tenant = name.and_then(RawBsonRef::as_str) == Some(tenant.as_str());
        let is_found = is_of_tenant && has_times_of(document, &events);
        is_found.then_some(events).ok_or_else(|| Fault::damaged("a bucket without its times"))
    }

    /// The events of a document, in order.
    pub fn events(document: &RawDocument) -> Result<Vec<Vec<u8>>, Fault> {
        let [events] = read_fields(document, [EVENTS])?;
        let events = required(EVENTS, events, RawBsonRef::as_binary)?.bytes;
        Ok(BucketRecord::decode(events).map_err(Fault::damaged)?.events)
    }
}

/// The encoded form of a bucket's events.
pub fn encode_bucket(events: Vec<Vec<u8>>) -> Bson {
    bytes(BucketRecord { events }.encode_to_vec())
}

/// The id of a user's bucket that begins with event `first`: the user's id, and the number in 8
/// bytes, big-endian.
pub fn bucket_id(user: LocalityId, first: u64) -> Bson {
    let bytes = [user.as_bytes().as_slice(), &first.to_be_bytes()].concat();
    Bson::Binary(Binary { subtype: BinarySubtype::Generic, bytes })
}

/// The filter for the buckets of a user that begin with event `last` or an earlier one.
pub fn buckets_up_to(user: LocalityId, last: u64) -> Document {
    buckets_between(user, 0, last)
}

/// The filter for the buckets of a user that begin with an event from `first` to `last`.
pub fn buckets_between(user: LocalityId, first: u64, last: u64) -> Document {
    doc! { ID: { "$gte": bucket_id(user, first), "$lte": bucket_id(user, last) } }
}

#[cfg(test)]
mod tests {
    use super::*;
    use polynym_directory::{
        ChangeSet, EventKind, FieldChange, Origin, RecordedValue, Tenant, Value,
    };

    const USER: [u8; 16] = [1; 16];

    fn names(count: usize) -> KnownNames {
        let mut names = KnownNames::default();
        for n in 0..count {
            names.push(&name(n));
        }
        names
    }

    fn name(n: usize) -> String {
        format!("department_{n:02}")
    }

    /// An event that changes `count` attributes to values of `bytes`.
    fn event(count: usize, bytes: usize) -> Event {
        let value = || Some(RecordedValue::Whole(Value::String("x".repeat(bytes))));
        let field = |n| FieldChange {
            path: format!("attributes.{}", name(n)),
            before: value(),
            after: value(),
        };
        Event {
            tenant: Tenant::DEFAULT,
            user: USER.into(),
            sequence: 0,
            time: Timestamp::from_millis(1_767_225_600_000),
            origin: Origin::server("test"),
            kind: EventKind::UserUpdated,
            changes: ChangeSet { fields: (0..count).map(field).collect(), ..ChangeSet::default() },
        }
    }

    #[test]
    fn a_tail_is_bounded_whatever_the_size_of_its_events() {
        let names = names(100);
        for (count, bytes) in [(1, 1), (5, 10), (20, 10), (100, 1_000)] {
            let (mut tail, mut in_buckets) = (Tail::default(), 0);
            for number in 1..=20 {
                for bucket in tail.add(None, &event(count, bytes), &names) {
                    assert_eq!(bucket.first, in_buckets + 1);
                    assert!(bucket.events.len() <= MAX_EVENTS);
                    in_buckets += bucket.events.len() as u64;
                }
                assert_eq!((tail.count, tail.added), (number, Some(1)));
                assert_eq!(in_buckets + tail.events.len() as u64, number);
                assert!(tail.encoded_len() < MAX_BYTES + 64, "{}", tail.encoded_len());
                match tail.added_bucket(USER.into()) {
                    Some(id) => assert_eq!(id, bucket_id(USER.into(), number)),
                    None => assert_eq!(tail.added_events(), &tail.events[tail.events.len() - 1..]),
                }
            }
        }
    }

    #[test]
    fn a_write_without_events_adds_none() {
        let mut tail = Tail::default();
        drop(tail.add(None, &event(1, 1), &names(1)));
        tail.added = Some(0);
        assert!(!tail.has_added() && tail.added_events().is_empty());
        assert_eq!(tail.added_bucket(USER.into()), None);
    }
}
