//! The journal of a mutation: the events of the users that it changes, and the ownerships that it
//! ends. Both follow from the users before and after, so no change can be omitted.

use std::collections::{BTreeMap, BTreeSet};

use crate::encoded::encode::value_message;
use crate::model::attribute::Value;
use crate::model::claim::Claim;
use crate::model::event::{
    ChangeSet, Event, EventKind, FieldChange, HoldChange, IdentityChange, Origin, RecordedValue,
};
use crate::model::ownership::Ownership;
use crate::model::policies::Policies;
use crate::model::record::{Hold, Record};
use crate::model::tenant_event::{TenantEvent, TenantEventKind};
use crate::model::user::{Identity, User};
use crate::mutation::claim_diff::{ClaimDiff, UserTransition};
use crate::mutation::read_set::Write;
use crate::mutation::{Mutation, UserChange};
use crate::size;
use crate::timestamp::Timestamp;
use polynym_identifier::IdentityKey;

/// The maximum size of a value that is recorded whole. Larger ones are recorded by their hash.
const MAX_WHOLE_BYTES: usize = 1 << 10;

/// The events of the users that remain, if the tenant's policies need them.
pub fn events(
    mutation: &Mutation,
    time: Timestamp,
    transitions: &[UserTransition<'_>],
) -> Vec<Event> {
    let policies = &mutation.policies;
    if policies.history_retention.is_zero() && !policies.rule_notices {
        return Vec::new();
    }
    let event = |transition: &UserTransition<'_>| {
        let after = transition.after.as_ref()?;
        let mut changes = changes(transition.before, after);
        changes.holds.retain(|hold| hold.after.is_some() || !has_expired(mutation, hold));
        changes.other_user =
            transitions.iter().filter_map(UserTransition::id).find(|id| *id != after.id());
        (!changes.is_empty()).then(|| Event {
            tenant: mutation.tenant.clone(),
            user: after.id(),
            sequence: 0,
            time,
            origin: mutation.origin.clone(),
            kind: kind(mutation, after, &changes),
            changes,
        })
    };
    transitions.iter().filter_map(event).collect()
}

/// The write of an event of the mutation's tenant, unless its `policies` keep no history.
pub fn tenant_event(
    mutation: &Mutation,
    policies: &Policies,
    kind: TenantEventKind,
) -> Option<Write> {
    let event = TenantEvent {
        tenant: mutation.tenant.clone(),
        sequence: 0,
        time: mutation.now.time,
        origin: mutation.origin.clone(),
        kind,
    };
    let retention = Some(policies.history_retention).filter(|time| !time.is_zero());
    retention.map(|retention| Write::AddTenantEvent(Box::new(event), retention))
}

/// The first event of a user who was created before its history began: the whole user before
/// `event`. No call requested it.
pub fn beginning(before: &Record, event: &Event) -> Event {
    let changes = changes(None, before);
    Event { kind: EventKind::HistoryBegun, origin: Origin::default(), changes, ..event.clone() }
}

fn has_expired(mutation: &Mutation, hold: &HoldChange) -> bool {
    hold.before.is_some_and(|until| mutation.is_past(until))
}

/// The kind of the event of a user.
fn kind(mutation: &Mutation, after: &Record, changes: &ChangeSet) -> EventKind {
    let Some((subject, change)) = mutation.kind.user() else { return EventKind::HoldReleased };
    match change {
        UserChange::Merge(..) => EventKind::UserMerged,
        UserChange::Unmerge(_) => EventKind::UserUnmerged,
        UserChange::Move(..) => EventKind::IdentityMoved,
        UserChange::Revert(_) => changes.kinds().first().copied().unwrap_or(EventKind::UserUpdated),
        UserChange::Import(_) if subject != after.id() => EventKind::IdentityMoved,
        _ if subject != after.id() => EventKind::IdentityTakenOver,
        UserChange::Create(_) => EventKind::UserCreated,
        UserChange::Import(_) => EventKind::UserImported,
        UserChange::Update(_)
        | UserChange::Reindex
        | UserChange::RemoveMergeFaults
        | UserChange::Purge
        | UserChange::Expire => EventKind::UserUpdated,
        UserChange::Link(_) => EventKind::IdentityLinked.of_stored(changes),
        UserChange::Unlink(_) => EventKind::IdentityUnlinked,
        UserChange::Replace(..) => EventKind::IdentityReplaced,
        UserChange::Verify(..) => EventKind::IdentityVerified,
        UserChange::Disable => EventKind::UserDisabled,
        UserChange::Enable => EventKind::UserEnabled,
        UserChange::Delete => EventKind::UserDeleted,
        UserChange::Undelete => EventKind::UserRestored,
        UserChange::Renormalize(_) => EventKind::IdentityRenormalized,
    }
}

/// The differences between a user before and after.
pub fn changes(before: Option<&Record>, after: &Record) -> ChangeSet {
    let (old, new) = (before.map(|before| &before.user), &after.user);
    let state = (old.map(|old| old.state), new.state);
    ChangeSet {
        fields: fields(old, new),
        identities: identities(old.map_or(&[], |old| &old.identities), &new.identities),
        state: Some(state).filter(|(old, new)| *old != Some(*new)),
        holds: holds(before.map_or(&[], |before| &before.internals.holds), &after.internals.holds),
        other_user: None,
        is_redacted: false,
    }
}

fn fields(old: Option<&User>, new: &User) -> Vec<FieldChange> {
    let none = BTreeMap::new();
    let (before, after) = (old.map_or(&none, |old| &old.attributes), &new.attributes);
    let names: BTreeSet<_> = before.keys().chain(after.keys()).collect();
    let attribute = |name: &String| {
        let (before, after) = (before.get(name), after.get(name));
        (before != after).then(|| FieldChange {
            path: format!("attributes.{name}"),
            before: before.map(recorded),
            after: after.map(recorded),
        })
    };

    let name = |user: &User| Some(user.display_name.clone()).filter(|name| !name.is_empty());
    let (before, after) = (old.and_then(name), name(new));
    let text = |text| RecordedValue::Whole(Value::String(text));
    let display_name = (before != after).then(|| FieldChange {
        path: "display_name".to_owned(),
        before: before.map(text),
        after: after.map(text),
    });
    names.into_iter().filter_map(attribute).chain(display_name).collect()
}

/// The fields of a user as recorded in its events.
pub fn recorded_fields(user: &User) -> BTreeMap<String, RecordedValue> {
    let attributes = user.attributes.iter();
    let mut fields: BTreeMap<_, _> =
        attributes.map(|(name, value)| (format!("attributes.{name}"), recorded(value))).collect();
    if !user.display_name.is_empty() {
        let name = RecordedValue::Whole(Value::String(user.display_name.clone()));
        fields.insert("display_name".to_owned(), name);
    }
    fields
}

/// The value of an attribute as recorded in an event.
fn recorded(value: &Value) -> RecordedValue {
    let bytes = size::value(value);
    if bytes <= MAX_WHOLE_BYTES {
        return RecordedValue::Whole(value.clone());
    }
    let encoded = prost::Message::encode_to_vec(&value_message(value));
    RecordedValue::Digest(bytes as u64, xxhash_rust::xxh3::xxh3_64(&encoded))
}

fn identities(old: &[Identity], new: &[Identity]) -> Vec<IdentityChange> {
    if old == new {
        return Vec::new();
    }
    let find = |list: &[Identity], one: &Identity| {
        list.iter().find(|other| other.identifier == one.identifier).cloned()
    };
    let removed = old
        .iter()
        .filter(|one| find(new, one).is_none())
        .map(|one| IdentityChange { before: Some(one.clone()), after: None });
    let changed = new.iter().filter_map(|one| {
        let before = find(old, one);
        (before.as_ref() != Some(one)).then(|| IdentityChange { before, after: Some(one.clone()) })
    });
    removed.chain(changed).collect()
}

/// The holds that differ, except those of guards: they follow from their handles.
fn holds(old: &[Hold], new: &[Hold]) -> Vec<HoldChange> {
    let until = |list: &[Hold], key: &IdentityKey| {
        list.iter().find(|hold| hold.key == *key).map(|hold| hold.until)
    };
    let change = |hold: &Hold| {
        let (before, after) = (until(old, &hold.key), until(new, &hold.key));
        (before != after).then(|| HoldChange { key: hold.key.clone(), before, after })
    };
    let ended = old.iter().filter(|hold| until(new, &hold.key).is_none());
    ended.chain(new).filter(|hold| !hold.guard).filter_map(change).collect()
}

/// The ownerships that end, of users that remain.
pub fn ended(
    mutation: &Mutation,
    time: Timestamp,
    transitions: &[UserTransition<'_>],
    changes: &ClaimDiff,
) -> Vec<(IdentityKey, Ownership)> {
    if mutation.policies.history_retention.is_zero() {
        return Vec::new();
    }
    let ownership = |key: &IdentityKey, owner| {
        let transition = transitions.iter().find(|transition| transition.is_of(owner))?;
        let (before, _) = (transition.before?, transition.after.as_ref()?);
        let identity = before.user.identities.iter().find(|own| before.claim(own).0 == *key)?;
        let (begin, identity) = (identity.link_time, Some(identity.clone()));
        Some((key.clone(), Ownership { user: Some(owner), begin, end: time, identity }))
    };
    let ended = changes.iter().filter_map(|(key, (before, after))| {
        let owner = before.as_ref()?.resolves_to()?;
        let new_owner = after.as_ref().and_then(Claim::resolves_to);
        (new_owner != Some(owner)).then(|| ownership(key, owner))?
    });
    ended.collect()
}
