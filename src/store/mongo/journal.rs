//! Writes of users' histories.

use locality_uuid::LocalityId;
use mongodb::bson::{Bson, Document, RawBsonRef, RawDocumentBuf, doc};
use prost::Message;

use super::error::Fault;
use super::schema::{EPOCH, EVENTS, ID, JOURNAL, REVISION, TAIL, bytes, fields, id_value, needed};
use super::tail::{Bucket, Tail, buckets_up_to, encode_bucket};
use super::transaction::Transaction;
use crate::directory::encoded::event::{decode_event, encode_event, sequence_of};
use crate::directory::model::event::{Event, of_sequence};
use crate::directory::model::record::Record;
use crate::directory::model::tenant::Tenant;
use crate::directory::mutation::{Mutation, UserChange};

impl Transaction<'_> {
    /// Adds the event of a user to its history, if there is one. Returns the end of the history.
    pub async fn add_event(
        &mut self,
        mutation: &Mutation,
        id: LocalityId,
        before: Option<&Record>,
        event: Option<&Event>,
    ) -> Result<Tail, Fault> {
        let mut tail = self.users.get(&id).map(|kept| kept.tail.clone()).unwrap_or_default();
        // By then, documents with older events are gone: a history has no gaps.
        if mutation.user_change() == Some(&UserChange::Reindex) && !mutation.clock_uncertain {
            tail.forget_older(mutation.time.minus(mutation.policies.history_retention));
        }
        let bucket = event.filter(|_| self.has_journal).and_then(|event| tail.add(before, event));
        if let Some(bucket) = bucket {
            // There may be one already, where users were restored from an older backup than this.
            let journal = self.collections.database.collection::<Document>(JOURNAL);
            let document = bucket.document(id, mutation);
            let by_id = doc! { ID: document.get(ID) };
            journal.replace_one(by_id, document).upsert(true).session(&mut self.session).await?;
        }
        Ok(tail)
    }

    /// The events of a user that was read before, the newest first.
    pub async fn read_history(
        &mut self,
        tenant: &Tenant,
        id: LocalityId,
    ) -> Result<Vec<Event>, Fault> {
        let Some(tail) = self.users.get(&id).map(|kept| kept.tail.clone()) else {
            return Ok(Vec::new());
        };
        let mut encoded = Vec::new();
        for (_, events) in self.read_buckets(id, &tail).await? {
            encoded.extend(events);
        }
        let encoded = encoded.iter().chain(&tail.events).rev();
        // One that is damaged must not keep its user from being purged.
        Ok(encoded.filter_map(|event| decode_event(tenant, id, event).ok()).collect())
    }

    /// The buckets of a history in their order, each with its id.
    async fn read_buckets(
        &mut self,
        id: LocalityId,
        tail: &Tail,
    ) -> Result<Vec<(Bson, Vec<Vec<u8>>)>, Fault> {
        if tail.count == tail.events.len() as u64 {
            return Ok(Vec::new());
        }
        let journal = self.collections.database.collection::<RawDocumentBuf>(JOURNAL);
        let find = journal.find(buckets_up_to(id, tail.count));
        let find = find.max_time(self.collections.timeout);
        let mut cursor = find.session(&mut self.session).await?;
        let mut buckets = Vec::new();
        while cursor.advance(&mut self.session).await? {
            let document = cursor.current();
            let [bucket] = fields(document, [ID])?;
            let bucket = needed(ID, bucket, RawBsonRef::as_binary)?.to_binary();
            buckets.push((bucket, Bucket::events(document)?));
        }
        // A transaction over shards does not sort everywhere.
        buckets.sort_unstable_by(|(one, _), (other, _)| one.bytes.cmp(&other.bytes));
        Ok(buckets.into_iter().map(|(id, events)| (Bson::Binary(id), events)).collect())
    }

    /// Replaces those events of a user that have the numbers of `events`, which are in order, the
    /// newest first.
    pub async fn replace_events(&mut self, id: LocalityId, events: &[Event]) -> Result<(), Fault> {
        let Some(kept) = self.users.get(&id) else { return Ok(()) };
        let (revision, mut tail) = (kept.revision, kept.tail.clone());
        let mut updates = Vec::new();
        for (bucket, mut encoded) in self.read_buckets(id, &tail).await? {
            if replace(&mut encoded, events) {
                let change = doc! { "$set": { EVENTS: encode_bucket(encoded) } };
                updates.push(doc! { "q": { ID: bucket }, "u": change });
            }
        }
        self.update_many(JOURNAL, updates).await?;
        // The revision goes up also where only buckets change: a change of the user meanwhile may
        // have moved events there.
        replace(&mut tail.events, events);
        let mut fields = doc! { TAIL: bytes(tail.encode_to_vec()) };
        if self.epoch > 0 {
            fields.insert(EPOCH, self.epoch);
        }
        let change = doc! { "$set": fields, "$inc": { REVISION: self.raise } };
        self.update_user(doc! { ID: id_value(id), REVISION: revision }, change).await
    }

    /// Removes the parts of a user's history that are not in its document.
    pub async fn forget_history(&mut self, user: LocalityId) -> Result<(), Fault> {
        let journal = self.collections.database.collection::<Document>(JOURNAL);
        let all = buckets_up_to(user, u64::MAX);
        journal.delete_many(all).session(&mut self.session).await?;
        Ok(())
    }
}

/// Replaces those of the encoded events that have the numbers of `events`. Returns whether there
/// are any.
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
