//! The documents of users.

use bytes::Bytes;
use locality_uuid::LocalityId;
use mongodb::bson::{Document, RawBsonRef, RawDocument, doc};
use prost::Message;

use crate::client::error::Fault;
use crate::schema::attributes::{ATTRIBUTES, attribute_array, read_attributes};
use crate::schema::bson::{as_id, bytes, date, id_value, read_fields, required};
use crate::schema::fields::{EXPIRES_AT, ID, PRIVATE, REVISION, TAIL, TENANT, WIRE};
use crate::schema::tail::{TIMES, Tail, times_of};
use polynym_directory::{
    EncodedUser, ExpiredUser, ItemError, Record, Tenant, Timestamp, Value,
    encoded::attributes::encode_value,
};
use polynym_store_common::attribute_names::{AttributeId, KnownNames};
use polynym_store_common::searched::IndexedAttributes;

/// A user as it is stored.
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
            read_fields(document, [ID, REVISION, WIRE, PRIVATE, ATTRIBUTES])?;
        let encoded = required(WIRE, wire, RawBsonRef::as_binary)?;
        let private_binary = private.and_then(RawBsonRef::as_binary);
        Ok(Self {
            id: required(ID, id, as_id)?,
            revision: required(REVISION, revision, RawBsonRef::as_i64)?,
            wire: EncodedUser::from_stored(Bytes::copy_from_slice(encoded.bytes)),
            private: private_binary.map(|binary| binary.bytes.to_vec()).unwrap_or_default(),
            attributes: read_attributes(attributes)?,
        })
    }

    /// Whether `names` has the names of all attributes.
    pub fn is_named_by(&self, names: &KnownNames) -> bool {
        self.attributes.iter().all(|(token, _)| names.name(*token).is_some())
    }

    /// The user with its attributes, whose names `names` must [have](StoredUser::is_named_by).
    pub fn full(&self, names: &KnownNames) -> EncodedUser {
        let values: Vec<_> =
            self.attributes.iter().map(|(token, value)| (*token, encode_value(value))).collect();
        let named = values
            .iter()
            .filter_map(|(token, value)| Some((names.name(*token)?, value.as_slice())));
        EncodedUser::with_attributes(self.wire.as_bytes(), named)
    }

    /// The record with its attributes, whose names `names` must [have](StoredUser::is_named_by).
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

/// The document of a user. `tokens` has the names of all of its attributes.
pub fn user_document(
    record: &Record,
    tokens: IndexedAttributes<'_>,
    tail: &Tail,
    revision: i64,
) -> Document {
    let (wire, private) = record.encode_without_attributes();
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
        document.insert(TIMES, times_of(&tail.events));
    }
    if let Some(time) = record.expires_at() {
        document.insert(EXPIRES_AT, date(time));
    }
    document.insert(ATTRIBUTES, attribute_array(&record.user, tokens));
    document
}

/// The expired user of a document, which must have an id.
pub fn read_expired(document: &RawDocument) -> Result<ExpiredUser, Fault> {
    let [tenant, id, expiry] = read_fields(document, [TENANT, ID, EXPIRES_AT])?;
    let time = required(EXPIRES_AT, expiry, RawBsonRef::as_datetime)?;
    let name = required(TENANT, tenant, RawBsonRef::as_str);
    let tenant = name.and_then(|name| Tenant::parse(name).map_err(Fault::damaged));
    Ok(ExpiredUser {
        time: Timestamp::from_millis(time.timestamp_millis()),
        id: required(ID, id, as_id)?,
        tenant: tenant.map_err(ItemError::from),
    })
}
