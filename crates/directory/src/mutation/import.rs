//! Importing a user: it is created as a line has it. Nothing that other users own or have held for
//! them changes hands.

use std::collections::HashSet;

use locality_uuid::LocalityId;

use super::Mutation;
use crate::error::Error;
use crate::model::claim::Claim;
use crate::model::imported_user::{
    Imported, ImportedIdentity, ImportedUser, OnConflict, SkipReason, SkippedIdentity,
};
use crate::model::record::Record;
use crate::mutation::claim_diff::{ClaimDiff, UserTransition, plan_writes};
use crate::mutation::read_set::{DecideError, MutationReport, ReadSet, WriteSet};
use polynym_identifier::IdentityKey;

/// Creates the user, unless it is there already.
pub fn import(
    mutation: &Mutation,
    read_set: &ReadSet,
    id: LocalityId,
    imported: &ImportedUser,
) -> Result<WriteSet, DecideError> {
    if imported.has_id {
        if let Some(there) = read_set.read_user(id)? {
            let is_same = there.user.tenant == mutation.tenant && imported.is_like(&there.user);
            return if is_same { Ok(existing(id)) } else { Err(Error::UserExists.into()) };
        }
    } else if read_set.read_new_user(id)?.is_some() {
        return Err(Error::Internal("an id was given twice".into()).into());
    }

    match imported.on_conflict {
        OnConflict::Reject => {
            let outcome = reserved(mutation, imported, &imported.identities)
                .map_or(Ok(()), |skipped| Err(skipped.error().into()))
                .and_then(|()| create(mutation, read_set, id, imported, Vec::new()));
            or_existing(read_set, imported, outcome)
        }
        OnConflict::SkipIdentity => skip_conflicts(mutation, read_set, id, imported),
    }
}

/// The write set for a user who is there already.
pub fn existing(id: LocalityId) -> WriteSet {
    let report = Imported { is_new: false, skipped: Vec::new() };
    WriteSet { report: MutationReport::Imported(report), ..WriteSet::unchanged(Some(id)) }
}

fn create(
    mutation: &Mutation,
    read_set: &ReadSet,
    id: LocalityId,
    imported: &ImportedUser,
    skipped: Vec<SkippedIdentity>,
) -> Result<WriteSet, DecideError> {
    mutation.policies.check_types(&imported.attributes)?;
    let mut record = imported.record(id, &mutation.tenant, mutation.time);
    if imported.internals.is_none() {
        for identity in &imported.identities {
            record.guard(&identity.new.identifier, &mutation.policies);
        }
    }

    let holds = own_holds(mutation, &mut record);
    let created = UserTransition { before: None, after: Some(record) };
    let write_set = plan_writes(mutation, read_set, vec![created], holds)?;
    let report = MutationReport::Imported(Imported { is_new: true, skipped });
    Ok(WriteSet { report, ..write_set })
}

/// The claims on what is held for the user. Holds that have expired are dropped, and those on
/// identifiers that it has.
fn own_holds(mutation: &Mutation, record: &mut Record) -> ClaimDiff {
    let owned: HashSet<_> = record
        .user
        .identities
        .iter()
        .map(|identity| record.claim(identity).0)
        .chain(record.private.guards.iter().map(|guarded| record.guard_claim(guarded).0))
        .collect();
    let mut seen = HashSet::new();
    record.private.holds.retain(|hold| {
        !mutation.is_past(hold.until) && !owned.contains(&hold.key) && seen.insert(hold.key.clone())
    });

    let owner = Some(record.id());
    let claim = |hold: &crate::model::record::Hold| {
        let claim = Claim {
            owner,
            guard: hold.guard,
            hold: Some(hold.until),
            rules_version: hold.rules_version,
        };
        (hold.key.clone(), (None, Some(claim)))
    };
    record.private.holds.iter().map(claim).collect()
}

/// A line without an id whose identities are taken by a user who has all that it says was imported
/// before.
fn or_existing(
    read_set: &ReadSet,
    imported: &ImportedUser,
    outcome: Result<WriteSet, DecideError>,
) -> Result<WriteSet, DecideError> {
    match outcome {
        Err(DecideError::Rejected(Error::IdentityTaken { owner, field })) if !imported.has_id => {
            let there = read_set.read_user(owner)?;
            match there.filter(|there| imported.is_described_by(&there.user)) {
                Some(_) => Ok(existing(owner)),
                None => Err(Error::IdentityTaken { owner, field }.into()),
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
) -> Result<WriteSet, DecideError> {
    let wanted = imported.identities.iter().flat_map(|identity| keys(mutation, identity));
    let holds = imported.internals.iter().flat_map(|internals| &internals.holds);
    let wanted: HashSet<_> = wanted.chain(holds.map(|hold| hold.key.clone())).collect();
    let claims = read_set.read_claims(wanted.into_iter().collect())?;
    let claim = |key: &IdentityKey| claims.iter().find(|(other, _)| other == key);
    let refusal = |key: &IdentityKey, guard: bool| {
        let wanted = Claim { owner: Some(id), guard, hold: None, rules_version: 0 };
        claim(key)?.1.refusal(&wanted, mutation.now(), String::new)
    };

    let (mut kept, mut skipped) = (imported.clone(), Vec::new());
    let (mut own, mut fault) = (HashSet::new(), None);
    kept.identities.retain(|identity| {
        let reason = reserved(mutation, imported, std::slice::from_ref(identity));
        let reason = reason.map(|skipped| skipped.reason).or_else(|| {
            let keys = keys(mutation, identity);
            let refused = keys.iter().enumerate().find_map(|(n, key)| refusal(key, n > 0));
            let is_confusable = || keys.iter().any(|key| own.contains(key));
            match refused {
                Some(error) => reason_of(error, &mut fault),
                None => is_confusable().then_some(SkipReason::Confusable),
            }
        });
        match reason {
            Some(reason) => skipped.push(SkippedIdentity { index: identity.index, reason }),
            None => own.extend(keys(mutation, identity)),
        }
        reason.is_none()
    });
    if let Some(fault) = fault {
        return Err(fault.into());
    }

    if let Some(SkipReason::Taken(owner)) = skipped.first().map(|skipped| skipped.reason)
        && !imported.has_id
        && let Some(there) = read_set.read_user(owner)?
        && imported.is_described_by(&there.user)
    {
        return Ok(existing(owner));
    }
    if let Some(internals) = &mut kept.internals {
        internals.holds.retain(|hold| refusal(&hold.key, hold.guard).is_none());
        let kept: HashSet<_> = kept.identities.iter().map(|own| &own.new.identifier).collect();
        internals.guards.retain(|guarded| kept.contains(&guarded.handle));
    }

    create(mutation, read_set, id, &kept, skipped)
}

/// The keys that an identity claims: its own, then that of its guard.
pub fn keys(mutation: &Mutation, identity: &ImportedIdentity) -> Vec<IdentityKey> {
    let identifier = &identity.new.identifier;
    let guard = identifier.guard().filter(|_| !mutation.policies.allow_lookalikes);
    let guard = guard.map(|guard| IdentityKey::of_guard(mutation.tenant.as_str(), &guard));
    std::iter::once(mutation.key(identifier)).chain(guard).collect()
}

/// The first reserved handle. Users of an export keep theirs.
fn reserved(
    mutation: &Mutation,
    imported: &ImportedUser,
    identities: &[ImportedIdentity],
) -> Option<SkippedIdentity> {
    if imported.internals.is_some() {
        return None;
    }
    let reserved = identities.iter().find(|own| mutation.policies.reserves(&own.new.identifier))?;
    Some(SkippedIdentity { index: reserved.index, reason: SkipReason::Reserved })
}

/// The reason for passing an identity over; none, and the fault, where that is not known.
fn reason_of(error: Error, fault: &mut Option<Error>) -> Option<SkipReason> {
    match error {
        Error::IdentityTaken { owner, .. } => Some(SkipReason::Taken(owner)),
        Error::IdentityHeld { until, .. } => Some(SkipReason::Held(until)),
        Error::IdentityConfusable { .. } => Some(SkipReason::Confusable),
        other => {
            *fault = Some(other);
            None
        }
    }
}
