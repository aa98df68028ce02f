//! The end of a user's history, which is part of the user's document, so that most mutations need
//! no further statement. When it is full, its events become a document of the journal.

use locality_uuid::LocalityId;
use mongodb::bson::spec::BinarySubtype;
use mongodb::bson::{Binary, Bson, Document, RawBsonRef, RawDocument, doc};
use prost::Message;

use crate::client::error::Fault;
use crate::schema::bson::{bytes, date, read_fields, required};
use crate::schema::fields::{EVENTS, EXPIRES_AT, ID};
use polynym_directory::encoded::event::{encode_event, time_of};
use polynym_directory::model::event::Event;
use polynym_directory::model::record::Record;
use polynym_directory::mutation::Mutation;
use polynym_directory::mutation::journal::beginning;
use polynym_directory::timestamp::Timestamp;

/// The limits of a tail. The newest event may exceed the bytes.
pub const MAX_EVENTS: usize = 8;
const MAX_BYTES: usize = 2 << 10;

/// The end of a user's history.
#[derive(Clone, PartialEq, Message)]
pub struct Tail {
    /// The number of events that the user has had.
    #[prost(uint64, tag = "1")]
    pub count: u64,
    /// The latest events, in order.
    #[prost(bytes = "vec", repeated, tag = "2")]
    pub events: Vec<Vec<u8>>,
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
    /// with that record comes first. Returns the events that no longer fit.
    pub fn add(&mut self, before: Option<&Record>, event: &Event) -> Option<Bucket> {
        let begun = before.filter(|_| self.count == 0).map(|before| beginning(before, event));
        let mut new = Vec::new();
        for event in begun.into_iter().chain([event.clone()]) {
            self.count += 1;
            new.push(encode_event(&Event { sequence: self.count, ..event }));
        }
        let bytes: usize = self.events.iter().chain(&new).map(Vec::len).sum();
        let is_full = self.events.len() + new.len() > MAX_EVENTS || bytes > MAX_BYTES;
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
