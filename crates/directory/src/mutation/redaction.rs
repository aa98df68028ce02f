//! The removal of purged users' values from the histories of other users: those with whom they were
//! merged or shared an identity.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use locality_uuid::LocalityId;

use crate::encoded::event::encode_recorded;
use crate::model::event::{Event, FieldChange, RecordedValue};
use crate::model::user::User;
use crate::mutation::journal::recorded_fields;
use crate::mutation::read_set::Write;
use polynym_identifier::{Identifier, IdentityKey};

/// The users that a mutation purges, with the values in their histories.
#[derive(Debug, Default)]
pub struct PurgedValues {
    users: BTreeSet<LocalityId>,
    identifiers: BTreeSet<Identifier>,
    fields: BTreeMap<String, HashSet<Vec<u8>>>,
    others: BTreeSet<LocalityId>,
}

/// The changes of the history of one other user.
#[derive(Debug, Default)]
pub struct Redaction {
    /// The writes.
    pub writes: Vec<Write>,
    /// The events that they rewrite.
    pub events: usize,
}

impl PurgedValues {
    /// Adds a user and its events.
    pub fn add(&mut self, user: &User, events: &[Event]) {
        self.users.insert(user.id);
        self.identifiers.extend(user.identities.iter().map(|identity| identity.identifier.clone()));
        for changes in events.iter().map(|event| &event.changes) {
            self.others.extend(changes.other_user);
            for change in &changes.identities {
                let identities = change.before.iter().chain(&change.after);
                self.identifiers.extend(identities.map(|identity| identity.identifier.clone()));
            }
            for change in &changes.fields {
                let values = change.before.iter().chain(&change.after).map(encode_recorded);
                self.fields.entry(change.path.clone()).or_default().extend(values);
            }
        }
    }

    /// The other users whose events may have these values.
    pub fn others(&self) -> Vec<LocalityId> {
        self.others.difference(&self.users).copied().collect()
    }

    /// Removes these values from at most `limit` of the user's events, the newest first, and the
    /// user from the ended ownerships of the identifiers that it lost by them. The user's present
    /// values stay.
    pub fn redaction(&self, user: &User, events: &[Event], limit: usize) -> Redaction {
        let foreign =
            self.identifiers.iter().filter(|identifier| user.identity(identifier).is_none());
        let values = ForeignValues {
            keys: foreign.map(|name| IdentityKey::new(user.tenant.as_str(), name)).collect(),
            fields: &self.fields,
            present: recorded_fields(user),
            since: self.first_event_of(events).unwrap_or(u64::MAX),
        };
        let redacted = events.iter().filter_map(|event| Some((event, values.redacted(event)?)));
        let (before, after): (Vec<_>, Vec<_>) = redacted.take(limit).unzip();
        let lost: BTreeSet<_> = before.into_iter().flat_map(Event::lost_keys).collect();
        let forgotten =
            lost.intersection(&values.keys).map(|key| Write::ForgetOwnership(key.clone(), user.id));

        let events = after.len();
        let rewrite = (events > 0).then_some(Write::ReplaceEvents(user.id, after));
        Redaction { writes: rewrite.into_iter().chain(forgotten).collect(), events }
    }

    /// The number of the first event that one of the purged users shares.
    fn first_event_of(&self, events: &[Event]) -> Option<u64> {
        let is_purged = |other| self.users.contains(&other);
        let shared = events.iter().filter(|event| event.changes.other_user.is_some_and(is_purged));
        shared.map(|event| event.sequence).min()
    }
}

/// The values of purged users in the history of another user.
struct ForeignValues<'v> {
    /// Identifiers that the user does not have now.
    keys: BTreeSet<IdentityKey>,
    fields: &'v BTreeMap<String, HashSet<Vec<u8>>>,
    /// The fields that the user has now.
    present: BTreeMap<String, RecordedValue>,
    /// The number of the event from which fields may have values of others.
    since: u64,
}

impl ForeignValues<'_> {
    /// The event without these values; `None` if it has none.
    fn redacted(&self, event: &Event) -> Option<Event> {
        let mut after = event.clone();
        after.changes.identities.retain(|change| {
            change.before.as_ref().or(change.after.as_ref()).is_none_or(|own| {
                !self.keys.contains(&IdentityKey::new(event.tenant.as_str(), &own.identifier))
            })
        });
        after.changes.holds.retain(|hold| !self.keys.contains(&hold.key));
        if event.sequence >= self.since {
            after.changes.fields.iter_mut().for_each(|change| self.redact_field(change));
        }
        if after.changes == event.changes {
            return None;
        }
        after.changes.is_redacted = true;
        Some(after)
    }

    fn redact_field(&self, FieldChange { path, before, after }: &mut FieldChange) {
        let Some(foreign) = self.fields.get(path) else { return };
        let present = self.present.get(path);
        for value in before.iter_mut().chain(after) {
            if foreign.contains(&encode_recorded(value)) && present != Some(value) {
                *value = RecordedValue::Redacted;
            }
        }
    }
}
