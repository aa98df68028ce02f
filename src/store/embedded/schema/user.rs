//! Tables and records of the embedded store. Records are protocol buffers: a field that a later
//! version adds reads as absent in what an earlier one wrote.

use std::sync::Arc;

use bytes::Bytes;
use locality_uuid::LocalityId;
use prost::Message;
use redb::TableDefinition;
use xxhash_rust::xxh3::xxh3_64;

use super::error::Fault;
use crate::directory::model::claim::Claim;
use crate::directory::model::record::Record;
use crate::directory::model::timestamp::Timestamp;
use crate::store::attribute_names::{KnownNames, Token};
use crate::wire::encoded_user::EncodedUser;
use crate::wire::exported_user::ExportedUser;
use crate::wire::unknown::Unknown;
use crate::wire::{attributes, encoded_user, fields};

/// The store's versions: of the schema under [`META_SCHEMA`], of the rules of normalisation under
/// [`META_RULES`]; and the last time seen under [`LAST_SEEN`].
pub const META: TableDefinition<'_, &str, u64> = TableDefinition::new("meta");
/// In [`META`]: the version of the schema.
pub const META_SCHEMA: &str = "schema";
/// In [`META`]: the version of the rules of normalisation; 1 where it is absent.
pub const META_RULES: &str = "rules";
/// In [`META`]: the last time that was seen, once there was one, in milliseconds.
pub const LAST_SEEN: &str = "last_seen";
/// In [`META`]: the version of the rules to which identities are being moved; absent while they are
/// not.
pub const META_MOVING: &str = "moving";
/// User id to [`UserRecord`].
pub const USERS: TableDefinition<'_, &[u8; 16], &[u8]> = TableDefinition::new("users");
/// Identity key to claim: unique, being the key. As bytes, which order like text and need no check
/// on every step.
pub const IDENTITIES: TableDefinition<'_, &[u8], &[u8]> = TableDefinition::new("identities");
/// The key of a request to [`RequestRecord`].
pub const REQUESTS: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("requests");
/// Time of a request, in milliseconds, and its key: what to forget first.
pub const REQUEST_TIMES: TableDefinition<'_, (i64, &str), ()> =
    TableDefinition::new("request_times");
/// Name of a tenant to its [`TenantRecord`](crate::directory::model::tenant_record::TenantRecord).
pub const TENANTS: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("tenants");
/// A tenant and the id of one of its users: all users of a tenant, in the order of their ids.
pub const TENANT_USERS: TableDefinition<'_, (&str, &[u8; 16]), ()> =
    TableDefinition::new("tenant_users");
/// A tenant and a token to when the tenant was created, in milliseconds, and the name. An empty
/// name stands for all up to it of a tenant that was deleted: tokens are not given again.
pub const ATTRIBUTE_NAMES: TableDefinition<'_, (&str, Token), (i64, &str)> =
    TableDefinition::new("attribute_names");
/// The values by which users are searched: see [`index_key`](super::index_key).
pub const ATTRIBUTES: TableDefinition<'_, &[u8], ()> = TableDefinition::new("attributes");
/// When something is to be done about a user, in milliseconds, and the user's id.
pub const EXPIRES_AT: TableDefinition<'_, (i64, &[u8; 16]), ()> = TableDefinition::new("due");
/// When a hold ends, in milliseconds, and its key: what to sweep first. There are also entries of
/// holds that were ended before their time, or were followed by others.
pub const HOLD_TIMES: TableDefinition<'_, (i64, &[u8]), ()> = TableDefinition::new("hold_times");

/// The number of an event to its row: see [`StoredEvent`](super::stored_event::StoredEvent).
pub const EVENTS: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("events");
/// When an event is to be removed, in milliseconds, and its number. There are also entries of
/// events that were removed with their users.
pub const EVENT_TIMES: TableDefinition<'_, (i64, u64), ()> = TableDefinition::new("event_times");
/// The number of the next event; 1 where it is absent.
pub const NEXT_EVENT: TableDefinition<'_, (), u64> = TableDefinition::new("next_event");
/// A tenant and the number of one of its own events to the event.
pub const TENANT_EVENTS: TableDefinition<'_, (&str, u64), &[u8]> =
    TableDefinition::new("tenant_events");
/// When an event of a tenant is to be removed, in milliseconds, and its key in [`TENANT_EVENTS`].
pub const TENANT_EVENT_TIMES: TableDefinition<'_, (i64, &str, u64), ()> =
    TableDefinition::new("tenant_event_times");
/// Identity key to its ended ownerships.
pub const ENDED: TableDefinition<'_, &[u8], &[u8]> = TableDefinition::new("ended");

/// The bytes of a claim on an identity that a user owns: 16 of the user's id, then the version of
/// the rules that made the key. Any other claim has [`FLAGS`] and a time after them. Numbers are
/// big-endian.
const OWNED: usize = 18;
/// The bytes of a claim that is a guard, or held, or has no owner: those above, a byte of flags,
/// and the end of its hold. Fields of a newer program may follow.
const OTHER: usize = 27;

const GUARD: u8 = 1;
const HELD: u8 = 2;
const NOBODYS: u8 = 4;

/// The stored form of a claim.
pub fn encode_claim(claim: &Claim) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(OTHER);
    bytes.extend(claim.owner.map_or([0; 16], |owner| *owner.as_bytes()));
    bytes.extend((claim.rules_version as u16).to_be_bytes());
    if claim.resolves_to().is_none() {
        let flag = |holds: bool, flag: u8| if holds { flag } else { 0 };
        bytes.push(
            flag(claim.guard, GUARD)
                | flag(claim.hold.is_some(), HELD)
                | flag(claim.owner.is_none(), NOBODYS),
        );
        bytes.extend(claim.hold.map_or(0, Timestamp::as_millis).to_be_bytes());
    }

    bytes
}

/// The claim of a stored form.
pub fn decode_claim(bytes: &[u8]) -> Result<Claim, Fault> {
    let fault = || Fault::damaged("a claim that is too short");
    let (owner, rest) = bytes.split_first_chunk::<16>().ok_or_else(fault)?;
    let (version, rest) = rest.split_first_chunk().ok_or_else(fault)?;
    let (flags, hold) = match rest.split_first() {
        None => (0, 0),
        Some((flags, rest)) => (*flags, i64::from_be_bytes(*rest.first_chunk().ok_or_else(fault)?)),
    };

    Ok(Claim {
        owner: (flags & NOBODYS == 0).then(|| LocalityId::from(*owner)),
        guard: flags & GUARD != 0,
        hold: (flags & HELD != 0).then(|| Timestamp::from_millis(hold)),
        rules_version: u16::from_be_bytes(*version).into(),
    })
}

/// The stored form of a claim in the place of another, with the fields that a newer program added
/// to that; none where there are no such fields.
pub fn extended_claim(claim: &Claim, before: &[u8]) -> Option<Vec<u8>> {
    let added = before.get(OTHER..).filter(|added| !added.is_empty())?;
    let mut bytes = encode_claim(claim);
    // Everything after the owner and the version is zero if absent.
    bytes.resize(OTHER, 0);
    bytes.extend(added);
    Some(bytes)
}

/// The user that the key of a stored claim resolves to.
pub fn resolves_to(bytes: &[u8]) -> Result<Option<LocalityId>, Fault> {
    match bytes.len() {
        OWNED => Ok(bytes.first_chunk().map(|id| LocalityId::from(*id))),
        OTHER.. => Ok(decode_claim(bytes)?.resolves_to()),
        length => Err(Fault::damaged(format!("a claim of {length} bytes"))),
    }
}

#[derive(Clone, PartialEq, Message)]
pub struct RequestRecord {
    #[prost(bytes = "vec", tag = "1")]
    pub user_id: Vec<u8>,
    #[prost(fixed64, tag = "2")]
    pub request_hash: u64,
    /// Milliseconds since the Unix epoch.
    #[prost(int64, tag = "3")]
    pub time: i64,
}

/// A user as it is stored under its id.
#[derive(Clone, PartialEq, Message)]
struct UserRecord {
    /// The user in wire form, so that a read copies bytes.
    #[prost(bytes = "bytes", tag = "1")]
    user: Bytes,
    /// The part that answers do not show.
    #[prost(bytes = "bytes", tag = "2")]
    private: Bytes,
    /// The attributes by tokens. In stores of older schemas they stand in the user.
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
    /// The events that the user has had.
    pub count: u64,
    /// The number of the last one in [`EVENTS`]; 0 where there was none.
    pub last: u64,
}

/// The numbers of the fields of a [`UserRecord`].
const USER: u32 = 1;
const PRIVATE_FIELD: u32 = 2;
const ATTRIBUTES_FIELD: u32 = 3;
const EVENTS_FIELD: u32 = 4;
const LAST_EVENT_FIELD: u32 = 5;

/// The stored form of a user: the record, and its XXH3 hash (64 bits, little-endian), by which a
/// look-up knows that the disk has kept it.
///
/// The attributes are stored by the tokens that `names` gives them, which has all of them; without
/// `names`, as stores of older schemas have them.
pub fn encode_user(record: &Record, names: Option<&KnownNames>, head: JournalHead) -> Vec<u8> {
    hashed(user_record(record, names, head))
}

fn user_record(record: &Record, names: Option<&KnownNames>, head: JournalHead) -> Vec<u8> {
    let ((user, private), attributes) = match names {
        None => (record.encode(), Vec::new()),
        Some(names) => {
            let attributes = record.user.attributes.iter();
            let attributes =
                attributes.filter_map(|(name, value)| Some((names.token(name)?, value)));
            let attributes = attributes::encode(attributes);
            (record.encode_without_attributes(), attributes)
        }
    };
    UserRecord {
        user: user.into_bytes(),
        private: private.into(),
        attributes: attributes.into(),
        events: head.count,
        last_event: head.last,
    }
    .encode_to_vec()
}

/// The last field of a record that this program supports.
const USER_RECORD_LAST: u32 = 5;

/// The stored form of a user in the place of another, with the fields that a newer program added to
/// that; none where there are no such fields.
pub fn extended_user(
    record: &Record,
    names: Option<&KnownNames>,
    head: JournalHead,
    before: &[u8],
) -> Option<Vec<u8>> {
    let added = Unknown::after(USER_RECORD_LAST, intact(before).ok()?);
    if added.is_empty() {
        return None;
    }
    let mut bytes = user_record(record, names, head);
    added.write(&mut bytes);
    Some(hashed(bytes))
}

/// A record with its hash.
fn hashed(mut record: Vec<u8>) -> Vec<u8> {
    record.extend(xxh3_64(&record).to_le_bytes());
    record
}

/// The record of a stored form.
fn intact(bytes: &[u8]) -> Result<&[u8], Fault> {
    match bytes.split_last_chunk() {
        Some((record, hash)) if xxh3_64(record).to_le_bytes() == *hash => Ok(record),
        _ => Err(Fault::damaged("a user's record is not as it was written")),
    }
}

/// A stored form that the disk has kept.
pub struct StoredUser<'r> {
    /// The user in wire form, without the attributes by tokens.
    user: &'r [u8],
    attributes: &'r [u8],
    record: &'r [u8],
}

impl<'r> StoredUser<'r> {
    pub fn read(bytes: &'r [u8]) -> Result<Self, Fault> {
        let record = intact(bytes)?;
        let (mut user, mut attributes): (&[u8], &[u8]) = (&[], &[]);
        for field in fields::fields(record) {
            match field.tag {
                USER => user = field.bytes,
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

    /// The names of all attributes: those that are known, or `all` where some are not.
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
        attributes::entries(self.attributes).all(|(token, _)| names.name(token).is_some())
    }

    /// The user's history.
    pub fn head(&self) -> JournalHead {
        let number = |tag| fields::first_number(self.record, tag);
        JournalHead { count: number(EVENTS_FIELD), last: number(LAST_EVENT_FIELD) }
    }

    /// Whether there are attributes by tokens.
    pub const fn has_attributes(&self) -> bool {
        !self.attributes.is_empty()
    }

    /// The user without attributes.
    pub fn basic(&self) -> EncodedUser {
        EncodedUser::from_stored(Bytes::copy_from_slice(self.user)).without_attributes()
    }

    /// The whole user. `names` has [those of all attributes](StoredUser::names).
    pub fn full(&self, names: &KnownNames) -> EncodedUser {
        if !self.has_attributes() {
            return EncodedUser::from_stored(Bytes::copy_from_slice(self.user));
        }
        let named = attributes::entries(self.attributes)
            .filter_map(|(token, value)| Some((names.name(token)?, value)));
        EncodedUser::with_attributes(self.user, named)
    }

    /// The record. `names` has [those of all attributes](StoredUser::names).
    pub fn decode(&self, names: &KnownNames) -> Result<Record, Fault> {
        let record = UserRecord::decode(self.record).map_err(Fault::damaged)?;
        Record::decode(&self.full(names), &record.private).map_err(Fault::damaged)
    }

    /// The user as an export has it. `names` has [those of all attributes](StoredUser::names).
    pub fn export(&self, names: &KnownNames) -> Result<ExportedUser, Fault> {
        let private = fields::first(self.record, PRIVATE_FIELD);
        ExportedUser::from_stored(self.full(names), private).map_err(Fault::damaged)
    }
}

/// The record of a stored form without the attributes that are stored by tokens.
pub fn decode_without_attributes(bytes: &[u8]) -> Result<Record, Fault> {
    let record = UserRecord::decode(intact(bytes)?).map_err(Fault::damaged)?;
    Record::decode(&EncodedUser::from_stored(record.user), &record.private).map_err(Fault::damaged)
}
