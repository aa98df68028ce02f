//! The end of a user's history, which is in the user's document: so most mutations have no further
//! statement. When it is full, its events become a document of [`JOURNAL`](super::schema::JOURNAL),
//! which is never changed again.

use locality_uuid::LocalityId;
use mongodb::bson::spec::BinarySubtype;
use mongodb::bson::{Binary, Bson, Document, RawBsonRef, RawDocument, doc};
use prost::Message;

use super::error::Fault;
use super::schema::{EVENTS, EXPIRES_AT, ID, bytes, date, fields, needed};
use crate::directory::encoded::event::{encode_event, time_of};
use crate::directory::model::event::Event;
use crate::directory::model::record::Record;
use crate::directory::model::timestamp::Timestamp;
use crate::directory::mutation::Mutation;
use crate::directory::mutation::journal::beginning;

/// The most events of a tail, and the most bytes of them, but for the newest event.
const MOST: usize = 8;
const MOST_BYTES: usize = 2 << 10;

/// The end of a user's history.
#[derive(Clone, PartialEq, Message)]
pub struct Tail {
    /// The events that the user has had.
    #[prost(uint64, tag = "1")]
    pub count: u64,
    /// The last of them, in order.
    #[prost(bytes = "vec", repeated, tag = "2")]
    pub events: Vec<Vec<u8>>,
}

/// Events that go from a tail into a document of their own.
pub struct Bucket {
    /// The sequence number of the first.
    first: u64,
    events: Vec<Vec<u8>>,
}

/// The events of a bucket as its document has them.
#[derive(Clone, PartialEq, Message)]
struct BucketRecord {
    #[prost(bytes = "vec", repeated, tag = "1")]
    events: Vec<Vec<u8>>,
}

impl Tail {
    /// The tail of a user's field; an empty one where the user has no history.
    pub fn of(field: Option<RawBsonRef<'_>>) -> Result<Self, Fault> {
        let Some(tail) = field.and_then(RawBsonRef::as_binary) else { return Ok(Self::default()) };
        Self::decode(tail.bytes).map_err(Fault::damaged)
    }

    /// Whether there are events of a time before this one.
    pub fn has_older(&self, time: Timestamp) -> bool {
        let oldest = self.events.first().and_then(|event| time_of(event).ok());
        oldest.is_some_and(|oldest| oldest < time)
    }

    /// Forgets the events of a time before this one. The count stays: numbers are used once.
    pub fn forget_older(&mut self, time: Timestamp) {
        while self.has_older(time) {
            self.events.remove(0);
        }
    }

    /// Adds an event of a user whose record was `before`. If the user has no history yet, a first
    /// event with the user as it was is added before it. Returns the events that no longer fit.
    pub fn add(&mut self, before: Option<&Record>, event: &Event) -> Option<Bucket> {
        let begun = before.filter(|_| self.count == 0).map(|before| beginning(before, event));
        let mut new = Vec::new();
        for event in begun.into_iter().chain([event.clone()]) {
            self.count += 1;
            new.push(encode_event(&Event { sequence: self.count, ..event }));
        }
        let bytes: usize = self.events.iter().chain(&new).map(Vec::len).sum();
        let is_full = self.events.len() + new.len() > MOST || bytes > MOST_BYTES;
        let old = std::mem::take(&mut self.events);
        if is_full && !old.is_empty() {
            let first = self.count + 1 - (old.len() + new.len()) as u64;
            self.events = new;
            return Some(Bucket { first, events: old });
        }
        self.events = [old, new].concat();
        None
    }
}

impl Bucket {
    /// The document of the bucket of a user.
    pub fn document(self, user: LocalityId, mutation: &Mutation) -> Document {
        doc! {
            ID: bucket_id(user, self.first),
            EVENTS: encode_bucket(self.events),
            EXPIRES_AT: date(mutation.time.plus(mutation.policies.history_retention)),
        }
    }

    /// The events of a document, in order.
    pub fn events(document: &RawDocument) -> Result<Vec<Vec<u8>>, Fault> {
        let [events] = fields(document, [EVENTS])?;
        let events = needed(EVENTS, events, RawBsonRef::as_binary)?.bytes;
        Ok(BucketRecord::decode(events).map_err(Fault::damaged)?.events)
    }
}

/// The events of a bucket as its document has them.
pub fn encode_bucket(events: Vec<Vec<u8>>) -> Bson {
    bytes(BucketRecord { events }.encode_to_vec())
}

/// The id of the bucket of a user that begins with the event of this number: the user's id, and the
/// number in 8 bytes, big-endian.
pub fn bucket_id(user: LocalityId, first: u64) -> Bson {
    let bytes = [user.as_bytes().as_slice(), &first.to_be_bytes()].concat();
    Bson::Binary(Binary { subtype: BinarySubtype::Generic, bytes })
}

/// The filter for the buckets of a user that begin at an event up to this one.
pub fn buckets_up_to(user: LocalityId, last: u64) -> Document {
    doc! { ID: { "$gte": bucket_id(user, 0), "$lte": bucket_id(user, last) } }
}
