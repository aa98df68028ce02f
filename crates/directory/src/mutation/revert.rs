//! Undoing an operation of many changes, such as an import, for one user: the user becomes what it
//! was before, unless somebody changed it since.

use locality_uuid::LocalityId;

use super::{Mutation, user_edits};
use crate::error::{Error, NotUndone};
use crate::history_part::HistoryPart;
use crate::model::attribute::Value;
use crate::model::event::{Event, FieldChange, IdentityChange, RecordedValue};
use crate::model::record::Record;
use crate::model::user::{Identity, State};
use crate::mutation::claim_diff::{ClaimDiff, UserTransition, plan_writes};
use crate::mutation::read_set::{DecideError, MutationReport, ReadSet, WriteSet};

/// The events of a user that are read: more of one operation are not undone.
const MAX_EVENTS: usize = 64;

/// The method that undoes operations. Its events have the id of the operation that they undo.
pub const METHOD: &str = "UndoOperation";

/// Undoes what an operation did to the user, if it did something and was not undone before. A user
/// that the operation created is deleted.
pub fn revert(
    mutation: &Mutation,
    read_set: &ReadSet,
    id: LocalityId,
    operation_id: &str,
) -> Result<WriteSet, DecideError> {
    let before = mutation.present(read_set, id)?;
    if let State::Merged { into } = before.user.state {
        return Err(Error::UserMerged { user: id, into }.into());
    }
    let part = HistoryPart { user: id, cursor: None, limit: MAX_EVENTS };
    let events = &read_set.read_history(part)?.events;
    let is_own = |event: &&Event| event.origin.operation_id == operation_id;
    let own: Vec<_> =
        events.iter().take_while(|event| is_own(event) && event.origin.method != METHOD).collect();
    if own.is_empty() {
        return match events.iter().position(|event| is_own(&event)) {
            // The newest event undid the operation.
            None | Some(0) => Ok(WriteSet::unchanged(Some(id))),
            Some(_) => Err(Error::NotUndone(NotUndone::ChangedSince).into()),
        };
    }
    let mut after = before.clone();
    if own.len() == MAX_EVENTS || !own.iter().all(|event| undo(mutation, event, &mut after)) {
        return Err(Error::NotUndone(NotUndone::ValuesNotKept).into());
    }
    after.user.assign_primaries();
    let reverted = UserTransition::new(before, after);
    let write_set = plan_writes(mutation, read_set, vec![reverted], ClaimDiff::new())?;
    Ok(WriteSet { report: MutationReport::Reverted, ..write_set })
}

/// Undoes one event, the newest. False if that is not possible.
fn undo(mutation: &Mutation, event: &Event, record: &mut Record) -> bool {
    let changes = &event.changes;
    if changes.other_user.is_some() || changes.is_redacted {
        return false;
    }
    match changes.state {
        Some((None, _)) => {
            user_edits::delete(mutation, record);
            return true;
        }
        Some((Some(before @ (State::Active | State::Disabled)), _)) => {
            record.internals.disabled = false;
            record.user.state = before;
        }
        Some(_) => return false,
        None => {}
    }
    let fields = changes.fields.iter().all(|change| undo_field(change, record));
    fields && changes.identities.iter().all(|change| undo_identity(mutation, change, record))
}

fn undo_field(change: &FieldChange, record: &mut Record) -> bool {
    let before = match &change.before {
        None => None,
        Some(RecordedValue::Whole(value)) => Some(value.clone()),
        Some(RecordedValue::Digest(..) | RecordedValue::Redacted) => return false,
    };
    let user = &mut record.user;
    match (change.path.strip_prefix("attributes."), before) {
        (Some(name), Some(value)) => drop(user.attributes.insert(name.to_owned(), value)),
        (Some(name), None) => drop(user.attributes.remove(name)),
        (None, Some(Value::String(name))) => user.display_name = name,
        (None, _) => user.display_name.clear(),
    }
    true
}

fn undo_identity(mutation: &Mutation, change: &IdentityChange, record: &mut Record) -> bool {
    let named = change.after.as_ref().or(change.before.as_ref());
    let position =
        named.and_then(|named| user_edits::position(&record.user, &named.identifier).ok());
    match (&change.before, position) {
        (None, Some(n)) => drop(record.remove_identity(n)),
        (None, None) => {}
        (Some(before), Some(n)) => {
            let present = &mut record.user.identities[n];
            present.display.clone_from(&before.display);
            present.verification.clone_from(&before.verification);
            present.primary = before.primary;
        }
        (Some(before), None) => {
            let link_time = mutation.time.after(record.user.update_time);
            let rules_version = mutation.rules.version();
            let again = Identity { link_time, rules_version, import_time: None, ..before.clone() };
            record.guard(&again.identifier, mutation.rules, &mutation.policies);
            record.user.identities.push(again);
        }
    }
    true
}
