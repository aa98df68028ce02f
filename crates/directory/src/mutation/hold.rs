//! Holds: which still exist, and how they are imported and released.

use super::Mutation;
use crate::error::Error;
use crate::model::claim::Claim;
use crate::model::imported_user::{Effect, Imported};
use crate::model::record::{Hold, Record};
use crate::mutation::claim_diff::{ClaimDiff, UserTransition, plan_writes};
use crate::mutation::read_set::{DecideError, MutationReport, ReadSet, WriteSet};
use polynym_identifier::{Identifier, IdentityKey};

/// The claims of the `holds` that still exist. A key whose hold has expired by another server's
/// clock may have a new owner.
pub fn held<'v>(
    mutation: &Mutation,
    read_set: &'v ReadSet,
    record: &Record,
    holds: &[Hold],
) -> Result<Vec<(IdentityKey, &'v Claim)>, DecideError> {
    let mut claims = read_set.read_claims(holds.iter().map(|hold| hold.key.clone()).collect())?;
    claims.retain(|(_, claim)| {
        claim.owner == Some(record.id()) && claim.hold.is_some_and(|until| !mutation.is_past(until))
    });
    Ok(claims)
}

/// Holds a key for nobody, unless it is held already or the hold has expired.
pub fn import(
    mutation: &Mutation,
    read_set: &ReadSet,
    hold: &Hold,
) -> Result<WriteSet, DecideError> {
    let Hold { key, until, guard, rules_version } = hold.clone();
    let wanted = Claim { owner: None, guard, hold: Some(until), rules_version };
    let claims = read_set.read_claims(vec![key.clone()])?;
    let is_new = claims.iter().all(|(_, claim)| **claim != wanted) && !mutation.is_past(until);
    let effect = if is_new { Effect::Created } else { Effect::Unchanged };
    let report = MutationReport::Imported(Imported { effect, skipped: Vec::new() });
    let changes = is_new.then_some((key, (None, Some(wanted))));
    let write_set = plan_writes(mutation, read_set, Vec::new(), changes.into_iter().collect())?;
    Ok(WriteSet { report, ..write_set })
}

/// Releases the hold on an identifier, and on its guard.
pub fn release(
    mutation: &Mutation,
    read_set: &ReadSet,
    identifier: &Identifier,
) -> Result<WriteSet, DecideError> {
    let key = mutation.key(identifier);
    let guard = identifier.guard();
    let guard = guard.map(|guard| IdentityKey::of_guard(mutation.tenant.as_str(), &guard));
    let mut claims = read_set.read_claims([key.clone()].into_iter().chain(guard).collect())?;
    let held = claims
        .iter()
        .find_map(|(other, claim)| (*other == key).then_some(*claim))
        .filter(|claim| claim.hold.is_some_and(|until| !mutation.is_past(until)))
        .ok_or(Error::NotHeld)?;
    claims.retain(|(other, claim)| {
        *other == key || (claim.guard, claim.owner, claim.hold) == (true, held.owner, held.hold)
    });
    let owner = held.owner.map(|owner| read_set.read_user(owner)).transpose()?.flatten();
    let transition = owner.map(|before| {
        let mut after = before.clone();
        after.internals.holds.retain(|hold| claims.iter().all(|(key, _)| *key != hold.key));
        UserTransition::new(before, after)
    });
    let changes = claims.iter().map(|(key, claim)| (key.clone(), (Some((*claim).clone()), None)));

    plan_writes(
        mutation,
        read_set,
        transition.into_iter().collect(),
        changes.collect::<ClaimDiff>(),
    )
}
