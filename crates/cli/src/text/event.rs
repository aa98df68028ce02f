//! Events in output.

use crate::output::printable;
use crate::text::{attribute, identifier};
use polynym_presentation::state;
use polynym_proto::v1::event::Change;
use polynym_proto::v1::recorded_value::Recorded;
use polynym_proto::v1::{
    ChangeSet, Event, FieldChange, HoldChange, Identity, IdentityChange, RecordedValue, State,
    StateChange, UserState,
};

/// The name of an event's kind, and its changes.
pub fn parts(event: &Event) -> (&'static str, &ChangeSet) {
    match event.change.as_ref() {
        None => ("", const { &EMPTY }),
        Some(Change::HistoryBegun(changes)) => ("the history begins", changes),
        Some(Change::UserCreated(changes)) => ("created", changes),
        Some(Change::UserImported(changes)) => ("imported", changes),
        Some(Change::UserUpdated(changes)) => ("updated", changes),
        Some(Change::UserDisabled(changes)) => ("disabled", changes),
        Some(Change::UserEnabled(changes)) => ("enabled", changes),
        Some(Change::UserDeleted(changes)) => ("deleted", changes),
        Some(Change::UserRestored(changes)) => ("restored", changes),
        Some(Change::UserMerged(changes)) => ("merged", changes),
        Some(Change::UserUnmerged(changes)) => ("merge undone", changes),
        Some(Change::IdentityLinked(changes)) => ("identity linked", changes),
        Some(Change::IdentityUnlinked(changes)) => ("identity unlinked", changes),
        Some(Change::IdentityReplaced(changes)) => ("identity replaced", changes),
        Some(Change::IdentityMoved(changes)) => ("identity moved", changes),
        Some(Change::IdentityVerified(changes)) => ("identity verified", changes),
        Some(Change::IdentityTakenOver(changes)) => ("identity taken over", changes),
        Some(Change::IdentityRenormalized(changes)) => ("identity renormalised", changes),
        Some(Change::HoldReleased(changes)) => ("hold released", changes),
    }
}

const EMPTY: ChangeSet = ChangeSet {
    fields: Vec::new(),
    identities: Vec::new(),
    state: None,
    holds: Vec::new(),
    other_user_id: String::new(),
    redacted: false,
};

/// The reason of an event and the id of its operation, as far as they are given, one per line.
pub fn purpose_lines(reason: &str, operation_id: &str) -> Vec<String> {
    let parts = [("reason", reason), ("operation", operation_id)];
    let given = parts.into_iter().filter(|(_, text)| !text.is_empty());
    given.map(|(name, text)| format!("{name}: {}", printable(text))).collect()
}

/// The changes, one per line: `+` for an addition, `-` for a removal.
pub fn lines(changes: &ChangeSet) -> Vec<String> {
    let other = Some(&changes.other_user_id).filter(|id| !id.is_empty());
    other
        .map(|id| format!("with user {}", printable(id)))
        .into_iter()
        .chain(changes.redacted.then(|| "values of a purged user were removed".to_owned()))
        .chain(changes.state.as_ref().map(state_line))
        .chain(changes.fields.iter().map(field_line))
        .chain(changes.identities.iter().map(identity_line))
        .chain(changes.holds.iter().map(hold_line))
        .collect()
}

/// The changes of a user by an import, as fields with their values before and after.
pub fn cells(changes: &ChangeSet) -> Vec<(String, String, String)> {
    let state = changes
        .state
        .as_ref()
        .map(|change| ("state".to_owned(), state_text(&change.before), state_text(&change.after)));
    let text = |recorded: &Option<RecordedValue>| recorded.as_ref().map_or_else(String::new, value);
    let fields = changes
        .fields
        .iter()
        .map(|change| (change.path.clone(), text(&change.before), text(&change.after)));
    let name = |identity: &Option<Identity>| {
        let identity = identity.as_ref();
        identity.map_or_else(String::new, |own| {
            format!("{}{}", identifier::text(own.identifier.as_ref()), marks(own))
        })
    };
    let identities = changes
        .identities
        .iter()
        .map(|change| ("identity".to_owned(), name(&change.before), name(&change.after)));
    state.into_iter().chain(fields).chain(identities).collect()
}

fn state_line(change: &StateChange) -> String {
    match &change.before {
        None => format!("+ state {}", state_text(&change.after)),
        Some(_) => {
            format!("  state {} -> {}", state_text(&change.before), state_text(&change.after))
        }
    }
}

fn state_text(state: &Option<UserState>) -> String {
    let Some(state) = state else { return "none".to_owned() };
    match (state.state(), &state.purge_time) {
        (State::Deleted, Some(time)) => format!("deleted, to be purged at {time}"),
        (State::Merged, _) => format!("merged into {}", printable(&state.merged_into)),
        (other, _) => state::word(other).to_owned(),
    }
}

fn field_line(change: &FieldChange) -> String {
    let path = printable(&change.path);
    match (change.before.as_ref().map(value), change.after.as_ref().map(value)) {
        (None, Some(after)) => format!("+ {path} {after}"),
        (Some(before), None) => format!("- {path} {before}"),
        (before, after) => {
            format!("  {path} {} -> {}", before.unwrap_or_default(), after.unwrap_or_default())
        }
    }
}

fn value(recorded: &RecordedValue) -> String {
    match &recorded.recorded {
        Some(Recorded::Value(value)) => attribute::text(value),
        Some(Recorded::Digest(digest)) => {
            format!("({} bytes, hash {:016x})", digest.size_bytes, digest.hash)
        }
        Some(Recorded::Redacted(_)) => "(of a purged user)".to_owned(),
        None => String::new(),
    }
}

fn identity_line(change: &IdentityChange) -> String {
    let name = |identity: &Identity| identifier::text(identity.identifier.as_ref());
    match (&change.before, &change.after) {
        (None, Some(after)) => format!("+ {}{}", name(after), marks(after)),
        (Some(before), None) => format!("- {}", name(before)),
        (Some(before), Some(after)) => {
            format!("  {}{} ->{}", name(after), marks(before), marks(after))
        }
        (None, None) => String::new(),
    }
}

/// The marks after an identity's name: whether it is primary and verified.
fn marks(identity: &Identity) -> String {
    let primary = if identity.primary { " primary" } else { "" };
    let verified = match &identity.verify_time {
        Some(_) if identity.verified_by.is_empty() => " verified".to_owned(),
        Some(_) => format!(" verified by {}", printable(&identity.verified_by)),
        None => " not verified".to_owned(),
    };
    format!("{primary}{verified}")
}

fn hold_line(change: &HoldChange) -> String {
    let name = identifier::text(change.identifier.as_ref());
    match &change.end_after {
        Some(time) => format!("  {name} is held until {time}"),
        None => format!("  {name} is held no longer"),
    }
}
