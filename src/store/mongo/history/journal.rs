//! Writes of users' histories.

use locality_uuid::LocalityId;
use mongodb::bson::{Bson, RawBsonRef, doc};
use prost::Message;

use crate::directory::encoded::event::{decode_event, encode_event, sequence_of};
use crate::directory::model::event::{Event, of_sequence};
use crate::directory::model::record::Record;
use crate::directory::model::tenant::Tenant;
use crate::directory::mutation::{Mutation, UserChange};
use crate::store::mongo::client::error::Fault;
use crate::store::mongo::database::transaction::Transaction;
use crate::store::mongo::schema::bson::{bytes, id_value, raw, read_fields, required};
use crate::store::mongo::schema::fields::{EPOCH, EVENTS, ID, JOURNAL, REVISION, TAIL};
use crate::store::mongo::schema::tail::{Bucket, Tail, buckets_up_to, encode_bucket};

impl Transaction<'_> {
    /// Adds the event of a user, if there is one, to its history. Returns the history's tail.
    pub async fn add_event(
        &mut self,
        mutation: &Mutation,
        id: LocalityId,
        before: Option<&Record>,
        event: Option<&Event>,
    ) -> Result<Tail, Fault> {
        let mut tail =
            self.users.get(&id).map(|preserved| preserved.tail.clone()).unwrap_or_default();
        // Older buckets are gone by then: a history has no gaps.
        if mutation.user_change() == Some(&UserChange::Reindex) && !mutation.clock_uncertain {
            tail.forget_older(mutation.time.minus(mutation.policies.history_retention));
        }
        let bucket = event.filter(|_| self.has_journal).and_then(|event| tail.add(before, event));
        if let Some(bucket) = bucket {
            // The bucket may exist already if users were restored from an older backup.
            let journal = self.collections.collection(JOURNAL);
            let document = bucket.document(id, mutation);
            let by_id = doc! { ID: document.get(ID) };
            journal
                .replace_one(by_id, raw(&document)?)
                .upsert(true)
                .session(&mut self.session)
                .await?;
        }
        Ok(tail)
    }

    /// The events of a user that this transaction has read, the newest first.
    pub async fn read_history(
        &mut self,
        tenant: &Tenant,
        id: LocalityId,
    ) -> Result<Vec<Event>, Fault> {
        let Some(tail) = self.users.get(&id).map(|preserved| preserved.tail.clone()) else {
            return Ok(Vec::new());
        };
        let mut encoded = Vec::new();
        for (_, events) in self.read_buckets(id, &tail).await? {
            encoded.extend(events);
        }
        let encoded = encoded.iter().chain(&tail.events).rev();
        // A damaged event must not prevent the purge of its user.
        Ok(encoded.filter_map(|event| decode_event(tenant, id, event).ok()).collect())
    }

    /// The buckets of a history in order, each with its id.
    async fn read_buckets(
        &mut self,
        id: LocalityId,
        tail: &Tail,
    ) -> Result<Vec<(Bson, Vec<Vec<u8>>)>, Fault> {
        if tail.count == tail.events.len() as u64 {
            return Ok(Vec::new());
        }
        let journal = self.collections.collection(JOURNAL);
        let mut buckets = Vec::new();
        let filter = buckets_up_to(id, tail.count);
        for document in self.find_documents(&journal, filter, None).await? {
            let [bucket] = read_fields(&document, [ID])?;
            let bucket = required(ID, bucket, RawBsonRef::as_binary)?.to_binary();
            buckets.push((bucket, Bucket::events(&document)?));
        }
        // In a transaction over several shards, not every router sorts.
        buckets.sort_unstable_by(|(one, _), (other, _)| one.bytes.cmp(&other.bytes));
        Ok(buckets.into_iter().map(|(id, events)| (Bson::Binary(id), events)).collect())
    }

    /// Replaces the events of a user that have the numbers of `events`, which are the newest first.
    pub async fn replace_events(&mut self, id: LocalityId, events: &[Event]) -> Result<(), Fault> {
        let Some(preserved) = self.users.get(&id) else { return Ok(()) };
        let (revision, mut tail) = (preserved.revision, preserved.tail.clone());
        let mut updates = Vec::new();
        for (bucket, mut encoded) in self.read_buckets(id, &tail).await? {
            if replace(&mut encoded, events) {
                let change = doc! { "$set": { EVENTS: encode_bucket(encoded) } };
                updates.push(doc! { "q": { ID: bucket }, "u": change });
            }
        }
        self.update_many(JOURNAL, updates).await?;
        // The revision rises even if only buckets change: a concurrent change of the user may have
        // moved events there.
        replace(&mut tail.events, events);
        let mut fields = doc! { TAIL: bytes(tail.encode_to_vec()) };
        if self.epoch > 0 {
            fields.insert(EPOCH, self.epoch);
        }
        let change = doc! { "$set": fields, "$inc": { REVISION: self.revision_step } };
        self.update_user(doc! { ID: id_value(id), REVISION: revision }, change).await
    }

    /// Deletes the buckets of a user's history.
    pub async fn delete_history(&mut self, user: LocalityId) -> Result<(), Fault> {
        let journal = self.collections.collection(JOURNAL);
        let all = buckets_up_to(user, u64::MAX);
        journal.delete_many(all).session(&mut self.session).await?;
        Ok(())
    }
}

/// Replaces the encoded events that have the numbers of `events`. Returns whether there are any.
fn replace(encoded: &mut [Vec<u8>], events: &[Event]) -> bool {
    let mut is_changed = false;
    for old in encoded {
        let sequence = sequence_of(old).unwrap_or_default();
        if let Some(new) = of_sequence(events, sequence) {
            *old = encode_event(new);
            is_changed = true;
        }
    }
    is_changed
}
