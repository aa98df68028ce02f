//! Purging users, and the expiry of deleted and merged ones.

use locality_uuid::LocalityId;

use super::{Mutation, merge_links};
use crate::model::claim::Claim;
use crate::model::record::Record;
use crate::model::tenant_event::TenantEventKind;
use crate::model::user::State;
use crate::mutation::claim_diff::{ClaimDiff, UserTransition, plan_writes};
use crate::mutation::journal::tenant_event;
use crate::mutation::read_set::{DecideError, MutationReport, ReadSet, WriteSet};
use crate::mutation::redaction::{PurgeStep, advance};

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
/// If there are more events than one transaction may read, it takes a step and does not remove the
/// user: [`MutationReport::PurgeBegun`].
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
    let histories = match advance(mutation, read_set, &removed)? {
        PurgeStep::Last(writes) => writes,
        PurgeStep::Partial(writes, progress) => {
            let report = MutationReport::PurgeBegun(progress);
            return Ok(WriteSet { writes, report, ..WriteSet::unchanged(None) });
        }
    };
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
    write_set.writes.extend(histories.into_iter().chain(events));
    let report = MutationReport::Purged(purged);

    Ok(WriteSet { report, ..write_set })
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
    if is_deleted || merge_links::leads_nowhere(read_set, before)? {
        return purge(mutation, read_set, before);
    }
    let mut after = before.clone();
    after.internals.undo = None;

    plan_writes(mutation, read_set, vec![UserTransition::new(before, after)], ClaimDiff::new())
}
