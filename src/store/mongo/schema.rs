//! Collections, fields and documents of the store on MongoDB: the only place that knows their names. They are short,
//! since MongoDB stores a field's name with each document.

use bytes::Bytes;
use mongodb::bson::spec::BinarySubtype;
use mongodb::bson::{Binary, Bson, DateTime, Document, RawBsonRef, RawDocument, doc};
use xxhash_rust::xxh3::xxh3_128;

use super::error::Fault;
use crate::directory::{Mutation, Request, Timestamp, User, WireUser};
use crate::identifier::{IdentityKey, RULES_VERSION};
use crate::locality::LocalityId;

/// The version of what this module describes.
pub const VERSION: i64 = 1;

/// Users by their ids: [`REVISION`], [`TENANT`], [`WIRE`], [`RULES`].
pub const USERS: &str = "users";
/// Claims by their identity keys: [`USER`], [`RULES`].
pub const IDENTITIES: &str = "identities";
/// Requests that were carried out, by a hash of their keys: [`USER`], [`FINGERPRINT`], [`TIME`].
pub const REQUESTS: &str = "requests";
/// What the store says of itself: the document [`SCHEMA`] has [`RULES`], the version of the schema.
pub const META: &str = "meta";
/// The document of [`META`] without which there is no store.
pub const SCHEMA: &str = "schema";

/// The key of every collection, and what it is sharded on.
pub const ID: &str = "_id";
/// Of a user: a number that every write raises, so that two transactions that change a user conflict.
pub const REVISION: &str = "r";
/// Of a user: the name of its tenant.
pub const TENANT: &str = "t";
/// Of a user: all that is visible of it, in the form in which answers carry it.
pub const WIRE: &str = "w";
/// Of a claim: the version of the rules that made its key. Of a user: these versions, an identity each, in order; absent
/// where all are the present one. Of the schema: its version.
pub const RULES: &str = "v";
/// Of a claim or a request: the user's id.
pub const USER: &str = "u";
/// Of a request: a hash of what was asked for.
pub const FINGERPRINT: &str = "f";
/// Of a request: when it was carried out.
pub const TIME: &str = "t";

/// An id as MongoDB's UUID.
pub fn id_value(id: LocalityId) -> Bson {
    Bson::Binary(Binary { subtype: BinarySubtype::Uuid, bytes: id.as_bytes().to_vec() })
}

/// An identity key as MongoDB's string.
pub fn key_value(key: &IdentityKey) -> Bson {
    Bson::String(key.as_str().to_owned())
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
    pub wire: WireUser,
    rules_versions: Vec<u32>,
}

impl StoredUser {
    pub fn read(document: &RawDocument) -> Result<Self, Fault> {
        let wire = document.get_binary(WIRE).map_err(Fault::damaged)?.bytes;
        Ok(Self {
            id: read_id(document, ID)?,
            revision: document.get_i64(REVISION).map_err(Fault::damaged)?,
            wire: WireUser::from_stored(Bytes::copy_from_slice(wire)),
            rules_versions: rules_versions(document)?,
        })
    }

    pub fn decode(&self) -> Result<User, Fault> {
        let mut user = self.wire.decode().map_err(Fault::damaged)?;
        for (identity, version) in user.identities.iter_mut().zip(&self.rules_versions) {
            identity.rules_version = *version;
        }
        Ok(user)
    }
}

fn rules_versions(document: &RawDocument) -> Result<Vec<u32>, Fault> {
    let Some(versions) = document.get(RULES).map_err(Fault::damaged)? else { return Ok(Vec::new()) };
    let versions = versions.as_array().ok_or_else(|| Fault::damaged("rules' versions that are no list"))?;
    let version = |value: RawBsonRef<'_>| value.as_i32().and_then(|version| version.try_into().ok());
    let versions = versions.into_iter().map(|value| value.ok().and_then(version));
    versions.collect::<Option<_>>().ok_or_else(|| Fault::damaged("a rules' version that is no number"))
}

/// The id of a user's document, and what it carries beside it.
pub fn user_fields(user: &User, revision: i64) -> Document {
    let wire = WireUser::of(user).into_bytes().to_vec();
    let mut fields = doc! {
        REVISION: revision,
        TENANT: user.tenant.as_str(),
        WIRE: Binary { subtype: BinarySubtype::Generic, bytes: wire },
    };
    if user.identities.iter().any(|identity| identity.rules_version != RULES_VERSION) {
        let versions = user.identities.iter().map(|identity| Bson::Int32(identity.rules_version as i32));
        fields.insert(RULES, versions.collect::<Vec<_>>());
    }
    fields
}

/// The claim that gives `key` to `owner`.
pub fn claim(key: &IdentityKey, owner: LocalityId) -> Document {
    doc! { ID: key.as_str(), USER: id_value(owner), RULES: RULES_VERSION as i32 }
}

/// The key of a claim, and its owner.
pub fn read_claim(document: &RawDocument) -> Result<(&str, LocalityId), Fault> {
    Ok((document.get_str(ID).map_err(Fault::damaged)?, read_id(document, USER)?))
}

/// The id of a request's document: a hash, so that it needs no room for the key, and spreads over all shards.
pub fn request_id(request: &Request) -> Bson {
    id_value(LocalityId::from(xxh3_128(request.key.as_bytes()).to_be_bytes()))
}

/// The record that a mutation was carried out under the name `request`.
pub fn request(request: &Request, mutation: &Mutation) -> Document {
    doc! {
        ID: request_id(request),
        USER: id_value(mutation.user_id),
        FINGERPRINT: request.fingerprint as i64,
        TIME: DateTime::from_millis(mutation.time.as_millis()),
    }
}

/// A request that was carried out.
pub struct StoredRequest {
    pub user: LocalityId,
    pub fingerprint: u64,
    pub time: Timestamp,
}

impl StoredRequest {
    pub fn read(document: &RawDocument) -> Result<Self, Fault> {
        let time = document.get_datetime(TIME).map_err(Fault::damaged)?;
        Ok(Self {
            user: read_id(document, USER)?,
            fingerprint: document.get_i64(FINGERPRINT).map_err(Fault::damaged)? as u64,
            time: Timestamp::from_millis(time.timestamp_millis()),
        })
    }
}

fn read_id(document: &RawDocument, field: &str) -> Result<LocalityId, Fault> {
    let binary = document.get_binary(field).map_err(Fault::damaged)?;
    let bytes: [u8; 16] = binary.bytes.try_into().map_err(Fault::damaged)?;
    Ok(LocalityId::from(bytes))
}
