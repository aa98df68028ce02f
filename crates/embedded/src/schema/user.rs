//! The stored form of users.

use std::sync::Arc;

use bytes::Bytes;
use prost::Message;
use xxhash_rust::xxh3::xxh3_64;

use crate::error::Fault;
use polynym_directory::{
    EncodedUser, ExportedUser, Record, Unknown, encoded::attributes, encoded::encoded_user,
    model::unknown,
};
use polynym_store_common::attribute_names::KnownNames;

/// A user as it is stored under its id.
#[derive(Clone, PartialEq, Message)]
struct UserRecord {
    /// The user in wire form, so that a read copies bytes.
    #[prost(bytes = "bytes", tag = "1")]
    user: Bytes,
    /// The part that no response shows.
    #[prost(bytes = "bytes", tag = "2")]
    private: Bytes,
    /// The attributes by ids.
    #[prost(bytes = "bytes", tag = "3")]
    attributes: Bytes,
    /// See [`JournalHead::count`].
    #[prost(uint64, tag = "4")]
    events: u64,
    /// See [`JournalHead::last`].
    #[prost(uint64, tag = "5")]
    last_event: u64,
}

/// The history of a user, as its record has it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct JournalHead {
    /// The number of events that the user has had.
    pub count: u64,
    /// The key of the last one in [`EVENTS`](super::tables::EVENTS), or 0.
    pub last: u64,
}

/// The numbers of the fields of a [`UserRecord`].
const USER_FIELD: u32 = 1;
const PRIVATE_FIELD: u32 = 2;
const ATTRIBUTES_FIELD: u32 = 3;
const EVENTS_FIELD: u32 = 4;
/// The last field that this program knows.
const LAST_EVENT_FIELD: u32 = 5;

/// The stored form of a user: the record, and its XXH3 hash (64 bits, little-endian), by which a
/// look-up detects damage.
///
/// The attributes are stored by their ids in `names`, which must have all of them.
pub fn encode_user(record: &Record, names: &KnownNames, head: JournalHead) -> Vec<u8> {
    hashed(user_record(record, names, head))
}

fn user_record(record: &Record, names: &KnownNames, head: JournalHead) -> Vec<u8> {
    let by_id = record.user.attributes.iter();
    let by_id = by_id.filter_map(|(name, value)| Some((names.id(name)?, value)));
    let (user, private) = record.encode_without_attributes();
    UserRecord {
        user: user.into_bytes(),
        private: private.into(),
        attributes: attributes::encode(by_id).into(),
        events: head.count,
        last_event: head.last,
    }
    .encode_to_vec()
}

/// The stored form of a user that replaces `before` and keeps its unknown fields. None if it has no
/// unknown fields.
pub fn encode_user_over(
    record: &Record,
    names: &KnownNames,
    head: JournalHead,
    before: &[u8],
) -> Option<Vec<u8>> {
    let unknown = Unknown::after(LAST_EVENT_FIELD, checked(before).ok()?);
    if unknown.is_empty() {
        return None;
    }
    let mut bytes = user_record(record, names, head);
    unknown.write(&mut bytes);
    Some(hashed(bytes))
}

/// A record with its hash.
fn hashed(mut record: Vec<u8>) -> Vec<u8> {
    record.extend(xxh3_64(&record).to_le_bytes());
    record
}

/// The record of a stored form whose hash matches.
fn checked(bytes: &[u8]) -> Result<&[u8], Fault> {
    match bytes.split_last_chunk() {
        Some((record, hash)) if xxh3_64(record).to_le_bytes() == *hash => Ok(record),
        _ => Err(Fault::damaged("a user's record does not match its hash")),
    }
}

/// A stored user whose hash matches.
pub struct StoredUser<'r> {
    /// The user in wire form, without the attributes by ids.
    user: &'r [u8],
    attributes: &'r [u8],
    record: &'r [u8],
}

impl<'r> StoredUser<'r> {
    pub fn read(bytes: &'r [u8]) -> Result<Self, Fault> {
        let record = checked(bytes)?;
        let (mut user, mut attributes): (&[u8], &[u8]) = (&[], &[]);
        for field in unknown::fields(record) {
            match field.tag {
                USER_FIELD => user = field.bytes,
                ATTRIBUTES_FIELD => attributes = field.bytes,
                _ => {}
            }
        }
        Ok(Self { user, attributes, record })
    }

    /// The name of the user's tenant.
    pub fn tenant(&self) -> Result<&'r str, Fault> {
        std::str::from_utf8(encoded_user::tenant(self.user)).map_err(Fault::damaged)
    }

    /// The names of all attributes: `known`, or `all` if `known` lacks some.
    pub fn names(
        &self,
        known: Arc<KnownNames>,
        all: impl FnOnce() -> Result<Arc<KnownNames>, Fault>,
    ) -> Result<Arc<KnownNames>, Fault> {
        if self.is_named_by(&known) {
            return Ok(known);
        }
        let all = all()?;
        if !self.is_named_by(&all) {
            return Err(Fault::damaged("an attribute without a name"));
        }
        Ok(all)
    }

    fn is_named_by(&self, names: &KnownNames) -> bool {
        attributes::entries(self.attributes).all(|(id, _)| names.name(id).is_some())
    }

    /// The user's history.
    pub fn head(&self) -> JournalHead {
        let number = |tag| unknown::first_number(self.record, tag);
        JournalHead { count: number(EVENTS_FIELD), last: number(LAST_EVENT_FIELD) }
    }

    /// Whether there are attributes by ids.
    pub const fn has_attributes(&self) -> bool {
        !self.attributes.is_empty()
    }

    /// The user without attributes.
    pub fn basic(&self) -> EncodedUser {
        EncodedUser::from_stored(Bytes::copy_from_slice(self.user)).without_attributes()
    }

    /// The user with its attributes, whose names must all be in `names`.
    pub fn full(&self, names: &KnownNames) -> EncodedUser {
        if !self.has_attributes() {
            return EncodedUser::from_stored(Bytes::copy_from_slice(self.user));
        }
        let named = attributes::entries(self.attributes)
            .filter_map(|(id, value)| Some((names.name(id)?, value)));
        EncodedUser::with_attributes(self.user, named)
    }

    /// The record. The names of all attributes must be in `names`.
    pub fn decode(&self, names: &KnownNames) -> Result<Record, Fault> {
        let record = UserRecord::decode(self.record).map_err(Fault::damaged)?;
        Record::decode(&self.full(names), &record.private).map_err(Fault::damaged)
    }

    /// The user as exported. The names of all attributes must be in `names`.
    pub fn export(&self, names: &KnownNames) -> Result<ExportedUser, Fault> {
        let private = unknown::first(self.record, PRIVATE_FIELD);
        ExportedUser::from_stored(self.full(names), private).map_err(Fault::damaged)
    }
}

/// The record of a stored form, without the attributes by ids.
pub fn decode_without_attributes(bytes: &[u8]) -> Result<Record, Fault> {
    let record = UserRecord::decode(checked(bytes)?).map_err(Fault::damaged)?;
    Record::decode(&EncodedUser::from_stored(record.user), &record.private).map_err(Fault::damaged)
}
