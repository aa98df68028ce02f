//! Undoing an operation, such as an import or a bulk change, for one user: the user becomes what it
//! was before the operation's first event, unless somebody else changed it since.

use std::collections::{BTreeMap, BTreeSet};

use locality_uuid::LocalityId;

use super::bulk::BulkPart;
use super::{Mutation, bulk, user_edits};
use crate::error::Error;
use crate::model::bulk::progress::BulkEffect;
use crate::model::claim::Claim;
use crate::model::record::{Hold, Record};
use crate::model::user::{State, User};
use crate::mutation::claim_diff::{ClaimDiff, UserTransition, plan_writes};
use crate::mutation::inverse::undo;
use crate::mutation::operation_events::{Reversal, operation_events};
use crate::mutation::read_set::{DecideError, MutationReport, ReadSet, Write, WriteSet};
use polynym_identifier::IdentityKey;

/// The most users that are undone together, because each gets an identifier back from another.
const MAX_TOGETHER: usize = 8;

/// Undoes what an operation did to the user, if it did something and was not undone before. A user
/// that the operation created is deleted. Users from which it gets identifiers back are undone with
/// it.
pub fn revert(
    mutation: &Mutation,
    read_set: &ReadSet,
    id: LocalityId,
    reversal: &Reversal,
) -> Result<WriteSet, DecideError> {
    if reversal.is_bulk {
        bulk::check_undoing(mutation, read_set, &reversal.operation_id)?;
    }
    let Some(subject) = reverted(mutation, read_set, id, reversal)? else {
        return unchanged(mutation, read_set, id, reversal);
    };
    let mut reversions = vec![subject];
    while let Some(other) = next_owner(mutation, read_set, reversal, &reversions)? {
        reversions.push(other);
    }

    let users = if mutation.dry_run { 1 } else { reversions.len() as u64 };
    let changes = reversions.iter().flat_map(|one| hold_changes(mutation, one)).collect();
    let transitions = reversions
        .into_iter()
        .map(|Reversion { before, after }| UserTransition::new(before, after))
        .collect();
    let write_set = plan_writes(mutation, read_set, transitions, changes)?;
    Ok(WriteSet { report: MutationReport::Reverted(users), ..write_set })
}

/// Undoes an operation for a user as a part of a bulk change. A user who was undone together with
/// another one by an earlier part counts as changed, as in a dry run. Changes nobody if the server
/// has lost the lease.
pub fn revert_part(
    mutation: &Mutation,
    read_set: &ReadSet,
    id: LocalityId,
    part: &BulkPart,
    reversal: &Reversal,
) -> Result<WriteSet, DecideError> {
    let unchanged = |effect| Ok(bulk::with_effect(WriteSet::unchanged(Some(id)), effect));
    if !bulk::has_lease(read_set, part)? {
        return unchanged(BulkEffect::Unmatched);
    }
    let write_set = match revert(mutation, read_set, id, reversal) {
        Err(DecideError::Rejected(Error::UserNotFound)) => return unchanged(BulkEffect::Skipped),
        outcome => outcome?,
    };
    let is_reverted = matches!(write_set.report, MutationReport::Reverted(_));
    let effect = match is_reverted || is_undone_by_part(mutation, read_set, id, reversal)? {
        true => BulkEffect::Changed,
        false => BulkEffect::Unchanged,
    };
    Ok(bulk::with_effect(write_set, effect))
}

/// Whether the bulk change that the mutation is a part of has undone the operation for the user.
fn is_undone_by_part(
    mutation: &Mutation,
    read_set: &ReadSet,
    id: LocalityId,
    reversal: &Reversal,
) -> Result<bool, DecideError> {
    let history_begins = mutation.policies.history_begins(mutation.now.earliest());
    let undone_by = operation_events(read_set, id, reversal, history_begins)?.undone_by;
    Ok(undone_by.is_some() && undone_by == mutation.origin.request_id)
}

/// A user before and after the undoing.
struct Reversion<'v> {
    before: &'v Record,
    after: Record,
}

impl Reversion<'_> {
    /// The keys that the user gets back: of identities, of guards, and held ones.
    fn regained(&self, mutation: &Mutation) -> BTreeSet<IdentityKey> {
        &keys(mutation, &self.after) - &keys(mutation, self.before)
    }
}

/// The user without the effects of the operation; none if no effects are left.
fn reverted<'v>(
    mutation: &Mutation,
    read_set: &'v ReadSet,
    id: LocalityId,
    reversal: &Reversal,
) -> Result<Option<Reversion<'v>>, DecideError> {
    let before = mutation.present(read_set, id)?;
    let history_begins = mutation.policies.history_begins(mutation.now.earliest());
    let events = operation_events(read_set, id, reversal, history_begins)?;
    if events.is_empty() {
        return Ok(None);
    }
    if let State::Merged { into } = before.user.state {
        return Err(Error::UserMerged { user: id, into }.into());
    }
    let mut after = before.clone();
    for event in &events.own {
        undo(mutation, &events.renamed, event, &mut after)?;
    }
    if events.creates_user() {
        after = before.clone();
        if !matches!(before.user.state, State::Deleted { .. }) {
            user_edits::delete(mutation, &mut after);
        }
    }
    keep_primaries(&before.user, &mut after.user);
    after.user.assign_primaries();
    Ok((after != *before).then_some(Reversion { before, after }))
}

/// Keeps the primary identities that changes without events have made primary: one that comes back
/// takes no place of theirs.
fn keep_primaries(present: &User, after: &mut User) {
    for identity in present.identities.iter().filter(|identity| identity.primary) {
        if after.identity(&identity.identifier).is_some_and(|kept| kept.primary) {
            after.make_primary(&identity.identifier);
        }
    }
}

/// The next user that has an identifier which these get back, if the operation gave it to that user
/// and undoing that user releases it.
fn next_owner<'v>(
    mutation: &Mutation,
    read_set: &'v ReadSet,
    reversal: &Reversal,
    reversions: &[Reversion<'_>],
) -> Result<Option<Reversion<'v>>, DecideError> {
    if reversions.len() == MAX_TOGETHER {
        return Ok(None);
    }
    let regained: BTreeSet<_> = reversions.iter().flat_map(|one| one.regained(mutation)).collect();
    let is_included = |owner: &LocalityId| reversions.iter().any(|one| one.before.id() == *owner);
    for (key, claim) in read_set.read_claims(regained.into_iter().collect())? {
        let Some(owner) = claim.owner.filter(|owner| !is_included(owner)) else { continue };
        match reverted(mutation, read_set, owner, reversal) {
            Ok(Some(other)) if !keys(mutation, &other.after).contains(&key) => {
                return Ok(Some(other));
            }
            Err(DecideError::NeedsReads(needs)) => return Err(DecideError::NeedsReads(needs)),
            // The identifier stays with its owner.
            Ok(_) | Err(DecideError::Rejected(_)) => {}
        }
    }
    Ok(None)
}

/// The keys of a user's claims, without holds that are over: another user may have those.
fn keys(mutation: &Mutation, record: &Record) -> BTreeSet<IdentityKey> {
    let claims = record.claims().into_iter();
    let valid =
        claims.filter(|(_, claim)| !claim.hold.is_some_and(|until| mutation.is_past(until)));
    valid.map(|(key, _)| key).collect()
}

/// The changes of claims on the held keys of a user.
fn hold_changes(mutation: &Mutation, Reversion { before, after }: &Reversion<'_>) -> ClaimDiff {
    let held = |record: &Record| -> BTreeMap<IdentityKey, Claim> {
        let holds = record.internals.holds.iter().filter(|hold| !mutation.is_past(hold.until));
        let claim = |hold: &Hold| Claim {
            owner: Some(record.id()),
            guard: hold.guard,
            hold: Some(hold.until),
            rules_version: hold.rules_version,
        };
        holds.map(|hold| (hold.key.clone(), claim(hold))).collect()
    };
    let (old, new) = (held(before), held(after));
    let changed = new.iter().filter(|(key, claim)| old.get(key) != Some(claim));
    let mut changes: ClaimDiff = changed
        .map(|(key, claim)| (key.clone(), (old.get(key).cloned(), Some(claim.clone()))))
        .collect();
    let present = keys(mutation, after);
    let ended = old.into_iter().filter(|(key, _)| !present.contains(key));
    changes.extend(ended.map(|(key, claim)| (key, (Some(claim), None))));
    changes
}

/// The write set for a user that stays as it is.
fn unchanged(
    mutation: &Mutation,
    read_set: &ReadSet,
    id: LocalityId,
    reversal: &Reversal,
) -> Result<WriteSet, DecideError> {
    let stored = read_set.read_user(id)?.filter(|_| reversal.in_batch && !mutation.dry_run);
    let writes = stored.map(|record| Write::PutUser(Box::new(record.clone())));
    Ok(WriteSet { writes: writes.into_iter().collect(), ..WriteSet::unchanged(Some(id)) })
}
