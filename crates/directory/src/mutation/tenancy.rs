//! Changes of tenants: their policies and their deletion.

use super::{Mutation, PriorRequest};
use crate::error::Error;
use crate::model::policies::{Policies, PolicyUpdate};
use crate::model::tenant_event::TenantEventKind;
use crate::model::tenant_record::{Deletion, DeletionStep, ImportedTenant, TenantRecord};
use crate::mutation::claim_diff::{ClaimDiff, plan_writes};
use crate::mutation::journal::tenant_event;
use crate::mutation::read_set::{DecideError, MutationReport, ReadSet, Write, WriteSet};
use crate::timestamp::Timestamp;

/// Changes a tenant's policies, or creates the tenant with them.
pub fn set(
    mutation: &Mutation,
    read_set: &ReadSet,
    update: &PolicyUpdate,
) -> Result<WriteSet, DecideError> {
    let before = read_set.read_tenant()?;
    if before.is_some_and(|before| before.deletion.is_some()) {
        return Err(Error::TenantNotFound.into());
    }

    check_etag(mutation, before)?;
    let now = mutation.now.time;
    let new = || TenantRecord::new(mutation.tenant.clone(), now);
    let mut after = before.cloned().unwrap_or_else(new);
    update.apply(&mut after.policies, now);
    if before.is_none() {
        // There are no users yet.
        after.policies = after.policies.with_changes_finished();
    }
    if let Some(before) = before.filter(|before| before.policies != after.policies) {
        if mutation.now.clock_uncertain
            && before.policies.history_retention != after.policies.history_retention
        {
            // The history is complete from the time of the change on, which must be certain.
            return Err(Error::ClockInDoubt.into());
        }
        after.update_time = now.after(before.update_time);
    }

    let policies = Box::new(after.policies.clone());
    let kind = match before.map(|before| Box::new(before.policies.clone())) {
        None => TenantEventKind::Created(policies),
        Some(before) => TenantEventKind::PoliciesChanged { before, after: policies },
    };
    Ok(put_with_event(mutation, before, after, kind))
}

/// Creates a tenant from an export. An existing one must have the same policies.
pub fn import(
    mutation: &Mutation,
    read_set: &ReadSet,
    imported: &ImportedTenant,
) -> Result<WriteSet, DecideError> {
    let mut applied = Policies::default();
    imported.policies.apply(&mut applied, mutation.now.time);
    // An export has no events: the history begins with the import.
    let history_since = Some(mutation.now.time);
    let policies = Policies { history_since, ..applied.with_changes_finished() };
    if let Some(before) = read_set.read_tenant()? {
        if before.deletion.is_some() || !before.policies.has_same_settings(&policies) {
            return Err(Error::TenantExists.into());
        }
        return Ok(put(Some(before), before.clone()));
    }

    let new = TenantRecord::new(mutation.tenant.clone(), mutation.now.time);
    let create_time = imported.create_time.unwrap_or(mutation.now.time);
    let after = TenantRecord {
        create_time,
        update_time: imported.update_time.unwrap_or(mutation.now.time).max(create_time),
        policies,
        ..new
    };
    let kind = TenantEventKind::Created(Box::new(after.policies.clone()));
    Ok(put_with_event(mutation, None, after, kind))
}

/// Marks changes of policies as applied by the servers. Keeps the time of the last event: this
/// change has none.
pub fn finish(
    read_set: &ReadSet,
    finish: impl FnOnce(&mut Policies),
) -> Result<WriteSet, DecideError> {
    let before = read_set.read_tenant()?.ok_or(Error::TenantNotFound)?;
    let mut after = before.clone();
    finish(&mut after.policies);
    Ok(put(Some(before), after))
}

/// Stores a tenant if it has changed, and reports it.
fn put(before: Option<&TenantRecord>, after: TenantRecord) -> WriteSet {
    let report = MutationReport::Tenant(Box::new(after.clone()));
    let write = Some(after).filter(|after| before != Some(after)).map(Box::new);
    let writes = write.map(Write::PutTenant).into_iter().collect();
    WriteSet { writes, report, ..WriteSet::unchanged(None) }
}

/// Stores a tenant if it has changed, with the event of the change, and reports it.
fn put_with_event(
    mutation: &Mutation,
    before: Option<&TenantRecord>,
    after: TenantRecord,
    kind: TenantEventKind,
) -> WriteSet {
    let event = tenant_event(mutation, &after.policies, kind);
    let mut write_set = put(before, after);
    let is_changed = !write_set.writes.is_empty();
    write_set.writes.extend(event.filter(|_| is_changed));
    write_set
}

fn check_etag(mutation: &Mutation, before: Option<&TenantRecord>) -> Result<(), Error> {
    match &mutation.etag {
        Some(etag) if before.is_none_or(|before| *etag != before.etag()) => {
            Err(Error::EtagMismatch)
        }
        _ => Ok(()),
    }
}

/// Takes a step of deleting the tenant. All but the first do nothing unless it is marked.
pub fn delete(
    mutation: &Mutation,
    read_set: &ReadSet,
    step: &DeletionStep,
) -> Result<WriteSet, DecideError> {
    let nothing = WriteSet::unchanged(None);
    let before = read_set.read_tenant()?.ok_or(Error::TenantNotFound)?;
    match step {
        DeletionStep::Begin { with_users } => {
            check_etag(mutation, Some(before))?;
            if !with_users && read_set.has_members()? {
                return Err(Error::TenantNotEmpty.into());
            }
            let after = with_deletion(before, mutation.now.time, *with_users);
            let with_users = after.deletion.is_some_and(|mark| mark.with_users);
            let kind = TenantEventKind::DeletionBegun { with_users };
            Ok(put_with_event(mutation, Some(before), after, kind))
        }
        _ if before.deletion.is_none() => Ok(nothing),
        DeletionStep::Cancel => {
            let after = TenantRecord { deletion: None, ..before.clone() };
            let kind = TenantEventKind::DeletionCancelled;
            Ok(WriteSet {
                report: nothing.report,
                ..put_with_event(mutation, Some(before), after, kind)
            })
        }
        DeletionStep::RemoveClaims(keys) => {
            let claims = read_set.read_claims(keys.clone())?;
            let removed = claims.into_iter().map(|(key, claim)| (key, (Some(claim.clone()), None)));
            plan_writes(mutation, read_set, Vec::new(), removed.collect::<ClaimDiff>())
        }
        DeletionStep::Finish if read_set.has_members()? => Err(Error::TenantNotEmpty.into()),
        DeletionStep::Finish => {
            let with_users = before.deletion.is_some_and(|mark| mark.with_users);
            let kind = TenantEventKind::Deleted { with_users };
            let event = tenant_event(mutation, &before.policies, kind);
            Ok(WriteSet {
                writes: event.into_iter().chain([Write::RemoveTenant]).collect(),
                ..nothing
            })
        }
    }
}

/// The tenant with the mark. An existing mark keeps its time, and may change to `with_users`.
fn with_deletion(before: &TenantRecord, now: Timestamp, with_users: bool) -> TenantRecord {
    let present = before.deletion.unwrap_or(Deletion { time: now, with_users });
    let deletion = Deletion { with_users: present.with_users || with_users, ..present };
    TenantRecord { deletion: Some(deletion), ..before.clone() }
}

/// Answers a retry of a change with the present tenant. None if the tenant of the request was
/// deleted, even if there is a later one of its name.
pub fn repeat(prior: PriorRequest, read_set: &ReadSet) -> Result<Option<WriteSet>, DecideError> {
    Ok(tenant_of(prior, read_set)?.map(put_unchanged))
}

/// Answers a retry of a deletion with the present tenant, if it still exists. It never deletes a
/// later tenant of the same name.
pub fn repeat_deletion(prior: PriorRequest, read_set: &ReadSet) -> Result<WriteSet, DecideError> {
    let tenant = tenant_of(prior, read_set)?;
    Ok(tenant.map_or_else(|| WriteSet::unchanged(None), put_unchanged))
}

/// The tenant of a request, unless it was deleted since.
fn tenant_of(
    prior: PriorRequest,
    read_set: &ReadSet,
) -> Result<Option<&TenantRecord>, DecideError> {
    let is_same =
        |tenant: &&TenantRecord| prior.tenant_since.is_none_or(|since| since == tenant.since);
    Ok(read_set.read_tenant()?.filter(is_same))
}

fn put_unchanged(tenant: &TenantRecord) -> WriteSet {
    put(Some(tenant), tenant.clone())
}
