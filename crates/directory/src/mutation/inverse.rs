//! The inverse of an event: a user as it was before.

use crate::error::NotUndone;
use crate::model::attribute::Value;
use crate::model::event::{Event, FieldChange, HoldChange, IdentityChange, RecordedValue};
use crate::model::record::{Guarded, Hold, Record};
use crate::model::user::{Identity, State};
use crate::mutation::operation_events::Renamed;
use crate::mutation::read_set::DecideError;
use crate::mutation::renormalize::present_form;
use crate::mutation::{Mutation, journal, user_edits};
use polynym_identifier::IdentityKey;

/// Undoes an event, the newest of the record.
///
/// # Errors
/// [`NotUndone::ChangedSince`] if the record is not as the event left it;
/// [`NotUndone::ValuesNotKept`] if the event cannot be undone.
pub fn undo(
    mutation: &Mutation,
    renamed: &Renamed<'_>,
    event: &Event,
    record: &mut Record,
) -> Result<(), DecideError> {
    let changes = &event.changes;
    let is_merge = event.kind.is_merge();
    if is_merge || changes.is_redacted {
        return Err(NotUndone::ValuesNotKept.into());
    }
    let identities: Vec<_> =
        changes.identities.iter().map(|change| with_present_forms(change, renamed)).collect();
    check_after(event, &identities, record)?;
    if let Some((before, after)) = changes.state {
        undo_state(mutation, before, after, record)?;
    }
    for change in &changes.fields {
        undo_field(change, record)?;
    }
    let mut guards = Vec::new();
    for change in &identities {
        guards.extend(undo_identity(mutation, change, record)?);
    }
    for change in &changes.holds {
        undo_hold(mutation, change, &guards, record)?;
    }
    Ok(())
}

/// The change with the identifiers that later rules have given to its identities.
fn with_present_forms(change: &IdentityChange, renamed: &Renamed<'_>) -> IdentityChange {
    let present = |identity: &Identity| {
        let form = renamed.get(&identity.identifier).copied();
        Identity { identifier: form.unwrap_or(&identity.identifier).clone(), ..identity.clone() }
    };
    let IdentityChange { before, after } = change;
    IdentityChange { before: before.as_ref().map(present), after: after.as_ref().map(present) }
}

/// Rejects a record that is not as the event left it: there was a change without an event.
fn check_after(
    event: &Event,
    identities: &[IdentityChange],
    record: &Record,
) -> Result<(), DecideError> {
    let (changes, user) = (&event.changes, &record.user);
    let fields = journal::recorded_fields(user);
    let has_fields =
        changes.fields.iter().all(|change| change.after.as_ref() == fields.get(&change.path));
    let has_identities = identities.iter().all(|change| {
        let named = change.after.as_ref().or(change.before.as_ref());
        let present = named.and_then(|named| user.identity(&named.identifier));
        is_alike(change.after.as_ref(), present)
    });
    let has_state = changes.state.is_none_or(|(_, after)| after == user.state);
    let is_whole = match changes.state {
        Some((None, _)) => {
            (changes.fields.len(), identities.len()) == (fields.len(), user.identities.len())
        }
        _ => true,
    };
    match has_fields && has_identities && has_state && is_whole {
        true => Ok(()),
        false => Err(NotUndone::UNEXPLAINED.into()),
    }
}

/// Whether both are the same identity, whenever and by whichever rules it was linked.
fn is_alike(one: Option<&Identity>, other: Option<&Identity>) -> bool {
    let visible = |identity: &Identity| {
        let Identity { identifier, display, verification, primary, .. } = identity.clone();
        (identifier, display, verification, primary)
    };
    one.map(visible) == other.map(visible)
}

fn undo_state(
    mutation: &Mutation,
    before: Option<State>,
    after: State,
    record: &mut Record,
) -> Result<(), DecideError> {
    match before {
        // The user is deleted in the end.
        None => return Ok(()),
        Some(State::Active | State::Disabled) => record.internals.disabled = false,
        Some(State::Deleted { purge_time, .. }) if purge_time > mutation.now.time => {
            record.internals.disabled = after == State::Disabled;
        }
        Some(State::Deleted { .. } | State::Merged { .. }) => {
            return Err(NotUndone::ValuesNotKept.into());
        }
    }
    record.user.state = before.unwrap_or_default();
    Ok(())
}

fn undo_field(change: &FieldChange, record: &mut Record) -> Result<(), DecideError> {
    let before = match &change.before {
        None => None,
        Some(RecordedValue::Whole(value)) => Some(value.clone()),
        Some(RecordedValue::Digest(..) | RecordedValue::Redacted) => {
            return Err(NotUndone::ValuesNotKept.into());
        }
    };
    let user = &mut record.user;
    match (change.path.strip_prefix("attributes."), before) {
        (Some(name), Some(value)) => drop(user.attributes.insert(name.to_owned(), value)),
        (Some(name), None) => drop(user.attributes.remove(name)),
        (None, Some(Value::String(name))) => user.display_name = name,
        (None, _) => user.display_name.clear(),
    }
    Ok(())
}

/// Undoes the change of an identity. Returns the guard that goes with one that is removed.
fn undo_identity(
    mutation: &Mutation,
    change: &IdentityChange,
    record: &mut Record,
) -> Result<Option<Guarded>, DecideError> {
    let named = change.after.as_ref().or(change.before.as_ref());
    let position =
        named.and_then(|named| user_edits::position(&record.user, &named.identifier).ok());
    match (&change.before, position) {
        (None, Some(n)) => return Ok(record.remove_identity(n).1),
        (None, None) => {}
        (Some(before), Some(n)) => {
            let present = &mut record.user.identities[n];
            present.display.clone_from(&before.display);
            present.verification.clone_from(&before.verification);
            present.primary = before.primary;
        }
        (Some(before), None) => restore_identity(mutation, before, record)?,
    }
    Ok(None)
}

/// Gives the user an identity back, in the form of the present rules. It is owned from now on: the
/// history says who had it in between.
fn restore_identity(
    mutation: &Mutation,
    before: &Identity,
    record: &mut Record,
) -> Result<(), DecideError> {
    let (identifier, rules_version) =
        present_form(&before.identifier, &before.display, mutation.rules);
    if record.user.identity(&identifier).is_some() {
        return Err(NotUndone::UNEXPLAINED.into());
    }
    let link_time = mutation.now.time.after(record.user.update_time);
    record.guard(&identifier, &mutation.policies);
    record.user.identities.push(Identity {
        identifier,
        link_time,
        rules_version,
        import_time: None,
        ..before.clone()
    });
    Ok(())
}

/// Undoes the change of a hold, and of the guards that are held with it.
fn undo_hold(
    mutation: &Mutation,
    change: &HoldChange,
    guards: &[Guarded],
    record: &mut Record,
) -> Result<(), DecideError> {
    let HoldChange { key, before, after } = change;
    let tenant = record.user.tenant.clone();
    let holds = &mut record.internals.holds;
    let present = holds.iter().find(|hold| hold.key == *key).map(|hold| hold.until);
    let is_over = |until: &Option<_>| until.is_none_or(|until| mutation.is_past(until));
    if present != *after && !(is_over(&present) && is_over(after)) {
        return Err(NotUndone::UNEXPLAINED.into());
    }
    let guarded = |guarded: &&Guarded| IdentityKey::new(tenant.as_str(), &guarded.handle) == *key;
    let guard = guards.iter().find(guarded).map(|one| &one.guard);
    let guard_key = guard.map(|guard| IdentityKey::of_guard(tenant.as_str(), guard));
    holds.retain(|hold| hold.key != *key && Some(&hold.key) != guard_key.as_ref());
    if let Some(until) = before.filter(|until| !mutation.is_past(*until)) {
        let rules_version = mutation.rules.version();
        let hold = |key, guard| Hold { key, until, guard, rules_version };
        holds.push(hold(key.clone(), false));
        holds.extend(guard_key.map(|key| hold(key, true)));
    }
    Ok(())
}
