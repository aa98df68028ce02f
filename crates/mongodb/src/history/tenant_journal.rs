//! The events of tenants: each is a document of [`JOURNAL`] in the form of a user's bucket. Its id
//! is a hash of the tenant's name, instead of a user's id, and the number of the event. So events
//! are in the order of their times, and two servers write events of one tenant without a conflict.

use std::time::Duration;

use locality_uuid::LocalityId;
use mongodb::bson::{RawBsonRef, RawDocument, doc};
use xxhash_rust::xxh3::xxh3_128;

use crate::client::error::Fault;
use crate::database::collections::Collections;
use crate::database::transaction::Transaction;
use crate::database::writes::WriteCommand;
use crate::schema::bson::{date, raw, read_fields, required};
use crate::schema::fields::{EVENTS, EXPIRES_AT, ID, JOURNAL};
use crate::schema::tail::{Bucket, bucket_id, encode_bucket};
use polynym_directory::encoded::tenant_event::{decode_tenant_event, encode_tenant_event};
use polynym_directory::model::tenant::Tenant;
use polynym_directory::model::tenant_event::TenantEvent;
use polynym_directory::timestamp::Timestamp;

/// The random low bits of an event's number. The others are its time in milliseconds.
const RANDOM_BITS: u32 = 20;

impl Transaction<'_> {
    /// Adds an event of a tenant.
    pub async fn add_tenant_event(
        &mut self,
        event: &TenantEvent,
        retention: Duration,
    ) -> Result<(), Fault> {
        if !self.has_journal {
            return Ok(());
        }
        let millis = u64::try_from(event.time.as_millis()).map_err(Fault::damaged)?;
        let random = getrandom::u32().map_err(Fault::damaged)? >> (u32::BITS - RANDOM_BITS);
        let number = (millis << RANDOM_BITS) | u64::from(random);
        let document = doc! {
            ID: bucket_id(journal_id(&event.tenant), number),
            EVENTS: encode_bucket(vec![encode_tenant_event(event)]),
            EXPIRES_AT: date(event.time.plus(retention)),
        };
        self.execute(WriteCommand::insert(JOURNAL, [raw(&document)?])).await?;
        Ok(())
    }
}

impl Collections {
    /// See [`Histories::tenant_history`](polynym_directory::stores::Histories::tenant_history).
    pub async fn tenant_history(
        &self,
        tenant: &Tenant,
        before: Option<u64>,
        limit: usize,
    ) -> Result<Vec<TenantEvent>, Fault> {
        if !self.version_guard.versions()?.has_journal() {
            return Ok(Vec::new());
        }
        let id = journal_id(tenant);
        let end = bucket_id(id, before.unwrap_or(u64::MAX));
        let journal = self.collection(JOURNAL);
        let filter = doc! { ID: { "$gte": bucket_id(id, 0), "$lt": end } };
        let options = self.find_options(doc! { ID: -1 }, limit);

        let mut events = Vec::new();
        for document in self.find_documents(&journal, filter, options).await? {
            let number = number_of(&document)?;
            for event in Bucket::events(&document)? {
                events.push(decode_tenant_event(number, &event).map_err(Fault::damaged)?);
            }
        }
        Ok(events)
    }
}

/// The id with which the ids of a tenant's events begin.
pub fn journal_id(tenant: &Tenant) -> LocalityId {
    LocalityId::from(xxh3_128(tenant.as_str().as_bytes()).to_be_bytes())
}

/// The time of a tenant's event, from its number.
pub fn time_of_number(document: &RawDocument) -> Result<Timestamp, Fault> {
    let number = number_of(document)? >> RANDOM_BITS;
    Ok(Timestamp::from_millis(i64::try_from(number).map_err(Fault::damaged)?))
}

fn number_of(document: &RawDocument) -> Result<u64, Fault> {
    let [id] = read_fields(document, [ID])?;
    let bytes = required(ID, id, RawBsonRef::as_binary)?.bytes.last_chunk();
    let number = bytes.ok_or_else(|| Fault::damaged("an event has no number"))?;
    Ok(u64::from_be_bytes(*number))
}
