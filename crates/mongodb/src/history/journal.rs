//! Writes of users' histories.

use std::ops::RangeInclusive;
use std::sync::Arc;

use locality_uuid::LocalityId;
use mongodb::bson::{Bson, RawBsonRef, doc};
use prost::Message;

use crate::client::error::Fault;
use crate::command::write::WriteCommand;
use crate::database::transaction::Transaction;
use crate::schema::bson::{bytes, id_value, read_fields, required};
use crate::schema::event::encode_stored_event;
use crate::schema::fields::{EPOCH, EVENTS, ID, JOURNAL, REVISION, TAIL};
use crate::schema::tail::{
    Bucket, MAX_EVENTS, Tail, buckets_between, buckets_up_to, encode_bucket,
};
use polynym_directory::{
    Event, HistoryEvents, HistoryPart, Mutation, PageLimit, Record, Tenant, UserChange,
    encoded::event::decode_event, encoded::event::sequence_of, model::event::of_sequence,
};
use polynym_store_common::attribute_names::KnownNames;
use polynym_store_common::unreadable::report_damaged_history;

/// The events for which buckets are read at once.
const READ_EVENTS: u64 = 64;

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
        if mutation.user_change() == Some(&UserChange::Reindex) && !mutation.now.clock_uncertain {
            tail.forget_older(mutation.now.time.minus(mutation.policies.history_retention));
        }
        let names = self.event_names(mutation);
        tail.added = Some(0);
        if let Some(event) = event {
            let expiry = mutation.now.time.plus(mutation.policies.history_retention);
            let buckets = tail.add(before, event, &names);
            let statements =
                buckets.into_iter().map(|bucket| bucket.statement(&mutation.tenant, id, expiry));
            self.update_many(JOURNAL, statements.collect()).await?;
        }
        Ok(tail)
    }

    /// The names whose tokens events contain. Names that are missing here are stored in full.
    pub fn event_names(&self, mutation: &Mutation) -> Arc<KnownNames> {
        let known = self.collections.names.known(mutation.tenant.as_str());
        if known.is_of(mutation.tenant_since) { known } else { Arc::default() }
    }

    /// A part of the history of a user that this transaction has read. The cursor is the number of
    /// its newest event.
    pub async fn read_history(
        &mut self,
        tenant: &Tenant,
        part: HistoryPart,
    ) -> Result<HistoryEvents, Fault> {
        let mut read = self.read_stored_history(tenant, part).await?;
        self.collections.name_events(tenant, &mut read.events).await?;
        Ok(read)
    }

    /// The part, with the events in their stored form.
    async fn read_stored_history(
        &mut self,
        tenant: &Tenant,
        part: HistoryPart,
    ) -> Result<HistoryEvents, Fault> {
        let Some(tail) = self.users.get(&part.user).map(|preserved| preserved.tail.clone()) else {
            return Ok(HistoryEvents::default());
        };
        let mut limit = PageLimit::new(part.limit, part.max_bytes());
        let (mut read, mut last) = (HistoryEvents::default(), part.cursor.unwrap_or(tail.count));
        while last > 0 {
            let first = last.saturating_sub(READ_EVENTS);
            let (buckets, is_damaged) =
                self.read_buckets(part.user, &tail, first + 1..=last).await?;
            read.is_damaged |= is_damaged;
            let in_buckets = buckets.iter().flat_map(|(_, events)| events);
            for event in in_buckets.chain(&tail.events).rev() {
                let number = sequence_of(event).unwrap_or_default();
                if !(first + 1..=last).contains(&number) {
                    continue;
                }
                if !limit.take(event.len()) {
                    read.next = Some(number);
                    return Ok(read);
                }
                // A damaged event must not prevent the purge of its user.
                let event = decode_event(tenant, part.user, event);
                read.is_damaged |= event.is_err();
                read.events.extend(event);
            }
            last = first;
            // Older events may have been removed.
            if last > 0 && !self.has_buckets(part.user, last).await? {
                break;
            }
        }
        Ok(read)
    }

    /// Whether there are buckets that begin with event `last` or an earlier one.
    async fn has_buckets(&mut self, id: LocalityId, last: u64) -> Result<bool, Fault> {
        let journal = self.collections.collection(JOURNAL);
        Ok(self.find_one(&journal, buckets_up_to(id, last)).await?.is_some())
    }

    /// The buckets of a history that have the events with these numbers, in order, each with its
    /// id, and whether some cannot be read. Some may have other events too.
    async fn read_buckets(
        &mut self,
        id: LocalityId,
        tail: &Tail,
        numbers: RangeInclusive<u64>,
    ) -> Result<(Vec<(Bson, Vec<Vec<u8>>)>, bool), Fault> {
        let (first, last) = numbers.into_inner();
        if first > tail.count - tail.events.len() as u64 {
            return Ok((Vec::new(), false));
        }
        let journal = self.collections.collection(JOURNAL);
        let (mut buckets, mut is_damaged) = (Vec::new(), false);
        let filter = buckets_between(id, first.saturating_sub(MAX_EVENTS as u64), last);
        for document in self.find_documents(&journal, filter, None).await? {
            let [bucket] = read_fields(&document, [ID])?;
            let bucket = required(ID, bucket, RawBsonRef::as_binary)?.to_binary();
            // A damaged bucket must not prevent the purge of its user, either.
            match Bucket::events(&document) {
                Ok(events) => buckets.push((bucket, events)),
                Err(fault) => {
                    is_damaged = true;
                    report_damaged_history(&fault);
                }
            }
        }
        // In a transaction over several shards, not every router sorts.
        buckets.sort_unstable_by(|(one, _), (other, _)| one.bytes.cmp(&other.bytes));
        let buckets = buckets.into_iter().map(|(id, events)| (Bson::Binary(id), events));
        Ok((buckets.collect(), is_damaged))
    }

    /// Replaces the events of a user that have the numbers of `events`, which are the newest first.
    pub async fn replace_events(
        &mut self,
        mutation: &Mutation,
        id: LocalityId,
        events: &[Event],
    ) -> Result<(), Fault> {
        let (Some(newest), Some(oldest)) = (events.first(), events.last()) else { return Ok(()) };
        let Some(preserved) = self.users.get(&id) else { return Ok(()) };
        let (revision, mut tail) = (preserved.revision, preserved.tail.clone());
        let names = self.event_names(mutation);
        let mut updates = Vec::new();
        let numbers = oldest.sequence..=newest.sequence;
        for (bucket, mut encoded) in self.read_buckets(id, &tail, numbers).await?.0 {
            if replace(&mut encoded, events, &names) {
                let change = doc! { "$set": { EVENTS: encode_bucket(encoded) } };
                updates.push(doc! { "q": { ID: bucket }, "u": change });
            }
        }
        self.update_many(JOURNAL, updates).await?;
        // The revision rises even if only buckets change: a concurrent change of the user may have
        // moved events there.
        replace(&mut tail.events, events, &names);
        tail.added = Some(0);
        let fields = doc! { TAIL: bytes(tail.encode_to_vec()), EPOCH: self.epoch };
        let change = doc! { "$set": fields, "$inc": { REVISION: self.revision_step } };
        self.update_user(doc! { ID: id_value(id), REVISION: revision }, change).await
    }

    /// Deletes the buckets of a history that begin with event `last` or an earlier one.
    pub async fn delete_events(&mut self, user: LocalityId, last: u64) -> Result<(), Fault> {
        self.execute(WriteCommand::delete(JOURNAL, &buckets_up_to(user, last))?).await?;
        Ok(())
    }
}

/// Replaces the encoded events that have the numbers of `events`. Returns whether there are any.
fn replace(encoded: &mut [Vec<u8>], events: &[Event], names: &KnownNames) -> bool {
    let mut is_changed = false;
    for old in encoded {
        let sequence = sequence_of(old).unwrap_or_default();
        if let Some(new) = of_sequence(events, sequence) {
            *old = encode_stored_event(new.clone(), names);
            is_changed = true;
        }
    }
    is_changed
}
