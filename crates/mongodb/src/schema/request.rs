//! The documents of requests that were carried out.

use locality_uuid::LocalityId;
use mongodb::bson::{Bson, Document, RawBsonRef, RawDocument, doc};
use xxhash_rust::xxh3::xxh3_128;

use crate::client::error::Fault;
use crate::schema::bson::{as_id, date, id_value, read_fields, required};
use crate::schema::fields::{ID, REQUEST_HASH, TENANT_SINCE, TIME, USER};
use polynym_directory::{IdempotencyKey, Mutation, PriorRequest, Timestamp, WriteSet};

/// The id of a request's document: a hash of its key, which is short and spreads over all shards.
pub fn request_id(request: &IdempotencyKey) -> Bson {
    id_value(request_key(request))
}

/// The hash of a request's key, as an id.
pub fn request_key(request: &IdempotencyKey) -> LocalityId {
    LocalityId::from(xxh3_128(request.key.as_bytes()).to_be_bytes())
}

/// The document of a request about `subject` that was carried out.
pub fn request_document(
    request: &IdempotencyKey,
    subject: LocalityId,
    time: Timestamp,
    tenant_since: Option<Timestamp>,
) -> Document {
    let mut document = doc! {
        ID: request_id(request),
        USER: id_value(subject),
        REQUEST_HASH: request.request_hash as i64,
        TIME: date(time),
    };
    document.extend(tenant_since.map(|since| (TENANT_SINCE.to_owned(), date(since))));
    document
}

/// The document of the request of a mutation with these writes.
pub fn document_of(
    request: &IdempotencyKey,
    write_set: &WriteSet,
    mutation: &Mutation,
) -> Document {
    let subject = IdempotencyKey::stored_subject(write_set.subject);
    request_document(request, subject, mutation.now.time, mutation.request_tenant_since(write_set))
}

/// A request that was carried out.
pub struct StoredRequest {
    pub prior: PriorRequest,
    pub request_hash: u64,
}

impl StoredRequest {
    /// Whether it no longer counts for this mutation.
    pub fn is_void_for(&self, mutation: &Mutation) -> bool {
        mutation.request_is_void(self.prior.time, self.prior.tenant_since)
    }

    pub fn read(document: &RawDocument) -> Result<Self, Fault> {
        let [user, request_hash, time, since] =
            read_fields(document, [USER, REQUEST_HASH, TIME, TENANT_SINCE])?;
        let time = required(TIME, time, RawBsonRef::as_datetime)?;
        let since = since.and_then(RawBsonRef::as_datetime);
        let prior = PriorRequest {
            time: Timestamp::from_millis(time.timestamp_millis()),
            subject: IdempotencyKey::subject(required(USER, user, as_id)?),
            tenant_since: since.map(|since| Timestamp::from_millis(since.timestamp_millis())),
        };
        Ok(Self {
            prior,
            request_hash: required(REQUEST_HASH, request_hash, RawBsonRef::as_i64)? as u64,
        })
    }
}
