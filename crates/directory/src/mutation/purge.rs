//! Purging users, and the expiry of deleted and merged ones.

use locality_uuid::LocalityId;

use super::{Mutation, merge_links};
use crate::model::claim::Claim;
use crate::model::record::Record;
use crate::model::tenant_event::TenantEventKind;
use crate::model::user::State;
use crate::mutation::claim_diff::{ClaimDiff, UserTransition, plan_writes};
use crate::mutation::journal::tenant_event;
use crate::mutation::read_set::{DecideError, MutationReport, ReadSet, Write, WriteSet};
use crate::mutation::redaction::PurgedValues;

/// Purges the user with this id, unless it is part of another user. A merged user without a primary
/// is part of none.
pub fn purge_user(
    mutation: &Mutation,
    read_set: &ReadSet,
    id: LocalityId,
) -> Result<WriteSet, DecideError> {
    let record = mutation.present(read_set, id)?;
    if merge_links::is_orphan(read_set, record)? {
        mutation.check_etag(record)?;
        return purge(mutation, read_set, record);
    }
    purge(mutation, read_set, mutation.subject(read_set, id)?)
}

/// Removes a user with all its data, and the users that were merged into it. Its identifiers are
/// held for nobody if the tenant's policies hold them; its holds become holds for nobody.
///
/// If one transaction cannot rewrite all affected events of other users, it rewrites as many as it
/// can and removes nothing: [`MutationReport::PurgeBegun`].
fn purge(
    mutation: &Mutation,
    read_set: &ReadSet,
    record: &Record,
) -> Result<WriteSet, DecideError> {
    let merged = merge_links::merged_users(read_set, record)?;
    let reserved = read_set
        .read_claims(record.internals.holds.iter().map(|hold| hold.key.clone()).collect())?
        .into_iter()
        .filter(|(_, claim)| claim.owner == Some(record.id()) && claim.hold.is_some())
        .map(|(key, claim)| {
            (key, (Some(claim.clone()), Some(Claim { owner: None, ..claim.clone() })))
        });
    let removed: Vec<_> = std::iter::once(record).chain(merged).collect();
    let (redactions, is_complete) = redactions(mutation, read_set, &removed)?;
    if !is_complete {
        let report = MutationReport::PurgeBegun;
        return Ok(WriteSet { writes: redactions, report, ..WriteSet::unchanged(None) });
    }
    let transitions = removed
        .into_iter()
        .map(|record| UserTransition { before: Some(record), after: None })
        .collect();
    let mut write_set =
        plan_writes(mutation, read_set, transitions, reserved.collect::<ClaimDiff>())?;
    let purged: Vec<_> = write_set.removed_users().collect();
    let events = purged.iter().filter_map(|id| {
        tenant_event(mutation, &mutation.policies, TenantEventKind::UserPurged(*id))
    });
    write_set.writes.extend(redactions.into_iter().chain(events));
    let report = MutationReport::Purged(purged);

    Ok(WriteSet { report, ..write_set })
}

/// The writes that remove the values of purged users from the histories of others, as many as one
/// transaction allows, and whether these are all. A dry run has no limit: it writes nothing.
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
    let mut others = read_set.read_users(&values.others())?;
    others.retain(|other| other.user.tenant == mutation.tenant);
    let ids: Vec<_> = others.iter().map(|other| other.id()).collect();

    let mut writes = Vec::new();
    let mut budget = if mutation.dry_run { usize::MAX } else { mutation.limits.redactions.max(1) };
    for (other, events) in others.into_iter().zip(read_set.read_histories(&ids)?) {
        if budget == 0 {
            return Ok((writes, false));
        }
        let redaction = values.redaction(&other.user, events, budget);
        budget -= redaction.events;
        writes.extend(redaction.writes);
    }
    Ok((writes, budget > 0))
}

/// Purges a deleted user, or drops the snapshot of a merged one, if that is due. A merged user that
/// leads to no user is purged then.
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

    let is_deleted = matches!(before.user.state, State::Deleted { .. });
    if is_deleted || merge_links::primary_of(read_set, before)?.is_none() {
        return purge(mutation, read_set, before);
    }
    let mut after = before.clone();
    after.internals.undo = None;

    plan_writes(mutation, read_set, vec![UserTransition::new(before, after)], ClaimDiff::new())
}
