//! Removing users for good, and what happens to users by itself when its time comes.

use locality_uuid::LocalityId;

use super::Mutation;
use crate::model::claim::Claim;
use crate::model::record::Record;
use crate::model::tenant_event::TenantEventKind;
use crate::model::user::State;
use crate::mutation::claim_diff::{ClaimDiff, UserTransition, plan_writes};
use crate::mutation::journal::tenant_event;
use crate::mutation::read_set::{DecideError, MutationReport, ReadSet, Write, WriteSet};
use crate::mutation::redaction::PurgedValues;

/// Removes a user and all that is kept of it, and the users that were merged into it. What it owned
/// is held for nobody, where the tenant's policy holds it; what was held for it stays held for
/// nobody.
///
/// Where more events of others are to be rewritten than one transaction may, it does no more than
/// that: [`MutationReport::PurgeBegun`].
pub fn purge(
    mutation: &Mutation,
    read_set: &ReadSet,
    record: &Record,
) -> Result<WriteSet, DecideError> {
    let is_merged = |other: &&Record| matches!(other.user.state, State::Merged { .. });
    let merged = read_set.read_users(&record.private.merged)?.into_iter().filter(is_merged);
    let holds =
        read_set.read_claims(record.private.holds.iter().map(|hold| hold.key.clone()).collect())?;
    let holds = holds
        .into_iter()
        .filter(|(_, claim)| claim.owner == Some(record.id()) && claim.hold.is_some());
    let reserved = holds.map(|(key, claim)| {
        (key, (Some(claim.clone()), Some(Claim { owner: None, ..claim.clone() })))
    });
    let removed: Vec<_> = std::iter::once(record).chain(merged).collect();
    let (redactions, is_whole) = redactions(mutation, read_set, &removed)?;
    if !is_whole {
        let report = MutationReport::PurgeBegun;
        return Ok(WriteSet { writes: redactions, report, ..WriteSet::unchanged(None) });
    }
    let removal = |record| UserTransition { before: Some(record), after: None };
    let transitions = removed.into_iter().map(removal).collect();
    let mut write_set =
        plan_writes(mutation, read_set, transitions, reserved.collect::<ClaimDiff>())?;
    let purged: Vec<_> = write_set.removed_users().collect();
    let event = |id: &LocalityId| {
        tenant_event(mutation, &mutation.policies, TenantEventKind::UserPurged(*id))
    };
    write_set.writes.extend(redactions.into_iter().chain(purged.iter().filter_map(event)));
    let report = MutationReport::Purged(purged);

    Ok(WriteSet { report, ..write_set })
}

/// The writes that take the values of removed users out of the histories of others, as many as one
/// transaction may have, and whether these are all. A dry run has no bound: it writes nothing.
fn redactions(
    mutation: &Mutation,
    read_set: &ReadSet,
    removed: &[&Record],
) -> Result<(Vec<Write>, bool), DecideError> {
    let mut values = PurgedValues::default();
    let ids: Vec<_> = removed.iter().map(|record| record.id()).collect();
    for (record, events) in removed.iter().zip(read_set.read_histories(&ids)?) {
        values.add(&record.user, events);
    }
    let others = read_set.read_users(&values.others())?;
    let others = others.into_iter().filter(|other| other.user.tenant == mutation.tenant);
    let (ids, others): (Vec<_>, Vec<_>) = others.map(|other| (other.id(), other)).unzip();

    let mut writes = Vec::new();
    let mut room = if mutation.dry_run { usize::MAX } else { mutation.limits.redactions.max(1) };
    for (other, events) in others.into_iter().zip(read_set.read_histories(&ids)?) {
        if room == 0 {
            return Ok((writes, false));
        }
        let redaction = values.redaction(&other.user, events, room);
        room -= redaction.events;
        writes.extend(redaction.writes);
    }
    Ok((writes, room > 0))
}

/// Purges a user whose time is over, or forgets how to undo a merge that can be undone no longer.
pub fn expire(
    mutation: &Mutation,
    read_set: &ReadSet,
    id: LocalityId,
) -> Result<WriteSet, DecideError> {
    let is_due = |record: &&Record| {
        record.user.tenant == mutation.tenant
            && record.expires_at().is_some_and(|due| mutation.is_past(due))
    };
    let Some(before) = read_set.read_user(id)?.filter(is_due) else {
        return Ok(WriteSet::unchanged(Some(id)));
    };

    if matches!(before.user.state, State::Deleted { .. }) {
        return purge(mutation, read_set, before);
    }
    let mut after = before.clone();
    after.private.undo = None;

    plan_writes(mutation, read_set, vec![UserTransition::new(before, after)], ClaimDiff::new())
}
