//! Bulk changes: the steps of their records, and their changes of single users.

use std::sync::Arc;
use std::time::Duration;

use locality_uuid::LocalityId;

use crate::error::{BulkError, Error, Invalid};
use crate::model::bulk::change::{BulkChange, BulkList, BulkState, BulkWait, MAX_RUNNING};
use crate::model::bulk::lease::Lease;
use crate::model::bulk::progress::{
    BulkBatch, BulkEffect, BulkResults, add_blockers, add_failures,
};
use crate::model::user::State;
use crate::mutation::read_set::{
    DecideError, MutationReport, ReadRequest, ReadSet, Write, WriteSet,
};
use crate::mutation::{Mutation, UserChange};
use crate::search::Filter;

/// The time after which another server takes over from one that does not renew its lease.
pub const LEASE: Duration = Duration::from_secs(5);

/// A bulk change, as part of which a user changes.
#[derive(Clone, Debug, PartialEq)]
pub struct BulkPart {
    /// Its id.
    pub id: String,
    /// The server that changes the user. Without the lease it changes nobody.
    pub server: LocalityId,
    /// The filter that the user must match; none if the bulk change lists the user.
    pub filter: Option<Arc<Filter>>,
}

/// A step of a bulk change.
#[derive(Clone, Debug, PartialEq)]
pub enum BulkStep {
    /// Starts it, with the users of its list. Has no effect if it exists with the same change.
    Start(Box<BulkChange>, Arc<[LocalityId]>),
    /// Stops it, on behalf of this caller. Has no effect unless it is running.
    Stop(String),
    /// Resumes it, on behalf of this caller. Has no effect if it is running or completed.
    Resume(String),
    /// Gives this server the right to run it, unless another has it.
    Take(LocalityId),
    /// Takes a step of this server. Has no effect unless it has the lease.
    Run(LocalityId, RunStep),
    /// Begins to undo it, or goes on: for [`LEASE`] it cannot be resumed. These users of its last
    /// batch were undone: it has changed them, and does not change them again. Rejected while it
    /// runs, and until the last users of a stopped one have changed.
    Undo(Vec<LocalityId>),
    /// Ends its undoing. These users of its last batch were undone.
    EndUndo(Vec<LocalityId>),
    /// Removes it, unless users may change by it or by its undoing.
    Remove,
}

/// A step of the server that runs a bulk change.
#[derive(Clone, Debug, PartialEq)]
pub enum RunStep {
    /// Renews the lease, also while the last users of a stopped one change.
    Renew,
    /// Records progress.
    Save(Box<BulkProgress>),
    /// Records the reason for which the users whose turn it is must wait.
    Wait(String),
    /// Ends it, for this reason.
    End(BulkState, String),
}

/// The progress of a server that runs a bulk change.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct BulkProgress {
    /// The results of the present batch.
    pub results: BulkResults,
    /// The next batch.
    pub next: BulkBatch,
    /// Whether the server gives up its lease, so that other bulk changes run.
    pub releases_lease: bool,
    /// The users that an undoing has found; none if it has not looked for any.
    pub found: Option<FoundUsers>,
}

/// Users that an undoing has found.
#[derive(Clone, Debug, PartialEq)]
pub struct FoundUsers {
    /// The users, in the order of their ids.
    pub users: Arc<[LocalityId]>,
    /// Whether there are more.
    pub is_partial: bool,
}

impl BulkStep {
    /// The reads that the step needs.
    pub(crate) fn needs(&self, id: &str) -> ReadRequest {
        let starts = matches!(self, Self::Start(..) | Self::Resume(_));
        ReadRequest {
            bulk_change: Some(id.to_owned()),
            running_bulk_changes: starts,
            tenant: starts,
            ..ReadRequest::default()
        }
    }
}

/// Takes a step of the bulk change with this id. Reports the bulk change, unless the server has no
/// right to take the step.
pub fn step(
    mutation: &Mutation,
    read_set: &ReadSet,
    id: &str,
    step: &BulkStep,
) -> Result<WriteSet, DecideError> {
    let stored = stored_change(read_set, id)?;
    match step {
        BulkStep::Start(new, users) => start(read_set, stored, new, users),
        BulkStep::Stop(caller) => {
            let present = stored.ok_or(Error::Bulk(BulkError::NotFound))?;
            Ok(changed(present, mutation, present.is_running(), |change| {
                change.end(BulkState::Stopped, caller, mutation.now.time);
            }))
        }
        BulkStep::Resume(caller) => {
            let present = stored.ok_or(Error::Bulk(BulkError::NotFound))?;
            let is_resumed = matches!(present.state, BulkState::Stopped | BulkState::Failed);
            if is_resumed {
                check_resume(mutation, present)?;
                check_start(read_set)?;
            }
            Ok(changed(present, mutation, is_resumed, |change| change.resume(caller)))
        }
        BulkStep::Undo(users) => {
            let present = stored.ok_or(Error::Bulk(BulkError::NotFound))?;
            check_undo(mutation, present)?;
            let undo_until = Some(mutation.now.time.plus(LEASE));
            Ok(put(BulkChange { undo_until, lease: None, ..without_undone(present, users) }))
        }
        BulkStep::EndUndo(users) => {
            let undone = stored.filter(|present| present.undo_until.is_some());
            let ended = |present| BulkChange { undo_until: None, ..without_undone(present, users) };
            Ok(undone.map_or_else(nothing, |present| put(ended(present))))
        }
        BulkStep::Remove => {
            let removed = stored.is_some_and(|present| present.is_at_rest(mutation.now.time));
            let writes = removed.then(|| Write::RemoveBulkChange(id.to_owned()));
            Ok(WriteSet { writes: writes.into_iter().collect(), ..WriteSet::unchanged(None) })
        }
        BulkStep::Take(server) => {
            Ok(stored.map_or_else(nothing, |present| take(mutation, present, *server)))
        }
        BulkStep::Run(server, step) => {
            let owned = stored.filter(|present| is_owned(present, *server));
            Ok(owned.map_or_else(nothing, |present| run(mutation, present, *server, step)))
        }
    }
}

fn start(
    read_set: &ReadSet,
    stored: Option<&BulkChange>,
    new: &BulkChange,
    users: &Arc<[LocalityId]>,
) -> Result<WriteSet, DecideError> {
    match stored {
        Some(present) if present.is_same_change(new) => Ok(unchanged(present)),
        Some(_) => Err(Error::Bulk(BulkError::Exists).into()),
        None => {
            check_start(read_set)?;
            let mut write_set = put(new.clone());
            if new.list.is_some() {
                write_set.writes.push(Write::PutBulkUsers(new.id.clone(), users.clone()));
            }
            Ok(write_set)
        }
    }
}

/// Takes a step of the server that has the lease.
fn run(mutation: &Mutation, present: &BulkChange, server: LocalityId, step: &RunStep) -> WriteSet {
    let lease = lease(mutation, server);
    match step {
        RunStep::Renew => put(BulkChange { lease: Some(lease), ..present.clone() }),
        RunStep::Save(progress) => {
            let mut write_set = changed(present, mutation, true, |change| {
                save(mutation, change, progress);
                let keeps_lease = change.is_running() && !progress.releases_lease;
                change.lease = keeps_lease.then_some(lease);
            });
            let found = progress.found.as_ref().filter(|_| present.is_running());
            write_set.writes.extend(
                found.map(|found| Write::PutBulkUsers(present.id.clone(), found.users.clone())),
            );
            write_set
        }
        RunStep::Wait(reason) => changed(present, mutation, true, |change| {
            let since = change.wait.as_ref().map_or(mutation.now.time, |wait| wait.since);
            let wait = BulkWait { reason: reason.clone(), since };
            change.wait = Some(wait).filter(|_| change.is_running());
            change.lease = Some(lease).filter(|_| change.is_running());
        }),
        RunStep::End(state, reason) => changed(present, mutation, present.is_running(), |change| {
            change.lease = None;
            change.end(*state, reason, mutation.now.time);
        }),
    }
}

/// Rejects another running bulk change if the tenant has many, or is being deleted.
fn check_start(read_set: &ReadSet) -> Result<(), DecideError> {
    if read_set.read_tenant()?.is_none_or(|tenant| tenant.deletion.is_some()) {
        return Err(Error::TenantNotFound.into());
    }
    if running_changes(read_set)? >= MAX_RUNNING {
        return Err(Error::Bulk(BulkError::TooMany { limit: MAX_RUNNING }).into());
    }
    Ok(())
}

/// Rejects undoing it while users change: an undoing that has passed them does not meet them again.
/// An undoing is not undone: what it has done has the id of its operation.
fn check_undo(mutation: &Mutation, present: &BulkChange) -> Result<(), DecideError> {
    if present.action.undone().is_some() {
        let rule = "is an undoing, and an undoing cannot be undone: repeat what it has undone";
        return Err(Error::invalid(Invalid::Field, "operation_id", rule).into());
    }
    match present.is_running() || present.is_leased(mutation.now.time) {
        true => Err(Error::Bulk(BulkError::Running).into()),
        false => Ok(()),
    }
}

/// A bulk change of whose last batch these users were undone.
fn without_undone(present: &BulkChange, users: &[LocalityId]) -> BulkChange {
    let mut after = present.clone();
    after.batch.users.retain(|user| !users.contains(user));
    after.counts.changed += (present.batch.users.len() - after.batch.users.len()) as u64;
    after
}

/// Rejects resuming it while it is being undone: the undoing would meet only some of its users.
fn check_resume(mutation: &Mutation, present: &BulkChange) -> Result<(), DecideError> {
    match present.is_undoing(mutation.now.time) {
        true => Err(Error::Bulk(BulkError::Undoing).into()),
        false => Ok(()),
    }
}

/// Rejects the undoing of a user if the bulk change was resumed meanwhile.
pub fn check_undoing(mutation: &Mutation, read_set: &ReadSet, id: &str) -> Result<(), DecideError> {
    let present = read_set.bulk.undone.as_ref().ok_or_else(|| {
        let undone_bulk_change = Some(id.into());
        DecideError::from(ReadRequest { undone_bulk_change, ..ReadRequest::default() })
    })?;
    present.as_ref().map_or(Ok(()), |present| check_undo(mutation, present))
}

/// Whether a server may change users as a part of a bulk change.
pub fn has_lease(read_set: &ReadSet, part: &BulkPart) -> Result<bool, DecideError> {
    let present = stored_change(read_set, &part.id)?;
    Ok(present.is_some_and(|present| is_owned(present, part.server)))
}

/// Whether this server runs it.
fn is_owned(present: &BulkChange, server: LocalityId) -> bool {
    present.lease.is_some_and(|lease| lease.owner == server)
}

fn take(mutation: &Mutation, present: &BulkChange, server: LocalityId) -> WriteSet {
    let is_own = present.lease.is_some_and(|lease| lease.owner == server);
    if !present.is_running() || present.is_leased(mutation.now.time) && !is_own {
        return nothing();
    }
    changed(present, mutation, true, |change| change.lease = Some(lease(mutation, server)))
}

fn lease(mutation: &Mutation, owner: LocalityId) -> Lease {
    Lease { owner, until: mutation.now.time.plus(LEASE) }
}

/// Records progress. A bulk change that was stopped meanwhile does not get another batch.
fn save(mutation: &Mutation, change: &mut BulkChange, progress: &BulkProgress) {
    change.counts.add(&progress.results.counts);
    add_failures(&mut change.failures, &progress.results.failures);
    add_blockers(&mut change.blockers, &progress.results.blockers);
    change.wait = None;
    change.batch.users.clear();
    if change.is_running() {
        change.batch.clone_from(&progress.next);
        if let Some(FoundUsers { users, is_partial }) = &progress.found {
            let met_before = change.list.map_or(0, BulkList::total);
            let is_partial = *is_partial;
            change.list = Some(BulkList { met_before, is_partial, ..BulkList::new(users) });
        }
        if change.batch.users.is_empty() && change.batch.is_last {
            change.end(BulkState::Completed, "", mutation.now.time);
        }
    }
}

/// Stores a bulk change after an edit, if it is to be made.
fn changed(
    before: &BulkChange,
    mutation: &Mutation,
    is_changed: bool,
    edit: impl FnOnce(&mut BulkChange),
) -> WriteSet {
    if !is_changed {
        return unchanged(before);
    }
    let mut after = before.clone();
    edit(&mut after);
    after.update_time = mutation.now.time.max(before.update_time);
    put(after)
}

fn put(change: BulkChange) -> WriteSet {
    let writes = vec![Write::PutBulkChange(Box::new(change.clone()))];
    WriteSet { writes, ..unchanged(&change) }
}

fn unchanged(change: &BulkChange) -> WriteSet {
    let report = MutationReport::BulkChange(Box::new(change.clone()));
    WriteSet { report, ..WriteSet::unchanged(None) }
}

const fn nothing() -> WriteSet {
    WriteSet::unchanged(None)
}

/// The bulk change with this id. Needs the read.
fn stored_change<'v>(
    read_set: &'v ReadSet,
    id: &str,
) -> Result<Option<&'v BulkChange>, DecideError> {
    read_set.bulk.change.as_ref().map(Option::as_ref).ok_or_else(|| {
        let bulk_change = Some(id.to_owned());
        DecideError::from(ReadRequest { bulk_change, ..ReadRequest::default() })
    })
}

/// The number of running bulk changes of the mutation's tenant. Needs the read.
fn running_changes(read_set: &ReadSet) -> Result<usize, DecideError> {
    read_set.bulk.running.ok_or_else(|| {
        let needs = ReadRequest { running_bulk_changes: true, ..ReadRequest::default() };
        DecideError::from(needs)
    })
}

/// Changes a user if it is listed, or the filter matches it now. Skips merged users, and deleted
/// ones unless they are to be deleted or restored. Changes nobody if the server has lost the lease:
/// its results are not recorded.
pub fn change_matching(
    mutation: &Mutation,
    read_set: &ReadSet,
    id: LocalityId,
    part: &BulkPart,
    change: &UserChange,
) -> Result<WriteSet, DecideError> {
    let unchanged = |effect| Ok(with_effect(WriteSet::unchanged(Some(id)), effect));
    if !has_lease(read_set, part)? {
        return unchanged(BulkEffect::Unmatched);
    }
    let record = match mutation.present(read_set, id) {
        Err(DecideError::Rejected(Error::UserNotFound)) if part.filter.is_some() => {
            return unchanged(BulkEffect::Unmatched);
        }
        present => present?,
    };
    if part.filter.as_ref().is_some_and(|filter| !filter.matches(&record.user)) {
        return unchanged(BulkEffect::Unmatched);
    }
    match (record.user.state, change) {
        (State::Deleted { .. }, UserChange::Delete)
        | (State::Active | State::Disabled, UserChange::Undelete) => {
            return unchanged(BulkEffect::Unchanged);
        }
        (State::Deleted { .. }, UserChange::Undelete) => {}
        (State::Deleted { .. } | State::Merged { .. }, _) => return unchanged(BulkEffect::Skipped),
        (State::Active | State::Disabled, _) => {}
    }

    let write_set = mutation.edit(read_set, id, change)?;
    let effect = match write_set.writes.is_empty() {
        true => BulkEffect::Unchanged,
        false => BulkEffect::Changed,
    };
    Ok(with_effect(write_set, effect))
}

/// A write set of a user with the effect of its bulk change.
pub fn with_effect(write_set: WriteSet, effect: BulkEffect) -> WriteSet {
    WriteSet { report: MutationReport::BulkUser(effect), ..write_set }
}
