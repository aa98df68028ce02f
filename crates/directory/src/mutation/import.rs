//! Importing a user. It takes nothing that other users own or have held for them.

use std::collections::HashSet;

use locality_uuid::LocalityId;

use super::{Mutation, merge_links};
use crate::error::{Error, Invalid};
use crate::model::claim::Claim;
use crate::model::imported_user::reimport::LineField;
use crate::model::imported_user::{
    Effect, Imported, ImportedIdentity, ImportedUser, OnConflict, SkipReason, SkippedIdentity,
};
use crate::model::record::{Guarded, Hold, Record};
use crate::model::user::{Identity, User};
use crate::mutation::claim_diff::{ClaimDiff, UserTransition, check_limits, plan_writes};
use crate::mutation::read_set::{DecideError, MutationReport, ReadSet, WriteSet};
use polynym_identifier::IdentityKey;

/// Creates the user, unless it exists. `undone` are the users that may lose identities to it.
pub fn import(
    mutation: &Mutation,
    read_set: &ReadSet,
    id: LocalityId,
    imported: &ImportedUser,
    undone: &[&Record],
) -> Result<WriteSet, DecideError> {
    if imported.has_id {
        if let Some(Record { user, .. }) = read_set.read_user(id)? {
            let is_same = user.tenant == mutation.tenant && imported.is_like(user);
            return if is_same { Ok(existing(id)) } else { Err(Error::UserExists.into()) };
        }
    } else if read_set.read_new_user(id)?.is_some() {
        return Err(Error::Internal("an id was given twice".into()).into());
    }
    check_absent(mutation, read_set, imported)?;
    merge_links::check_import(mutation, read_set, id, imported)?;

    match imported.on_conflict {
        OnConflict::Reject => {
            let outcome = check_reserved(mutation, imported, &imported.identities)
                .map_err(DecideError::from)
                .and_then(|()| create(mutation, read_set, id, imported, Vec::new(), undone));
            accept_existing(read_set, imported, outcome)
        }
        OnConflict::SkipIdentity => skip_conflicts(mutation, read_set, id, imported, undone),
    }
}

/// Rejects a line that found no user, if one has its identities by now.
fn check_absent(
    mutation: &Mutation,
    read_set: &ReadSet,
    imported: &ImportedUser,
) -> Result<(), DecideError> {
    if imported.has_id || !imported.reimport.finds_users() {
        return Ok(());
    }
    let identifiers = imported.identities.iter().map(|identity| &identity.new.identifier);
    let named = identifiers.filter(|identifier| imported.reimport.finds_by(identifier));
    let claims = read_set.read_claims(named.map(|named| mutation.key(named)).collect())?;
    match claims.iter().find_map(|(key, claim)| Some((key, claim.resolves_to()?))) {
        Some((key, owner)) => {
            Err(Error::IdentityTaken { owner, field: imported.field_of(key) }.into())
        }
        None => Ok(()),
    }
}

/// The write set for a user who exists already.
pub fn existing(id: LocalityId) -> WriteSet {
    let report = Imported { effect: Effect::Unchanged, skipped: Vec::new() };
    WriteSet { report: MutationReport::Imported(report), ..WriteSet::unchanged(Some(id)) }
}

fn create(
    mutation: &Mutation,
    read_set: &ReadSet,
    id: LocalityId,
    imported: &ImportedUser,
    skipped: Vec<SkippedIdentity>,
    undone: &[&Record],
) -> Result<WriteSet, DecideError> {
    mutation.policies.check_types(&imported.attributes)?;
    let mut record = imported.record(id, &mutation.tenant, mutation.now.time);
    if imported.internals.is_none() {
        for identity in &imported.identities {
            record.guard(&identity.new.identifier, &mutation.policies);
        }
    }

    record.internals.undo.take_if(|undo| mutation.is_past(undo.until));
    check_internals(mutation, &record)?;
    let holds = own_holds(mutation, &mut record);
    let mut transitions = vec![UserTransition { before: None, after: Some(record) }];
    transitions.extend(givers(mutation, id, &imported.identities, undone));
    let write_set = plan_writes(mutation, read_set, transitions, holds)?;
    let report = MutationReport::Imported(Imported { effect: Effect::Created, skipped });
    Ok(WriteSet { report, ..write_set })
}

/// Checks the internal part of a user as if calls had written it.
fn check_internals(mutation: &Mutation, record: &Record) -> Result<(), Error> {
    check_guards(record)?;
    let Some(undo) = &record.internals.undo else { return Ok(()) };
    check_guards(&undo.before)?;
    mutation.policies.check_types(&undo.before.user.attributes)?;
    let changed = undo.primary_attributes();
    changed.iter().try_for_each(|attributes| mutation.policies.check_types(attributes))?;
    let restored = UserTransition { before: None, after: Some(undo.before.clone()) };
    check_limits(mutation, &restored)
}

/// A guard reserves the look-alikes of an identity of its user.
fn check_guards(record: &Record) -> Result<(), Error> {
    let has = |guarded: &Guarded| record.user.identity(&guarded.handle).is_some();
    if record.internals.guards.iter().all(has) {
        return Ok(());
    }
    let message = "has a handle that is not one of the user's identities";
    Err(Error::invalid(Invalid::Field, "internals.guarded_handles", message))
}

/// The claims of the user's holds. Drops expired ones, and those of identifiers that it owns.
fn own_holds(mutation: &Mutation, record: &mut Record) -> ClaimDiff {
    let held = std::mem::take(&mut record.internals.holds);
    let mut seen: HashSet<_> = record.claims().into_iter().map(|(key, _)| key).collect();
    let is_valid = |hold: &Hold| !mutation.is_past(hold.until) && seen.insert(hold.key.clone());
    record.internals.holds = held.into_iter().filter(is_valid).collect();
    let claims = record.claims().into_iter().filter(|(_, claim)| claim.hold.is_some());
    claims.map(|(key, claim)| (key, (None, Some(claim)))).collect()
}

/// Accepts a line without an id if the owner of its identities matches it: it was imported before.
fn accept_existing(
    read_set: &ReadSet,
    imported: &ImportedUser,
    outcome: Result<WriteSet, DecideError>,
) -> Result<WriteSet, DecideError> {
    match outcome {
        Err(DecideError::Rejected(Error::IdentityTaken { owner, field })) if !imported.has_id => {
            match read_set.read_user(owner)? {
                Some(record) if imported.describes(&record.user) => Ok(existing(owner)),
                _ => Err(Error::IdentityTaken { owner, field }.into()),
            }
        }
        outcome => outcome,
    }
}

/// Creates the user without the identities that cannot be linked.
fn skip_conflicts(
    mutation: &Mutation,
    read_set: &ReadSet,
    id: LocalityId,
    imported: &ImportedUser,
    undone: &[&Record],
) -> Result<WriteSet, DecideError> {
    let (mut kept, skipped) = without_conflicts(mutation, read_set, id, imported, None, undone)?;
    if let Some(SkipReason::Taken(owner)) = skipped.first().map(|skipped| skipped.reason)
        && !imported.has_id
        && let Some(record) = read_set.read_user(owner)?
        && imported.describes(&record.user)
    {
        return Ok(existing(owner));
    }
    if let Some(internals) = &mut kept.internals {
        let handles: HashSet<_> =
            kept.identities.iter().map(|identity| &identity.new.identifier).collect();
        internals.guards.retain(|guarded| handles.contains(&guarded.handle));
    }

    create(mutation, read_set, id, &kept, skipped, undone)
}

/// The line of the user with this id without the identities and holds that cannot be linked.
/// `present` is the user as it is, who keeps its identities; `undone` are users that may lose
/// theirs.
pub fn without_conflicts(
    mutation: &Mutation,
    read_set: &ReadSet,
    id: LocalityId,
    imported: &ImportedUser,
    present: Option<&User>,
    undone: &[&Record],
) -> Result<(ImportedUser, Vec<SkippedIdentity>), DecideError> {
    let wanted = imported.identities.iter().flat_map(|identity| keys(mutation, identity));
    let holds = imported.internals.iter().flat_map(|internals| &internals.holds);
    let unique: HashSet<_> = wanted.chain(holds.map(|hold| hold.key.clone())).collect();
    let claims = read_set.read_claims(unique.into_iter().collect())?;
    let refusal = |key: &IdentityKey, guard: bool| {
        let (_, claim) = claims.iter().find(|(other, _)| other == key)?;
        if claim.hold.is_none() && undone.iter().any(|user| claim.owner == Some(user.id())) {
            return None;
        }
        let wanted = Claim { owner: Some(id), guard, hold: None, rules_version: 0 };
        claim.refusal(&wanted, mutation.now, String::new)
    };

    let (mut kept, mut skipped) = (imported.clone(), Vec::new());
    let mut skipped_fields = Vec::new();
    let (mut claimed, mut failure) = (HashSet::new(), None);
    kept.identities.retain(|identity| {
        if present.is_some_and(|user| user.identity(&identity.new.identifier).is_some()) {
            return true;
        }
        let reserved = reserved(mutation, imported, std::slice::from_ref(identity));
        let keys = keys(mutation, identity);
        let reason = reserved.map(|skipped| skipped.reason).or_else(|| {
            match keys.iter().enumerate().find_map(|(n, key)| refusal(key, n > 0)) {
                Some(error) => reason_of(error, &mut failure),
                None => {
                    let is_confusable = keys.iter().any(|key| claimed.contains(key));
                    is_confusable.then_some(SkipReason::Confusable)
                }
            }
        });
        match reason {
            Some(reason) => {
                skipped.push(SkippedIdentity { index: identity.index, reason });
                skipped_fields.push(LineField::of_identity(&identity.new.identifier));
            }
            None => claimed.extend(keys),
        }
        reason.is_none()
    });
    if let Some(error) = failure {
        return Err(error.into());
    }
    kept.skipped.extend(skipped_fields);
    if let Some(internals) = &mut kept.internals {
        internals.holds.retain(|hold| refusal(&hold.key, hold.guard).is_none());
    }
    Ok((kept, skipped))
}

/// The transitions of the users that lose the identities of a line to the user with this id.
pub fn givers<'v>(
    mutation: &Mutation,
    id: LocalityId,
    identities: &[ImportedIdentity],
    undone: &[&'v Record],
) -> Vec<UserTransition<'v>> {
    let wanted: HashSet<IdentityKey> =
        identities.iter().flat_map(|identity| keys(mutation, identity)).collect();
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
    mutation.policies.claimed_keys(&mutation.tenant, &identity.new.identifier)
}

/// The key of an identity of the user, and that of its guard.
fn keys_of(record: &Record, identity: &Identity) -> impl Iterator<Item = IdentityKey> {
    let guards = record.internals.guards.iter();
    let guard = guards.filter(|guarded| guarded.handle == identity.identifier);
    let guard_keys = guard.map(|guarded| record.guard_claim(guarded).0);
    std::iter::once(record.claim(identity).0).chain(guard_keys)
}

/// Rejects a reserved handle among these identities of a line.
pub fn check_reserved(
    mutation: &Mutation,
    imported: &ImportedUser,
    identities: &[ImportedIdentity],
) -> Result<(), Error> {
    reserved(mutation, imported, identities).map_or(Ok(()), |skipped| Err(skipped.error()))
}

/// The first reserved handle. Exported users keep theirs.
fn reserved(
    mutation: &Mutation,
    imported: &ImportedUser,
    identities: &[ImportedIdentity],
) -> Option<SkippedIdentity> {
    if imported.internals.is_some() {
        return None;
    }
    let reserved =
        identities.iter().find(|identity| mutation.policies.reserves(&identity.new.identifier))?;
    Some(SkippedIdentity { index: reserved.index, reason: SkipReason::Reserved })
}

/// The reason for skipping an identity. Other errors go to `failure`.
fn reason_of(error: Error, failure: &mut Option<Error>) -> Option<SkipReason> {
    match error {
        Error::IdentityTaken { owner, .. } => Some(SkipReason::Taken(owner)),
        Error::IdentityHeld { until, .. } => Some(SkipReason::Held(until)),
        Error::IdentityConfusable { .. } => Some(SkipReason::Confusable),
        other => {
            *failure = Some(other);
            None
        }
    }
}
