//! The part of a purge that concerns histories, in steps of one transaction each, so that no purge
//! needs much memory or holds up other mutations for long:
//!
//! 1. collects the values in the events of the purged users;
//! 2. removes these values from the events of other users, with whom they were merged or shared an
//!    identity;
//! 3. removes the events of the purged users, the oldest first, but for the newest ones, which the
//!    transaction that removes the users takes along.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use xxhash_rust::xxh3::{Xxh3, xxh3_128};

use super::Mutation;
use crate::encoded::event::encode_recorded;
use crate::history_part::HistoryPart;
use crate::model::event::{Event, FieldChange, RecordedValue};
use crate::model::record::Record;
use crate::model::user::{Identity, User};
use crate::mutation::journal::recorded_fields;
use crate::mutation::read_set::{DecideError, ReadSet, Write};
use crate::purge_progress::{OwnHistory, PurgeProgress, PurgedValues, ValueSet};
use crate::timestamp::Timestamp;
use polynym_identifier::IdentityKey;

/// The events that are read of each of several other users at once.
const EVENTS_PER_OTHER: usize = 16;

/// The outcome of a step.
pub enum PurgeStep {
    /// The users can be removed, with these writes.
    Last(Vec<Write>),
    /// Further transactions must follow this one.
    Partial(Vec<Write>, Arc<PurgeProgress>),
}

/// Takes the next step of purging `removed`.
pub fn advance(
    mutation: &Mutation,
    read_set: &ReadSet,
    removed: &[&Record],
) -> Result<PurgeStep, DecideError> {
    if mutation.dry_run {
        return Ok(PurgeStep::Last(Vec::new()));
    }
    let known = match &mutation.purge {
        Some(progress) if progress.is_current(read_set, removed)? => Some(&**progress),
        _ => None,
    };
    let mut step = Step {
        mutation,
        read_set,
        progress: known.cloned().unwrap_or_default(),
        events: mutation.limits.purge_events.max(1),
        writes: Vec::new(),
    };
    let is_last = step.collect(removed)? && step.redact(removed)? && step.remove_older_parts()?;
    let Step { progress, writes, .. } = step;
    Ok(if is_last {
        PurgeStep::Last(writes)
    } else {
        PurgeStep::Partial(writes, Arc::new(progress))
    })
}

impl PurgeProgress {
    /// Whether it is about these users, and their histories have not grown since.
    fn is_current(&self, read_set: &ReadSet, removed: &[&Record]) -> Result<bool, DecideError> {
        let is_same =
            self.histories.iter().zip(removed).all(|(history, user)| history.user == user.id());
        let is_redacting = self.redacted.is_some() || self.cursor.is_some();
        let (known, wanted) = (self.histories.len(), removed.len());
        if !is_same || known > wanted || is_redacting && known < wanted {
            return Ok(false);
        }
        let newest =
            |history: &OwnHistory| HistoryPart { user: history.user, cursor: None, limit: 1 };
        read_set.read_histories(&self.histories.iter().map(newest).collect::<Vec<_>>())?;
        for history in &self.histories {
            let newest = newest(history);
            let events = &read_set.read_history(newest)?.events;
            if events.first().map_or(0, |event| event.sequence) != history.newest {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// A step, while it is decided.
struct Step<'s> {
    mutation: &'s Mutation,
    read_set: &'s ReadSet,
    progress: PurgeProgress,
    /// The events that it may still read.
    events: usize,
    writes: Vec<Write>,
}

impl Step<'_> {
    /// Collects the values of the purged users. Returns whether it has all of them.
    ///
    /// The first parts of all histories share the events of one transaction: the last one removes
    /// them together.
    fn collect(&mut self, removed: &[&Record]) -> Result<bool, DecideError> {
        let share = (self.mutation.limits.purge_events / removed.len().max(1)).max(1);
        let known = self.progress.histories.len();
        let part = |record: &&Record| HistoryPart { user: record.id(), cursor: None, limit: share };
        let first: Vec<_> = removed.iter().skip(known).take(self.events).map(part).collect();
        self.read_set.read_histories(&first)?;
        let mut values = ValueSet::default();
        for (part, record) in first.into_iter().zip(removed.iter().skip(known)) {
            values.add_user(&record.user);
            let history =
                OwnHistory { user: record.id(), newest: 0, parts: Vec::new(), is_collected: false };
            let history = self.collect_part(history, part, &mut values)?;
            self.progress.histories.push(history);
        }
        for n in 0..self.progress.histories.len() {
            let history = self.progress.histories[n].clone();
            if history.is_collected || self.events == 0 {
                continue;
            }
            // A part that was read in this step is in the cursors already.
            let cursor = history.parts.last().copied();
            let part = HistoryPart { user: history.user, cursor, limit: self.events };
            self.progress.histories[n] = self.collect_part(history, part, &mut values)?;
        }
        self.progress.values.push(values);
        let histories = &self.progress.histories;
        Ok(histories.len() == removed.len() && histories.iter().all(|history| history.is_collected))
    }

    /// Collects the values of the next part of a history.
    fn collect_part(
        &mut self,
        mut history: OwnHistory,
        part: HistoryPart,
        values: &mut ValueSet,
    ) -> Result<OwnHistory, DecideError> {
        let read = self.read_set.read_history(part)?;
        self.events = self.events.saturating_sub(read.events.len().max(1));
        if part.cursor.is_none() {
            history.newest = read.events.first().map_or(0, |event| event.sequence);
        }
        read.events.iter().for_each(|event| values.add_event(event));
        history.parts.extend(read.next);
        history.is_collected = read.next.is_none();
        Ok(history)
    }

    /// Removes the values from the events of others. Returns whether it has come to the last. Reads
    /// the histories of several others together: each read starts the decision over.
    fn redact(&mut self, removed: &[&Record]) -> Result<bool, DecideError> {
        let removed: BTreeSet<_> = removed.iter().map(|record| record.id()).collect();
        let (read_set, mutation) = (self.read_set, self.mutation);
        let is_own = |record: &&Record| {
            record.user.tenant == mutation.tenant && !removed.contains(&record.id())
        };
        loop {
            let count = match self.progress.cursor {
                Some(_) => 1,
                None => (self.events / EVENTS_PER_OTHER).max(1),
            };
            let others = self.progress.values.next_others(self.progress.redacted, count);
            if others.is_empty() {
                return Ok(true);
            }
            if self.events == 0 {
                return Ok(false);
            }
            self.events = self.events.saturating_sub(others.len());
            let limit = (self.events / others.len()).max(1);
            let ids: Vec<_> = others.iter().map(|(id, _)| *id).collect();
            let cursor = self.progress.cursor;
            let part = |record: &Record| HistoryPart { user: record.id(), cursor, limit };
            let found = read_set.read_users(&ids)?.into_iter().filter(is_own);
            read_set.read_histories(&found.map(part).collect::<Vec<_>>())?;
            for (other, since) in others {
                let next = match read_set.user(other).filter(is_own) {
                    Some(record) => self.redact_part(record, since, part(record))?,
                    None => None,
                };
                self.progress.cursor = next;
                if next.is_some() {
                    return Ok(false);
                }
                self.progress.redacted = Some(other);
            }
        }
    }

    /// Removes the values from a part of the events of another user. Returns the cursor of the next
    /// part.
    fn redact_part(
        &mut self,
        record: &Record,
        since: Timestamp,
        part: HistoryPart,
    ) -> Result<Option<u64>, DecideError> {
        let read = self.read_set.read_history(part)?;
        self.events = self.events.saturating_sub(read.events.len());
        let values = &self.progress.values;
        self.writes.extend(values.redaction(&record.user, since, part, &read.events));
        Ok(read.next)
    }

    /// Removes the oldest parts of histories that have several. Returns whether there were none.
    fn remove_older_parts(&mut self) -> Result<bool, DecideError> {
        let limit = self.mutation.limits.purge_events.max(1);
        let has_parts = |history: &&mut OwnHistory| !history.parts.is_empty();
        let mut is_last = true;
        for history in self.progress.histories.iter_mut().filter(has_parts) {
            is_last = false;
            if self.events == 0 {
                break;
            }
            let cursor = history.parts.last().copied();
            let part = HistoryPart { user: history.user, cursor, limit: self.events };
            let read = self.read_set.read_history(part)?;
            if let Some(older) = read.next {
                // A part is removed whole: a large one by a transaction of its own.
                history.parts.extend(Some(older).filter(|_| self.events == limit));
                break;
            }
            self.events = self.events.saturating_sub(read.events.len().max(1));
            let lost = read.events.iter().flat_map(|event| event.lost_keys());
            self.writes.extend(lost.map(|key| Write::ForgetOwnership(key, history.user)));
            self.writes.extend(
                history.parts.pop().map(|cursor| Write::RemoveEvents(history.user, cursor)),
            );
        }
        Ok(is_last)
    }
}

impl ValueSet {
    /// Adds the present values of a purged user.
    fn add_user(&mut self, user: &User) {
        let keys = user.identities.iter().map(|identity| user_key(user, identity));
        self.hashes.extend(keys.map(|key| key_hash(&key)));
        let fields = recorded_fields(user);
        self.hashes.extend(fields.iter().map(|(path, value)| field_hash(path, value)));
    }

    /// Adds the values in an event of a purged user.
    fn add_event(&mut self, event: &Event) {
        if let Some(other) = event.changes.other_user {
            self.add_other(other, event.time);
        }
        for change in &event.changes.identities {
            let identities = change.before.iter().chain(&change.after);
            let keys =
                identities.map(|identity| IdentityKey::new(tenant(event), &identity.identifier));
            self.hashes.extend(keys.map(|key| key_hash(&key)));
        }
        for FieldChange { path, before, after } in &event.changes.fields {
            let values = before.iter().chain(after);
            self.hashes.extend(values.map(|value| field_hash(path, value)));
        }
    }
}

impl PurgedValues {
    /// The writes that remove these values from a part of the user's events, and the user from the
    /// ended ownerships of the identifiers that it lost by them. The user's present values stay.
    /// Fields of events before `since` are the user's own.
    fn redaction(
        &self,
        user: &User,
        since: Timestamp,
        part: HistoryPart,
        events: &[Event],
    ) -> Vec<Write> {
        let values = ForeignValues {
            values: self,
            present_keys: user.identities.iter().map(|identity| user_key(user, identity)).collect(),
            present: recorded_fields(user),
            since,
        };
        let redacted = events.iter().filter_map(|event| Some((event, values.redacted(event)?)));
        let (before, after): (Vec<_>, Vec<_>) = redacted.unzip();
        let lost: BTreeSet<_> = before.into_iter().flat_map(Event::lost_keys).collect();
        let foreign = lost.into_iter().filter(|key| values.has_key(key));
        let forgotten = foreign.map(|key| Write::ForgetOwnership(key, user.id));
        let rewrite = (!after.is_empty()).then_some(Write::ReplaceEvents(part, after));
        rewrite.into_iter().chain(forgotten).collect()
    }
}

/// The values of purged users in the history of another user.
struct ForeignValues<'v> {
    values: &'v PurgedValues,
    /// The keys of the identities that the user has now.
    present_keys: BTreeSet<IdentityKey>,
    /// The fields that the user has now.
    present: BTreeMap<String, RecordedValue>,
    /// The time from which fields may have values of others.
    since: Timestamp,
}

impl ForeignValues<'_> {
    /// The event without these values; `None` if it has none.
    fn redacted(&self, event: &Event) -> Option<Event> {
        let mut after = event.clone();
        after.changes.identities.retain(|change| {
            change.before.as_ref().or(change.after.as_ref()).is_none_or(|identity| {
                !self.has_key(&IdentityKey::new(tenant(event), &identity.identifier))
            })
        });
        after.changes.holds.retain(|hold| !self.has_key(&hold.key));
        if event.time >= self.since {
            after.changes.fields.iter_mut().for_each(|change| self.redact_field(change));
        }
        if after.changes == event.changes {
            return None;
        }
        after.changes.is_redacted = true;
        // The reason may name the purged user.
        after.origin.reason.clear();
        Some(after)
    }

    /// Whether a purged user had this identity, and the user does not have it now.
    fn has_key(&self, key: &IdentityKey) -> bool {
        !self.present_keys.contains(key) && self.values.has(key_hash(key))
    }

    fn redact_field(&self, FieldChange { path, before, after }: &mut FieldChange) {
        let present = self.present.get(path);
        for value in before.iter_mut().chain(after) {
            if present != Some(value) && self.values.has(field_hash(path, value)) {
                *value = RecordedValue::Redacted;
            }
        }
    }
}

fn tenant(event: &Event) -> &str {
    event.tenant.as_str()
}

fn user_key(user: &User, identity: &Identity) -> IdentityKey {
    IdentityKey::new(user.tenant.as_str(), &identity.identifier)
}

fn key_hash(key: &IdentityKey) -> u128 {
    xxh3_128(key.as_str().as_bytes())
}

fn field_hash(path: &str, value: &RecordedValue) -> u128 {
    let mut hash = Xxh3::new();
    hash.update(path.as_bytes());
    hash.update(&[0]);
    hash.update(&encode_recorded(value));
    hash.digest128()
}
