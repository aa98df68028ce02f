//! Merging and unmerging in the model.

use std::collections::BTreeSet;

use locality_uuid::LocalityId;
use polynym_directory::{
    Conflict, ConflictPolicy, Error, Invalid, Mutation, MutationReport, NotRestored, Preview,
    State, Timestamp, User, Value,
};
use polynym_identifier::Kind;

use super::state::{Merge, ReferenceModel};

/// The refusal of a merge of a user with itself.
pub fn merge_with_itself() -> Error {
    Error::invalid(Invalid::UserId, "secondary_user_id", "a user cannot be merged with itself")
}

fn marked(user: &User, kind: Kind) -> Option<usize> {
    user.identities
        .iter()
        .position(|identity| identity.primary && identity.identifier.kind() == kind)
}

/// Merges one user into the mutation's.
pub fn merge(
    state: &mut ReferenceModel,
    mutation: &Mutation,
    primary_id: LocalityId,
    secondary: LocalityId,
    policy: ConflictPolicy,
) -> Result<MutationReport, Error> {
    let mut primary = state.changeable(primary_id, mutation)?;
    let mut other = state.changeable(secondary, mutation)?;
    let before = (primary.user.clone(), other.clone());
    let conflicts = merge_fields(&mut primary.user, &mut other.user, policy);
    if policy == ConflictPolicy::Fail && !conflicts.is_empty() {
        return Err(Error::MergeConflict {
            fields: conflicts.into_iter().map(|conflict| conflict.field).collect(),
        });
    }

    let moved = std::mem::take(&mut other.user.identities);
    primary.user.identities.extend(moved.iter().cloned());
    primary.guarded.append(&mut other.guarded);
    let mut holds = Vec::new();
    for (key, held) in &mut state.holds {
        if held.owner == Some(secondary) && held.until > mutation.now.time {
            held.owner = Some(primary_id);
            holds.push((key.clone(), held.until));
        }
    }

    let window = mutation.policies.undo_window.as_millis() as i64;
    let until = Timestamp::from_millis(mutation.now.time.as_millis() + window);
    let merge = Merge {
        until,
        secondary: before.1,
        primary: (before.0.clone(), primary.user.clone()),
        holds,
    };
    other.user.display_name.clear();
    other.user.attributes.clear();
    other.user.state = State::Merged { into: primary_id };
    other.merge = (window > 0).then(|| Box::new(merge));
    other.not_restored.clear();
    state.people.insert(primary_id, primary);
    state.people.insert(secondary, other);
    // The caller sets the result after the consequences of the merge.
    let preview = Preview { moved, conflicts, result: before.0 };

    Ok(if mutation.dry_run {
        MutationReport::Preview(Box::new(preview))
    } else {
        MutationReport::Nothing
    })
}

/// Copies the secondary's fields to the primary and resolves conflicts, which it returns.
fn merge_fields(primary: &mut User, secondary: &mut User, policy: ConflictPolicy) -> Vec<Conflict> {
    let mut conflicts = Vec::new();
    let mut clash = |field: String, own: Value, other: Value| {
        let (kept, dropped) = match policy {
            ConflictPolicy::SecondaryWins => (other, own),
            _ => (own, other),
        };
        conflicts.push(Conflict { field, kept: kept.clone(), dropped });
        kept
    };
    let name = |user: &User| Value::String(user.display_name.clone());
    if primary.display_name.is_empty() {
        primary.display_name.clone_from(&secondary.display_name);
    } else if !secondary.display_name.is_empty()
        && primary.display_name != secondary.display_name
        && let Value::String(kept) =
            clash("display_name".to_owned(), name(primary), name(secondary))
    {
        primary.display_name = kept;
    }
    for (name, other) in &secondary.attributes {
        let value = match primary.attributes.get(name) {
            Some(own) if own != other => {
                clash(format!("attributes.{name}"), own.clone(), other.clone())
            }
            _ => other.clone(),
        };
        primary.attributes.insert(name.clone(), value);
    }

    for kind in Kind::ALL {
        if let (Some(own), Some(other)) = (marked(primary, kind), marked(secondary, kind)) {
            let (own, other) = (&mut primary.identities[own], &mut secondary.identities[other]);
            let text =
                |identifier: &polynym_identifier::Identifier| Value::String(identifier.to_string());
            let kept =
                clash(format!("primary.{kind}"), text(&own.identifier), text(&other.identifier));
            own.primary = kept == text(&own.identifier);
            other.primary = !own.primary;
        }
    }

    conflicts
}

/// Undoes the merge of a user into the mutation's.
pub fn unmerge(
    state: &mut ReferenceModel,
    mutation: &Mutation,
    id: LocalityId,
    secondary: LocalityId,
) -> Result<MutationReport, Error> {
    let mut primary = state.changeable(id, mutation)?;
    let other = state.present(secondary, &mutation.tenant, mutation.now.time)?;
    if other.user.state != (State::Merged { into: id }) {
        return Err(Error::NotMerged);
    }

    let merge = other
        .merge
        .clone()
        .filter(|merge| merge.until > mutation.now.time)
        .ok_or(Error::UndoExpired)?;
    let mut back = merge.secondary;
    let mut lost = Vec::new();
    back.guarded = BTreeSet::new();
    for had in std::mem::take(&mut back.user.identities) {
        let is = |i: &polynym_directory::Identity| {
            i.identifier == had.identifier && i.link_time == had.link_time
        };
        let Some(at) = primary.user.identities.iter().position(is) else {
            lost.push(NotRestored::Identity(had.identifier));
            continue;
        };
        let mut identity = primary.user.identities.remove(at);
        if primary.guarded.remove(&identity.identifier) {
            back.guarded.insert(identity.identifier.clone());
        }
        identity.primary = had.primary;
        back.user.identities.push(identity);
    }

    lost.extend(restore(&mut primary.user, &merge.primary.0, &merge.primary.1));
    for (key, until) in merge.holds {
        if let Some(held) = state.holds.get_mut(&key)
            && (held.owner, held.until) == (Some(id), until)
            && until > mutation.now.time
        {
            held.owner = Some(secondary);
        }
    }

    back.not_restored.clone_from(&lost);
    state.people.insert(id, primary);
    state.people.insert(secondary, back);
    Ok(MutationReport::NotRestored(lost))
}

/// Undoes the changes of a merge from `before` to `after`, unless later mutations changed them.
fn restore(user: &mut User, before: &User, after: &User) -> Vec<NotRestored> {
    let mut lost = Vec::new();
    if before.display_name != after.display_name {
        if user.display_name == after.display_name {
            user.display_name.clone_from(&before.display_name);
        } else {
            lost.push(NotRestored::DisplayName);
        }
    }

    for (name, value) in &after.attributes {
        match before.attributes.get(name) {
            Some(same) if same == value => {}
            _ if user.attributes.get(name) != Some(value) => {
                lost.push(NotRestored::Attribute(name.clone()))
            }
            None => drop(user.attributes.remove(name)),
            Some(other) => drop(user.attributes.insert(name.clone(), other.clone())),
        }
    }

    let lost_mark = |had: &&polynym_directory::Identity| {
        had.primary && after.identity(&had.identifier).is_some_and(|identity| !identity.primary)
    };
    for had in before.identities.iter().filter(lost_mark) {
        if marked(user, had.identifier.kind()).is_none() {
            for identity in
                user.identities.iter_mut().filter(|identity| identity.identifier == had.identifier)
            {
                identity.primary = true;
            }
        }
    }

    lost
}
