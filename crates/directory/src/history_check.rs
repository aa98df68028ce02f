//! The check of a user against its history: undoing the events, the newest first, leads back to no
//! user, or to the beginning of the history.

use std::collections::BTreeMap;

use crate::model::event::{ChangeSet, Event, EventKind, RecordedValue};
use crate::model::unknown::Unknown;
use crate::model::user::{Identity, State, User};
use crate::mutation::journal::recorded_fields;
use polynym_identifier::Rules;

/// Checks a user against its events, the newest first.
///
/// # Errors
/// The first contradiction, without personal data.
pub fn check_history(user: &User, events: &[Event]) -> Result<(), String> {
    let mut undone = UndoneUser::new(user);
    for pair in events.windows(2) {
        let [later, earlier] = [pair[0].sequence, pair[1].sequence];
        if later != earlier + 1 {
            return Err(format!("event {later} comes right after event {earlier}"));
        }
    }
    for event in events {
        let number = event.sequence;
        undone
            .undo(&event.changes)
            .map_err(|mismatch| format!("event {number} does not fit: {mismatch}"))?;
    }
    match events.last() {
        Some(first) if first.sequence == 1 => undone.check_beginning(first.kind),
        _ => Ok(()),
    }
}

/// A user while its events are undone.
struct UndoneUser {
    fields: BTreeMap<String, RecordedValue>,
    identities: Vec<Identity>,
    state: Option<State>,
    /// Whether a later event lacks what a purge has removed. The purge may not have come to the
    /// earlier ones yet.
    is_redacted: bool,
}

impl UndoneUser {
    fn new(user: &User) -> Self {
        Self {
            fields: recorded_fields(user),
            identities: user.identities.iter().map(visible).collect(),
            state: Some(user.state),
            is_redacted: false,
        }
    }

    fn undo(&mut self, changes: &ChangeSet) -> Result<(), &'static str> {
        self.is_redacted |= changes.is_redacted;
        for change in &changes.fields {
            if !agree(self.fields.remove(&change.path).as_ref(), change.after.as_ref()) {
                return Err("a field differs");
            }
            let before = change.before.clone().map(|value| (change.path.clone(), value));
            self.fields.extend(before);
        }
        for change in &changes.identities {
            if let Some(after) = change.after.as_ref().map(visible) {
                match self.identities.iter().position(|identity| *identity == after) {
                    Some(position) => drop(self.identities.remove(position)),
                    None if self.is_redacted => {}
                    None => return Err("an identity differs"),
                }
            }
            self.identities.extend(change.before.as_ref().map(visible));
        }
        if let Some((before, after)) = changes.state {
            if self.state != Some(after) {
                return Err("the state differs");
            }
            self.state = before;
        }
        Ok(())
    }

    fn check_beginning(&self, kind: EventKind) -> Result<(), String> {
        let is_beginning = matches!(
            kind,
            EventKind::HistoryBegun | EventKind::UserCreated | EventKind::UserImported
        );
        if !is_beginning {
            return Err("the first event does not create the user".to_owned());
        }
        if self.state.is_some() || !self.fields.is_empty() || !self.identities.is_empty() {
            return Err("the user has values that its events lack".to_owned());
        }
        Ok(())
    }
}

/// Whether two records may be of the same value.
fn agree(one: Option<&RecordedValue>, other: Option<&RecordedValue>) -> bool {
    let is_redacted = |value| matches!(value, Some(&RecordedValue::Redacted));
    one == other || one.is_some() && other.is_some() && (is_redacted(one) || is_redacted(other))
}

/// The part of an identity that events record.
fn visible(identity: &Identity) -> Identity {
    Identity { rules_version: Rules::UNNAMED, unknown: Unknown::default(), ..identity.clone() }
}
