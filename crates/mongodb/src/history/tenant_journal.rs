//! The events of tenants: each is a document of [`JOURNAL`] in the form of a user's bucket. Its id
//! is a hash of the tenant's name, instead of a user's id, and the number of the event. So events
//! are in the order of their times, and two servers write events of one tenant without a conflict.
//!
//! The event of a purge has the first bits of the purged user's id in place of those of the hash.
//! So the events of many purges are on many shards, each mostly on that of the user's history.

use std::time::Duration;

use futures_util::{StreamExt, TryStreamExt, stream};
use locality_uuid::LocalityId;
use mongodb::bson::{RawBsonRef, RawDocument, RawDocumentBuf, doc};
use xxhash_rust::xxh3::xxh3_128;

use crate::client::error::Fault;
use crate::command::write::WriteCommand;
use crate::database::collections::Collections;
use crate::database::transaction::Transaction;
use crate::schema::bson::{date, raw, read_fields, required};
use crate::schema::fields::{EVENTS, EXPIRES_AT, ID, JOURNAL};
use crate::schema::tail::{Bucket, bucket_id, encode_bucket};
use polynym_directory::{
    Tenant, TenantEvent, TenantEventKind, Timestamp, encoded::tenant_event::decode_tenant_event,
    encoded::tenant_event::encode_tenant_event,
};

/// The low bits of an event's number. The others are its time in milliseconds.
const LOW_BITS: u32 = 20;
/// The last bits of a number name the range of the event; the other low bits are random.
const RANGE_BITS: u32 = 4;
/// The ranges of a tenant's events.
const RANGES: u8 = 1 << RANGE_BITS;
/// The ranges that are read concurrently.
const CONCURRENT_RANGES: usize = 4;

impl Transaction<'_> {
    /// Adds an event of a tenant.
    pub async fn add_tenant_event(
        &mut self,
        event: &TenantEvent,
        retention: Duration,
    ) -> Result<(), Fault> {
        let id = match &event.kind {
            TenantEventKind::UserPurged(user) => {
                in_range(journal_id(&event.tenant), range_of(*user))
            }
            _ => journal_id(&event.tenant),
        };
        let millis = u64::try_from(event.time.as_millis()).map_err(Fault::damaged)?;
        let random = getrandom::u32().map_err(Fault::damaged)? >> (u32::BITS - LOW_BITS);
        let low = (random >> RANGE_BITS << RANGE_BITS) | u32::from(range_of(id));
        let document = doc! {
            ID: bucket_id(id, (millis << LOW_BITS) | u64::from(low)),
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
        self.version_guard.versions()?;
        let reads = journal_ids(tenant).map(|id| self.newest_in_range(id, before, limit));
        let mut found: Vec<_> = stream::iter(reads.collect::<Vec<_>>())
            .buffer_unordered(CONCURRENT_RANGES)
            .try_concat()
            .await?;
        found.sort_unstable_by_key(|(number, _)| std::cmp::Reverse(*number));
        found.truncate(limit);

        let mut events = Vec::with_capacity(found.len());
        for (number, document) in found {
            for event in Bucket::events(&document)? {
                events.push(decode_tenant_event(number, &event).map_err(Fault::damaged)?);
            }
        }
        Ok(events)
    }

    /// The newest documents of a range before a number, each with its number.
    async fn newest_in_range(
        &self,
        id: LocalityId,
        before: Option<u64>,
        limit: usize,
    ) -> Result<Vec<(u64, RawDocumentBuf)>, Fault> {
        let end = bucket_id(id, before.unwrap_or(u64::MAX));
        let filter = doc! { ID: { "$gte": bucket_id(id, 0), "$lt": end } };
        let options = self.find_options(doc! { ID: -1 }, limit);
        let found = self.find_documents(&self.collection(JOURNAL), filter, options).await?;
        found.into_iter().map(|document| Ok((number_of(&document)?, document))).collect()
    }
}

/// The id with which the ids of a tenant's events begin, but for those of purges.
fn journal_id(tenant: &Tenant) -> LocalityId {
    LocalityId::from(xxh3_128(tenant.as_str().as_bytes()).to_be_bytes())
}

/// The ids with which the ids of a tenant's events begin.
pub fn journal_ids(tenant: &Tenant) -> impl Iterator<Item = LocalityId> + use<> {
    let id = journal_id(tenant);
    (0..RANGES).map(move |range| in_range(id, range))
}

/// The range of an id: its first bits.
fn range_of(id: LocalityId) -> u8 {
    id.as_bytes()[0] >> (u8::BITS - RANGE_BITS)
}

/// The id with the first bits of another range.
fn in_range(id: LocalityId, range: u8) -> LocalityId {
    let mut bytes = *id.as_bytes();
    bytes[0] = (range << (u8::BITS - RANGE_BITS)) | (bytes[0] & (u8::MAX >> RANGE_BITS));
    LocalityId::from(bytes)
}

/// The time of a tenant's event, from its number.
pub fn time_of_number(document: &RawDocument) -> Result<Timestamp, Fault> {
    let number = number_of(document)? >> LOW_BITS;
    Ok(Timestamp::from_millis(i64::try_from(number).map_err(Fault::damaged)?))
}

fn number_of(document: &RawDocument) -> Result<u64, Fault> {
    let [id] = read_fields(document, [ID])?;
    let bytes = required(ID, id, RawBsonRef::as_binary)?.bytes.last_chunk();
    let number = bytes.ok_or_else(|| Fault::damaged("an event has no number"))?;
    Ok(u64::from_be_bytes(*number))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_range_of_a_tenant_has_its_hash_and_each_has_a_part_of_all_ids() {
        let ids: Vec<_> = journal_ids(&Tenant::DEFAULT).collect();
        assert_eq!(ids.iter().filter(|id| **id == journal_id(&Tenant::DEFAULT)).count(), 1);
        let firsts: Vec<_> = ids.iter().map(|id| id.as_bytes()[0] >> 4).collect();
        assert_eq!(firsts, (0..16).collect::<Vec<_>>());
        assert!(ids.iter().all(|id| id.as_bytes()[1..] == ids[0].as_bytes()[1..]));
        let user: LocalityId = "c7000000-0001-b000-0001-000000000000".parse().unwrap();
        assert_eq!(range_of(in_range(journal_id(&Tenant::DEFAULT), range_of(user))), 0xc);
    }
}
