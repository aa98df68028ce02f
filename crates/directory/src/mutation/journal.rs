//! The journal of a mutation: the events of the users that it changes, and the ownerships that it
//! ends. Both follow from the users before and after, so that no change can be left out.

use std::collections::BTreeMap;

use crate::encoded::encode::value_message;
use crate::model::attribute::Value;
use crate::model::event::{
    ChangeSet, Event, EventKind, FieldChange, HoldChange, IdentityChange, RecordedValue,
};
use crate::model::ownership::Ownership;
use crate::model::policies::Policies;
use crate::model::record::{Hold, Record};
use crate::model::tenant_event::{TenantEvent, TenantEventKind};
use crate::model::timestamp::Timestamp;
use crate::model::user::{Identity, User};
use crate::mutation::claim_diff::{ClaimDiff, UserTransition};
use crate::mutation::read_set::Write;
use crate::mutation::{Mutation, UserChange, size};
use polynym_identifier::IdentityKey;

/// The size in bytes from which a value is recorded by its hash.
const LARGE: usize = 1 << 10;

/// The events of the users that stay; none where nothing follows from them.
pub fn events(
    mutation: &Mutation,
    time: Timestamp,
    transitions: &[UserTransition<'_>],
) -> Vec<Event> {
    let policies = &mutation.policies;
    if policies.history_retention.is_zero() && !policies.rule_notices {
        return Vec::new();
    }
    let of = |transition: &UserTransition<'_>| {
        let after = transition.after.as_ref()?;
        let mut changes = changes(transition.before, after);
        if changes.is_empty() {
            return None;
        }
        changes.holds.retain(|hold| hold.after.is_some() || !lapsed(mutation, hold));
        let others = || transitions.iter().filter(|other| !other.is_of(after.id()));
        changes.other_user = others().find_map(UserTransition::id);
        let kind = kind(mutation, after);
        Some(Event {
            tenant: mutation.tenant.clone(),
            user: after.id(),
            sequence: 0,
            time,
            origin: mutation.origin.clone(),
            kind,
            changes,
        })
        .filter(|event| !event.changes.is_empty())
    };
    transitions.iter().filter_map(of).collect()
}

/// The write of an event of the mutation's tenant, which has these policies; none where it keeps no
/// history.
pub fn tenant_event(
    mutation: &Mutation,
    policies: &Policies,
    kind: TenantEventKind,
) -> Option<Write> {
    let event = TenantEvent {
        tenant: mutation.tenant.clone(),
        sequence: 0,
        time: mutation.time,
        origin: mutation.origin.clone(),
        kind,
    };
    let retention = Some(policies.history_retention).filter(|time| !time.is_zero());
    retention.map(|retention| Write::AddTenantEvent(Box::new(event), retention))
}

/// The first event of a user who was created before its history began: it has the whole user as it
/// was before `event`.
pub fn beginning(before: &Record, event: &Event) -> Event {
    let changes = changes(None, before);
    Event { kind: EventKind::HistoryBegun, changes, ..event.clone() }
}

fn lapsed(mutation: &Mutation, hold: &HoldChange) -> bool {
    hold.before.is_some_and(|until| mutation.is_past(until))
}

/// The kind of the event of a user.
fn kind(mutation: &Mutation, after: &Record) -> EventKind {
    let Some((subject, change)) = mutation.kind.user() else { return EventKind::HoldReleased };
    match change {
        UserChange::Merge(..) => EventKind::UserMerged,
        UserChange::Unmerge(_) => EventKind::UserUnmerged,
        UserChange::Move(..) => EventKind::IdentityMoved,
        _ if subject != after.id() => EventKind::IdentityTakenOver,
        UserChange::Create(_) => EventKind::UserCreated,
        UserChange::Import(_) => EventKind::UserImported,
        UserChange::Update(_) | UserChange::Reindex | UserChange::Purge | UserChange::Expire => {
            EventKind::UserUpdated
        }
        UserChange::Link(_) => EventKind::IdentityLinked,
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
fn changes(before: Option<&Record>, after: &Record) -> ChangeSet {
    let (old, new) = (before.map(|before| &before.user), &after.user);
    let state = (old.map(|old| old.state), new.state);
    ChangeSet {
        fields: fields(old, new),
        identities: identities(old.map_or(&[], |old| &old.identities), &new.identities),
        state: Some(state).filter(|(old, new)| *old != Some(*new)),
        holds: holds(before.map_or(&[], |before| &before.private.holds), &after.private.holds),
        other_user: None,
        is_redacted: false,
    }
}

fn fields(old: Option<&User>, new: &User) -> Vec<FieldChange> {
    let none = BTreeMap::new();
    let (had, has) = (old.map_or(&none, |old| &old.attributes), &new.attributes);
    let removed = had.iter().filter(|(name, _)| !has.contains_key(*name));
    let removed = removed.map(|(name, value)| (name, Some(value), None));
    let set = has.iter().map(|(name, value)| (name, had.get(name), Some(value)));
    let mut attributes: Vec<_> = removed.chain(set.filter(|(_, old, new)| old != new)).collect();
    attributes.sort_unstable_by_key(|(name, ..)| *name);
    let attribute =
        |(name, before, after): (&String, Option<&Value>, Option<&Value>)| FieldChange {
            path: format!("attributes.{name}"),
            before: before.map(recorded),
            after: after.map(recorded),
        };

    let name = |user: &User| Some(user.display_name.clone()).filter(|name| !name.is_empty());
    let (before, after) = (old.and_then(name), name(new));
    let text = |text| RecordedValue::Whole(Value::String(text));
    let display_name = (before != after).then(|| FieldChange {
        path: "display_name".to_owned(),
        before: before.map(text),
        after: after.map(text),
    });
    attributes.into_iter().map(attribute).chain(display_name).collect()
}

/// The fields of a user as its events have them.
pub fn recorded_fields(user: &User) -> BTreeMap<String, RecordedValue> {
    let attribute = |(name, value)| (format!("attributes.{name}"), recorded(value));
    let name = Some(&user.display_name).filter(|name| !name.is_empty());
    let name = name
        .map(|name| ("display_name".to_owned(), RecordedValue::Whole(Value::String(name.clone()))));
    user.attributes.iter().map(attribute).chain(name).collect()
}

/// The value of an attribute as an event has it.
fn recorded(value: &Value) -> RecordedValue {
    let bytes = size::value(value);
    if bytes <= LARGE {
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
    let removed = old.iter().filter(|one| find(new, one).is_none());
    let removed = removed.map(|one| IdentityChange { before: Some(one.clone()), after: None });
    let set = new.iter().filter_map(|one| {
        let before = find(old, one);
        (before.as_ref() != Some(one)).then(|| IdentityChange { before, after: Some(one.clone()) })
    });
    removed.chain(set).collect()
}

/// The holds that differ. Those of guards follow from those of their handles.
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

/// The ownerships that end, of users that stay.
pub fn ended(
    mutation: &Mutation,
    time: Timestamp,
    transitions: &[UserTransition<'_>],
    changes: &ClaimDiff,
) -> Vec<(IdentityKey, Ownership)> {
    if mutation.policies.history_retention.is_zero() {
        return Vec::new();
    }
    let ended = |key: &IdentityKey, owner| {
        let transition = transitions.iter().find(|transition| transition.is_of(owner))?;
        let (before, _) = (transition.before?, transition.after.as_ref()?);
        let identity = before.user.identities.iter().find(|own| before.claim(own).0 == *key)?;
        let (user, identity) = (Some(owner), identity.clone());
        Some(Ownership { user, begin: identity.link_time, end: time, identity: Some(identity) })
    };
    let of = |(key, (before, after)): (&IdentityKey, &_)| {
        let owner = |claim: &Option<crate::model::claim::Claim>| claim.as_ref()?.resolves_to();
        let former = owner(before).filter(|former| owner(after) != Some(*former))?;
        Some((key.clone(), ended(key, former)?))
    };
    changes.iter().filter_map(of).collect()
}
