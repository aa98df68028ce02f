//! Users whom an undo deleted. A line of an import restores the one that it is about, and takes
//! identities from the others.

use std::collections::HashSet;

use locality_uuid::LocalityId;

use crate::history_part::HistoryPart;
use crate::model::event::Event;
use crate::model::imported_user::{ImportedIdentity, ImportedUser};
use crate::model::record::{Guarded, Record};
use crate::model::user::{Identity, State};
use crate::mutation::claim_diff::UserTransition;
use crate::mutation::read_set::{DecideError, ReadSet};
use crate::mutation::{Mutation, PriorRequest, revert};
use polynym_identifier::IdentityKey;

/// The newest events of a user that are read. One that an undo deleted hardly changes afterwards.
const MAX_EVENTS: usize = 16;

/// The user that this line is about and those that own its identities, as far as an undo deleted
/// them: first the user, then in the order of the identities.
pub fn users<'v>(
    mutation: &Mutation,
    read_set: &'v ReadSet,
    id: LocalityId,
    imported: &ImportedUser,
) -> Result<Vec<&'v Record>, DecideError> {
    let keys = imported.identities.iter().flat_map(|own| keys(mutation, own));
    let claims = read_set.read_claims(keys.collect())?;
    let mut ids = vec![id];
    for (_, claim) in claims.iter().filter(|(_, claim)| claim.hold.is_none()) {
        ids.extend(claim.owner.filter(|owner| !ids.contains(owner)));
    }
    let mut users = read_set.read_users(&ids)?;
    users.retain(|record| is_deleted(mutation, record));
    let parts: Vec<_> = users.iter().map(|record| newest_events(record.id())).collect();
    read_set.read_histories(&parts)?;

    let mut undone = Vec::new();
    for record in users {
        if is_undone(mutation, read_set, record)? {
            undone.push(record);
        }
    }
    Ok(undone)
}

/// Whether the user of a line, which was imported at the time of `prior`, was undone since: by an
/// undo that deleted the user, or that undid the operation to which the line belongs.
pub fn is_void(
    mutation: &Mutation,
    read_set: &ReadSet,
    prior: PriorRequest,
    imported: &ImportedUser,
) -> Result<bool, DecideError> {
    let Some(id) = prior.subject else { return Ok(false) };
    let Some(record) = read_set.read_user(id)? else { return Ok(false) };
    if record.user.tenant != mutation.tenant {
        return Ok(false);
    }
    if is_undone(mutation, read_set, record)? {
        return Ok(true);
    }
    // A line that only creates users does not belong to one operation.
    if !imported.reimport.finds_users() {
        return Ok(false);
    }
    let events = &read_set.read_history(newest_events(id))?.events;
    let operation_id = &mutation.origin.operation_id;
    let undoes = |event: &Event| {
        let origin = &event.origin;
        event.time >= prior.time && is_by_undo(event) && origin.operation_id == *operation_id
    };
    Ok(events.iter().any(undoes))
}

/// Whether an undo deleted the user. One that undoes the restoration of a user puts an earlier
/// deletion back.
fn is_undone(
    mutation: &Mutation,
    read_set: &ReadSet,
    record: &Record,
) -> Result<bool, DecideError> {
    if !is_deleted(mutation, record) {
        return Ok(false);
    }
    let events = &read_set.read_history(newest_events(record.id()))?.events;
    let deletes =
        |event: &&Event| event.changes.state.is_some_and(|(_, after)| after == record.user.state);
    Ok(events.iter().rfind(deletes).is_some_and(is_by_undo))
}

fn is_by_undo(event: &Event) -> bool {
    event.origin.method == revert::METHOD
}

/// Whether the user is deleted, but not due to be purged.
fn is_deleted(mutation: &Mutation, record: &Record) -> bool {
    record.user.tenant == mutation.tenant
        && matches!(record.user.state,
            State::Deleted { purge_time, .. } if !mutation.is_past(purge_time))
}

const fn newest_events(user: LocalityId) -> HistoryPart {
    HistoryPart { user, cursor: None, limit: MAX_EVENTS }
}

/// A user as the line would have created it. It keeps its id, its times and its internals.
pub fn restored(mutation: &Mutation, before: &Record, imported: &ImportedUser) -> Record {
    let time = mutation.time.after(before.user.update_time);
    let created = imported.record(before.id(), &mutation.tenant, time);
    let mut after = before.clone();
    after.user.display_name.clone_from(&created.user.display_name);
    after.user.attributes.clone_from(&created.user.attributes);
    after.user.state = created.user.state;
    after.internals.disabled = created.internals.disabled;
    let has = |guarded: &Guarded| created.user.identity(&guarded.handle).is_some();
    after.internals.guards.retain(has);
    let mut identities = Vec::with_capacity(created.user.identities.len());
    for own in created.user.identities {
        identities.push(match before.user.identity(&own.identifier) {
            Some(present) => Identity {
                display: own.display,
                verification: own.verification,
                primary: own.primary,
                ..present.clone()
            },
            None => {
                after.guard(&own.identifier, mutation.rules, &mutation.policies);
                own
            }
        });
    }
    after.user.identities = identities;
    after
}

/// The transitions of the users that lose the identities of a line to the user with this id.
pub fn givers<'v>(
    mutation: &Mutation,
    id: LocalityId,
    identities: &[ImportedIdentity],
    undone: &[&'v Record],
) -> Vec<UserTransition<'v>> {
    let wanted: HashSet<IdentityKey> =
        identities.iter().flat_map(|own| keys(mutation, own)).collect();
    let transition = |before: &&'v Record| {
        let mut after = Record::clone(before);
        for n in (0..after.user.identities.len()).rev() {
            if keys_of(before, &after.user.identities[n]).any(|key| wanted.contains(&key)) {
                after.remove_identity(n);
            }
        }
        (**before != after).then(|| UserTransition::new(before, after))
    };
    undone.iter().filter(|before| before.id() != id).filter_map(transition).collect()
}

/// The keys that an identity of a line claims: its own, then its guard's.
pub fn keys(mutation: &Mutation, identity: &ImportedIdentity) -> Vec<IdentityKey> {
    let Mutation { tenant, policies, rules, .. } = mutation;
    policies.claimed_keys(tenant, &identity.new.identifier, *rules)
}

/// The key of an identity of the user, and that of its guard.
fn keys_of(record: &Record, identity: &Identity) -> impl Iterator<Item = IdentityKey> {
    let guards = record.internals.guards.iter();
    let guard = guards.filter(|guarded| guarded.handle == identity.identifier);
    let guard_keys = guard.map(|guarded| record.guard_claim(guarded).0);
    std::iter::once(record.claim(identity).0).chain(guard_keys)
}
