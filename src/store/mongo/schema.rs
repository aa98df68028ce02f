//! Collections, fields and documents of the store on MongoDB: their names are used only here. They
//! are short, since MongoDB stores a field's name with each document.

use bytes::Bytes;
use locality_uuid::LocalityId;
use mongodb::bson::spec::BinarySubtype;
use mongodb::bson::{Binary, Bson, DateTime, Document, RawBsonRef, RawDocument, doc};
use prost::Message;
use xxhash_rust::xxh3::xxh3_128;

use super::attributes::{ATTRIBUTES, attribute_array, read_attributes};
use super::error::Fault;
use super::tail::Tail;
use crate::directory::encoded::attributes::encode_value;
use crate::directory::encoded::encoded_user::EncodedUser;
use crate::directory::error::ItemError;
use crate::directory::model::attribute::Value;
use crate::directory::model::claim::Claim;
use crate::directory::model::record::Record;
use crate::directory::model::tenant::Tenant;
use crate::directory::model::tenant_record::TenantRecord;
use crate::directory::model::timestamp::Timestamp;
use crate::directory::mutation::IdempotencyKey;
use crate::directory::stores::ExpiredUser;
use crate::identifier::IdentityKey;
use crate::store::attribute_names::{AttributeId, KnownNames};
use crate::store::searched::IndexedAttributes;

/// Users by their ids: [`REVISION`], [`TENANT`], [`WIRE`], [`PRIVATE`], [`EXPIRES_AT`], [`EPOCH`],
/// [`ATTRIBUTES`].
pub const USERS: &str = "users";
/// Claims by their identity keys: [`USER`], [`RULES`], [`GUARD`], [`HOLD`].
pub const IDENTITIES: &str = "identities";
/// Requests that were carried out, by a hash of their keys: [`USER`], [`FINGERPRINT`], [`TIME`].
pub const REQUESTS: &str = "requests";
/// Tenants by their names: [`REVISION`], [`POLICIES`], [`EPOCH`].
pub const TENANTS: &str = "tenants";
/// The names of attributes by their tenants and numbers: see [`names`](super::names). Stores of
/// older programs have no such collection.
pub const NAMES: &str = "names";
/// Parts of users' histories: see [`tail`](super::tail). [`EVENTS`], [`EXPIRES_AT`]. Stores of
/// older programs have no such collection.
pub const JOURNAL: &str = "journal";
/// Ended ownerships by their identity keys: [`OWNERSHIPS`], [`EXPIRES_AT`]. Stores of older
/// programs have no such collection.
pub const ENDED: &str = "ended";
/// Counters: see [`usage`](super::usage). Stores of older programs have no such collection.
pub const USAGE: &str = "usage";
/// Parts of users' inboxes: see [`inbox_bucket`](super::inbox_bucket). Stores of older programs
/// have no such collection.
pub const INBOX: &str = "inbox";
/// The servers that are up, by random ids: [`TIME`], [`SESSIONS`], [`AHEAD`]. Stores of older
/// programs have no such collection.
pub const SERVERS: &str = "servers";
/// The store's versions, in the document [`SCHEMA`]: [`RULES`], [`NORMALISATION`], [`EPOCH`],
/// [`CONFIRMED`].
pub const META: &str = "meta";
/// The document of [`META`] without which there is no store.
pub const SCHEMA: &str = "schema";

/// The key of every collection, and what it is sharded on.
pub const ID: &str = "_id";
/// Of a user or a tenant: a number that every write raises, so that two transactions that change it
/// conflict. Each raises it by a random number of its own.
pub const REVISION: &str = "r";
/// Of a user or a tenant: the epoch of the store under which it was written. Of the schema: the
/// present epoch. A store of schema version 2 has none.
pub const EPOCH: &str = "e";
/// Of the schema: the version of the rules of normalisation; 1 where it is absent.
pub const NORMALISATION: &str = "n";
/// Of the schema: the version of the rules to which identities are being moved; absent while they
/// are not.
pub const MOVING: &str = "m";
/// Of the schema: how often a transaction has confirmed the epoch here that writes it nowhere else.
pub const CONFIRMED: &str = "c";
/// Of a user: the name of its tenant.
pub const TENANT: &str = "t";
/// Of a user: all that is visible of it, in the form in which answers carry it; without its
/// attributes where the document has [`ATTRIBUTES`].
pub const WIRE: &str = "w";
/// Of a user: what answers do not show; absent where there is nothing of that.
pub const PRIVATE: &str = "x";
/// Of a user: the end of its history; absent where it has none.
pub const TAIL: &str = "j";
/// Of a part of a history: its events.
pub const EVENTS: &str = "e";
/// Of ended ownerships: a list, each with [`USER`] and [`OWNERSHIP`].
pub const OWNERSHIPS: &str = "o";
/// Of one of them: all of it.
pub const OWNERSHIP: &str = "o";
/// Of a user: when something is to be done about it; absent where nothing is. Of others: when they
/// are removed.
pub const EXPIRES_AT: &str = "d";
/// Of a tenant: its policies and times.
pub const POLICIES: &str = "p";
/// Of a claim: the version of the rules that made its key. Of the schema: its version.
pub const RULES: &str = "v";
/// Of a claim or a request: the user's id. Absent from a claim without an owner.
pub const USER: &str = "u";
/// Of a claim: that it is a guard.
pub const GUARD: &str = "g";
/// Of a claim: until when it is held for its former owner.
pub const HOLD: &str = "h";
/// Of a request: a hash of what was asked for.
pub const FINGERPRINT: &str = "f";
/// Of a request: when it was carried out. Of a server: when it last wrote its document, by the
/// database's clock.
pub const TIME: &str = "t";
/// Of a server: the ids of the sessions in which it runs transactions.
pub const SESSIONS: &str = "s";
/// Of a server: by how many seconds its clock is ahead of the database's, where the two do not
/// agree.
pub const AHEAD: &str = "c";

/// An id as MongoDB's UUID.
pub fn id_value(id: LocalityId) -> Bson {
    Bson::Binary(Binary { subtype: BinarySubtype::Uuid, bytes: id.as_bytes().to_vec() })
}

/// An identity key as MongoDB's string.
pub fn key_value(key: &IdentityKey) -> Bson {
    Bson::String(key.as_str().to_owned())
}

/// The key of a claim's document.
pub fn key_of(document: &RawDocument) -> Result<&str, Fault> {
    needed(ID, document.get(ID).map_err(Fault::damaged)?, RawBsonRef::as_str)
}

/// The id of a user's document.
pub fn id_of(document: &RawDocument) -> Result<LocalityId, Fault> {
    needed(ID, document.get(ID).map_err(Fault::damaged)?, as_id)
}

/// The filter for the document with this id, or for those with these.
pub fn by_id(mut ids: Vec<Bson>) -> Document {
    match ids.len() {
        1 => doc! { ID: ids.remove(0) },
        _ => doc! { ID: { "$in": ids } },
    }
}

/// A user as it is kept.
pub struct StoredUser {
    pub id: LocalityId,
    pub revision: i64,
    pub wire: EncodedUser,
    pub private: Vec<u8>,
    /// The attributes that are stored by tokens.
    pub attributes: Vec<(AttributeId, Value)>,
}

impl StoredUser {
    pub fn read(document: &RawDocument) -> Result<Self, Fault> {
        let [id, revision, wire, private, attributes] =
            fields(document, [ID, REVISION, WIRE, PRIVATE, ATTRIBUTES])?;
        let wire = needed(WIRE, wire, RawBsonRef::as_binary)?;
        let private = private.and_then(RawBsonRef::as_binary);
        Ok(Self {
            id: needed(ID, id, as_id)?,
            revision: needed(REVISION, revision, RawBsonRef::as_i64)?,
            wire: EncodedUser::from_stored(Bytes::copy_from_slice(wire.bytes)),
            private: private.map(|binary| binary.bytes.to_vec()).unwrap_or_default(),
            attributes: read_attributes(attributes)?,
        })
    }

    /// Whether `names` has the names of all attributes.
    pub fn is_named_by(&self, names: &KnownNames) -> bool {
        self.attributes.iter().all(|(token, _)| names.name(*token).is_some())
    }

    /// The whole user. It [is named by](StoredUser::is_named_by) these names.
    pub fn full(&self, names: &KnownNames) -> EncodedUser {
        let values: Vec<_> =
            self.attributes.iter().map(|(token, value)| (*token, encode_value(value))).collect();
        let named = values
            .iter()
            .filter_map(|(token, value)| Some((names.name(*token)?, value.as_slice())));
        EncodedUser::with_attributes(self.wire.as_bytes(), named)
    }

    /// The record. It [is named by](StoredUser::is_named_by) these names.
    pub fn decode(&self, names: &KnownNames) -> Result<Record, Fault> {
        let mut record = self.decode_without_attributes()?;
        for (token, value) in &self.attributes {
            let name = names.name(*token).unwrap_or_default();
            record.user.attributes.insert(name.to_owned(), value.clone());
        }
        Ok(record)
    }

    /// The record without the attributes that are stored by tokens.
    pub fn decode_without_attributes(&self) -> Result<Record, Fault> {
        Record::decode(&self.wire, &self.private).map_err(Fault::damaged)
    }
}

/// The document of a user. `tokens` has the names of all of its attributes; without it, the
/// document is one of a schema in which attributes stand in the user.
pub fn user_document(
    record: &Record,
    tokens: Option<IndexedAttributes<'_>>,
    tail: &Tail,
    revision: i64,
) -> Document {
    let (wire, private) = match tokens {
        Some(_) => record.encode_without_attributes(),
        None => record.encode(),
    };
    let mut document = doc! {
        ID: id_value(record.id()),
        REVISION: revision,
        TENANT: record.user.tenant.as_str(),
        WIRE: bytes(wire.into_bytes().to_vec()),
    };
    if !private.is_empty() {
        document.insert(PRIVATE, bytes(private));
    }

    if tail.count > 0 {
        document.insert(TAIL, bytes(tail.encode_to_vec()));
    }
    if let Some(due) = record.expires_at() {
        document.insert(EXPIRES_AT, date(due));
    }
    if let Some(tokens) = tokens {
        document.insert(ATTRIBUTES, attribute_array(&record.user, tokens));
    }
    document
}

/// The document of a tenant.
pub fn tenant_document(tenant: &TenantRecord, revision: i64) -> Document {
    doc! { ID: tenant.name.as_str(), REVISION: revision, POLICIES: bytes(tenant.encode()) }
}

/// A tenant as it is kept.
pub fn read_tenant(document: &RawDocument) -> Result<TenantRecord, Fault> {
    let [policies] = fields(document, [POLICIES])?;
    let policies = needed(POLICIES, policies, RawBsonRef::as_binary)?.bytes;
    TenantRecord::decode(policies).map_err(Fault::damaged)
}

/// The user that is due. Without its id there is none.
pub fn read_expired(document: &RawDocument) -> Result<ExpiredUser, Fault> {
    let [tenant, id, time] = fields(document, [TENANT, ID, EXPIRES_AT])?;
    let time = needed(EXPIRES_AT, time, RawBsonRef::as_datetime)?;
    let tenant = needed(TENANT, tenant, RawBsonRef::as_str);
    let tenant = tenant.and_then(|tenant| Tenant::parse(tenant).map_err(Fault::damaged));
    Ok(ExpiredUser {
        time: Timestamp::from_millis(time.timestamp_millis()),
        id: needed(ID, id, as_id)?,
        tenant: tenant.map_err(ItemError::from),
    })
}

/// An instant as MongoDB's.
pub fn date(time: Timestamp) -> Bson {
    Bson::DateTime(DateTime::from_millis(time.as_millis()))
}

/// Bytes as MongoDB's.
pub fn bytes(bytes: Vec<u8>) -> Bson {
    Bson::Binary(Binary { subtype: BinarySubtype::Generic, bytes })
}

/// The document of a claim.
pub fn claim_document(key: &IdentityKey, claim: &Claim) -> Document {
    let mut document = doc! { ID: key.as_str(), RULES: claim.rules_version as i32 };
    if let Some(owner) = claim.owner {
        document.insert(USER, id_value(owner));
    }

    if claim.guard {
        document.insert(GUARD, true);
    }
    if let Some(until) = claim.hold {
        document.insert(HOLD, date(until));
    }
    document
}

/// The change that makes the claim of this key what it is to be, and leaves fields alone that a
/// newer program added.
pub fn claim_change(key: &IdentityKey, claim: &Claim) -> Document {
    let mut set = claim_document(key, claim);
    set.remove(ID);
    let absent = [USER, GUARD, HOLD].into_iter().filter(|name| !set.contains_key(*name));
    let unset: Document = absent.map(|name| (name.to_owned(), true.into())).collect();
    if unset.is_empty() {
        doc! { "$set": set }
    } else {
        doc! { "$set": set, "$unset": unset }
    }
}

/// The key of a claim, which is all that is read without copying, and the claim.
pub fn read_claim(document: &RawDocument) -> Result<(&str, Claim), Fault> {
    let [key, owner, guard, hold, rules] = fields(document, [ID, USER, GUARD, HOLD, RULES])?;
    let hold = hold.and_then(RawBsonRef::as_datetime);
    let claim = Claim {
        owner: owner.map(|owner| needed(USER, Some(owner), as_id)).transpose()?,
        guard: guard.is_some(),
        hold: hold.map(|until| Timestamp::from_millis(until.timestamp_millis())),
        rules_version: needed(RULES, rules, RawBsonRef::as_i32)? as u32,
    };
    Ok((needed(ID, key, RawBsonRef::as_str)?, claim))
}

/// The id of a request's document: a hash, so that it needs no room for the key, and spreads over
/// all shards.
pub fn request_id(request: &IdempotencyKey) -> Bson {
    id_value(request_key(request))
}

/// The same as the id that it is.
pub fn request_key(request: &IdempotencyKey) -> LocalityId {
    LocalityId::from(xxh3_128(request.key.as_bytes()).to_be_bytes())
}

/// The record that a request about `subject` was carried out.
pub fn request_document(
    request: &IdempotencyKey,
    subject: LocalityId,
    time: Timestamp,
) -> Document {
    doc! {
        ID: request_id(request),
        USER: id_value(subject),
        FINGERPRINT: request.request_hash as i64,
        TIME: date(time),
    }
}

/// A request that was carried out.
pub struct StoredRequest {
    pub subject: Option<LocalityId>,
    pub request_hash: u64,
    pub time: Timestamp,
}

impl StoredRequest {
    pub fn read(document: &RawDocument) -> Result<Self, Fault> {
        let [user, request_hash, time] = fields(document, [USER, FINGERPRINT, TIME])?;
        let time = needed(TIME, time, RawBsonRef::as_datetime)?;
        Ok(Self {
            subject: IdempotencyKey::subject(needed(USER, user, as_id)?),
            request_hash: needed(FINGERPRINT, request_hash, RawBsonRef::as_i64)? as u64,
            time: Timestamp::from_millis(time.timestamp_millis()),
        })
    }
}

/// The values of these fields of a document, found in one pass: look-ups do this for every document
/// that they read.
pub fn fields<'d, const N: usize>(
    document: &'d RawDocument,
    names: [&str; N],
) -> Result<[Option<RawBsonRef<'d>>; N], Fault> {
    let mut found = [None; N];
    for element in document.iter_elements() {
        let element = element.map_err(Fault::damaged)?;
        if let Some(n) = names.iter().position(|name| element.key().as_str() == *name) {
            found[n] = Some(element.value().map_err(Fault::damaged)?);
        }
    }
    Ok(found)
}

/// The value of a field that every such document has.
pub fn needed<'d, T>(
    name: &str,
    value: Option<RawBsonRef<'d>>,
    read: impl FnOnce(RawBsonRef<'d>) -> Option<T>,
) -> Result<T, Fault> {
    value
        .and_then(read)
        .ok_or_else(|| Fault::damaged(format!("a field {name} is missing, or of another type")))
}

pub fn as_id(value: RawBsonRef<'_>) -> Option<LocalityId> {
    let bytes: [u8; 16] = value.as_binary()?.bytes.try_into().ok()?;
    Some(LocalityId::from(bytes))
}

/// A whole number in whichever type a server, or a person, has written it.
pub fn number(value: &Bson) -> Option<i64> {
    let whole = value.as_i64().or_else(|| value.as_i32().map(i64::from));
    whole.or_else(|| value.as_f64().map(|number| number as i64))
}
