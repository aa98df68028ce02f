//! Bulk changes.

use std::sync::Arc;

use futures_util::future::join_all;
use locality_uuid::LocalityId;
use polynym_directory::{
    BulkAction, BulkBatch, BulkChange, BulkCounts, BulkEffect, BulkError, BulkPart, BulkProgress,
    BulkResults, BulkState, BulkStep, Error, EventKind, Filter, Mutation, MutationKind,
    MutationReport, PolicyUpdate, RunStep, State, Tenant, TenantChange, Timestamp, UserChange,
    model::bulk::change::MAX_RUNNING, mutation::bulk::LEASE,
};
use polynym_identifier::Rules;

use super::fixture::assertions::{ensure, equal};
use super::fixture::factory::Failure;
use super::fixture::{Fixture, request};

pub mod runs;
pub mod undoings;

const ID: &str = "bulk-1";

/// Creates the tenant. Returns the time.
async fn create_tenant(f: &Fixture) -> Result<Timestamp, Failure> {
    let set = MutationKind::Tenant(TenantChange::Set(PolicyUpdate::default()));
    match f.apply(f.mutation_of(set)).await?.report {
        MutationReport::Tenant(tenant) => Ok(tenant.since),
        _ => Err("no tenant".into()),
    }
}

fn new_change(f: &Fixture, id: &str) -> BulkChange {
    let new = BulkChange::new(Tenant::DEFAULT, id, BulkAction::Disable, f.now());
    BulkChange { caller: "web".to_owned(), ..new }
}

/// Takes a step. Returns the bulk change, unless the step has no effect.
async fn step(f: &Fixture, id: &str, step: BulkStep) -> Result<Option<BulkChange>, Error> {
    let kind = MutationKind::Bulk(id.to_owned(), step);
    Ok(match f.apply(f.mutation_of(kind)).await?.report {
        MutationReport::BulkChange(change) => Some(*change),
        _ => None,
    })
}

/// A change of active users by this server.
fn part_of(server: LocalityId) -> Result<BulkPart, Failure> {
    let filter = Arc::new(Filter::parse("state = ACTIVE", &[Rules::PRESENT])?);
    Ok(BulkPart { id: ID.to_owned(), server, filter: Some(filter) })
}

/// Takes a step of a server.
async fn run_step(
    f: &Fixture,
    server: LocalityId,
    run: RunStep,
) -> Result<Option<BulkChange>, Error> {
    step(f, ID, BulkStep::Run(server, run)).await
}

async fn due_bulk_changes(f: &Fixture) -> Result<Vec<(Tenant, String)>, Error> {
    let due = f.store.bulk_changes.due_bulk_changes(f.now(), 10).await?;
    Ok(due.into_iter().map(|change| change.key).collect())
}

async fn start(f: &Fixture, id: &str) -> Result<BulkChange, Failure> {
    let started = step(f, id, BulkStep::Start(Box::new(new_change(f, id)), Arc::default())).await?;
    Ok(started.ok_or("it was not started")?)
}

fn progress(changed: u64, users: Vec<LocalityId>) -> Box<BulkProgress> {
    let counts = BulkCounts { changed, ..BulkCounts::default() };
    let next = BulkBatch { users, cursor: vec![1], is_last: false };
    let results = BulkResults { counts, ..BulkResults::default() };
    Box::new(BulkProgress { results, next, ..BulkProgress::default() })
}

pub async fn one_server_runs_a_bulk_change(f: Fixture) -> Result<(), Failure> {
    create_tenant(&f).await?;
    let (one, other, user) = (f.ids.next_id(), f.ids.next_id(), f.ids.next_id());
    let started = start(&f, ID).await?;
    equal(&start(&f, ID).await?, &started, "the same one, started again")?;
    let due = due_bulk_changes(&f).await?;
    equal(&due, &vec![(Tenant::DEFAULT, ID.to_owned())], "the due ones")?;

    let taken = step(&f, ID, BulkStep::Take(one)).await?.ok_or("it was not taken")?;
    equal(&due_bulk_changes(&f).await?, &Vec::new(), "the due ones")?;
    equal(&step(&f, ID, BulkStep::Take(other)).await?, &None, "taken by another server")?;
    let saved = run_step(&f, one, RunStep::Save(progress(1, vec![user]))).await?;
    let saved = saved.ok_or("the progress was not saved")?;
    equal(&(saved.counts.changed, saved.batch.users.clone()), &(1, vec![user]), "the progress")?;
    ensure(saved.lease.is_some() && saved.lease != taken.lease, "the lease was not renewed")?;
    equal(&run_step(&f, other, RunStep::Renew).await?, &None, "renewed by another server")?;
    let renewed = run_step(&f, one, RunStep::Renew).await?.ok_or("it was not renewed")?;
    let until = |change: &BulkChange| change.lease.map(|lease| lease.until);
    ensure(until(&renewed) > until(&saved), "the lease is not longer")?;
    equal(&renewed, &BulkChange { lease: renewed.lease, ..saved.clone() }, "the rest of it")?;

    // The first server is gone for a while.
    f.wait_until(f.now().plus(LEASE * 2));
    let f = f.reopen().await?;
    let stored = f.store.bulk_changes.bulk_change(&Tenant::DEFAULT, ID).await?;
    equal(&stored, &Some(renewed), "the stored one")?;
    ensure(step(&f, ID, BulkStep::Take(other)).await?.is_some(), "nobody took over")?;
    let late = run_step(&f, one, RunStep::Save(progress(100, Vec::new()))).await?;
    equal(&late, &None, "progress of the first server")?;
    let late = run_step(&f, one, RunStep::End(BulkState::Failed, "LATE".to_owned())).await?;
    equal(&late, &None, "an end by the first server")?;

    // The last results of a server count even if somebody stops it meanwhile.
    step(&f, ID, BulkStep::Stop("admin".to_owned())).await?;
    let renewed = run_step(&f, other, RunStep::Renew).await?;
    ensure(renewed.is_some_and(|change| change.lease.is_some()), "the last users are not leased")?;
    let stopped = run_step(&f, other, RunStep::Save(progress(2, vec![user]))).await?;
    let stopped = stopped.ok_or("the results were not saved")?;
    equal(&(stopped.state, stopped.counts.changed), &(BulkState::Stopped, 3), "the stopped one")?;
    ensure(stopped.batch.users.is_empty() && stopped.lease.is_none(), "it has another batch")?;
    equal(&&*stopped.end_reason, &"admin", "who stopped it")?;
    equal(&step(&f, ID, BulkStep::Take(one)).await?, &None, "taken while it is stopped")?;

    let resumed = step(&f, ID, BulkStep::Resume("admin".to_owned())).await?;
    let resumed = resumed.ok_or("it was not resumed")?;
    equal(&(resumed.state, &*resumed.caller), &(BulkState::Running, "admin"), "the resumed one")?;
    step(&f, ID, BulkStep::Take(one)).await?.ok_or("it was not taken again")?;
    let mut last = progress(0, Vec::new());
    last.next.is_last = true;
    let ended = run_step(&f, one, RunStep::Save(last)).await?.ok_or("the end was not saved")?;
    equal(&(ended.state, ended.counts.changed), &(BulkState::Completed, 3), "the end")
}

pub async fn a_tenant_runs_few_bulk_changes_at_once(f: Fixture) -> Result<(), Failure> {
    create_tenant(&f).await?;
    let ids: Vec<_> = (0..3 * MAX_RUNNING).map(|n| format!("bulk-{n}")).collect();
    let starts = ids.iter().map(|id| {
        let start = BulkStep::Start(Box::new(new_change(&f, id)), Arc::default());
        step(&f, id, start)
    });
    let mut refused = 0;
    for started in join_all(starts).await {
        match started {
            Err(Error::Bulk(BulkError::TooMany { limit })) => {
                equal(&limit, &MAX_RUNNING, "the limit")?;
                refused += 1;
            }
            started => ensure(started?.is_some(), "it was not started")?,
        }
    }
    equal(&refused, &(2 * MAX_RUNNING), "the refused ones")?;
    let all = f.store.bulk_changes.bulk_changes(&Tenant::DEFAULT).await?;
    equal(&all.len(), &MAX_RUNNING, "the stored ones")?;

    let first = all.first().ok_or("none")?;
    let stop = BulkStep::Stop("web".to_owned());
    step(&f, &first.id, stop).await?;
    start(&f, "another").await?;
    let resumed = step(&f, &first.id, BulkStep::Resume("web".to_owned())).await;
    let is_refused = matches!(resumed, Err(Error::Bulk(BulkError::TooMany { .. })));
    ensure(is_refused, "a fifth one was resumed")
}

pub async fn bulk_changes_are_removed(f: Fixture) -> Result<(), Failure> {
    create_tenant(&f).await?;
    let (store, other) = (f.store.bulk_changes.clone(), super::fixture::tenant("default-2")?);
    let missing = BulkStep::Stop("web".to_owned());
    let missing = step(&f, ID, missing).await;
    ensure(matches!(missing, Err(Error::Bulk(BulkError::NotFound))), "one that is not there")?;
    start(&f, ID).await?;
    step(&f, ID, BulkStep::Remove).await?;
    ensure(store.bulk_change(&Tenant::DEFAULT, ID).await?.is_some(), "a running one is gone")?;

    let other_start = BulkStep::Start(Box::new(new_change(&f, ID)), Arc::default());
    let mut mutation = f.mutation_of(MutationKind::Bulk(ID.to_owned(), other_start));
    mutation.tenant = other.clone();
    let absent = f.apply(mutation).await;
    ensure(matches!(absent, Err(Error::TenantNotFound)), "one of a tenant that does not exist")?;

    let ended = step(&f, ID, BulkStep::Stop("web".to_owned())).await?.ok_or("not stopped")?;
    equal(&store.expired_bulk_changes(f.now(), 10).await?, &Vec::new(), "expired at its end")?;
    start(&f, "running").await?;
    let later = ended.due_time();
    let expired = store.expired_bulk_changes(later, 10).await?;
    equal(&expired, &vec![(Tenant::DEFAULT, ID.to_owned())], "expired after 30 days")?;
    let due = store.due_bulk_changes(later, 1).await?;
    let due: Vec<_> = due.into_iter().map(|change| (change.key, change.caller)).collect();
    let running = ((Tenant::DEFAULT, "running".to_owned()), new_change(&f, "running").caller);
    equal(&due, &vec![running], "the due ones after 30 days")?;
    step(&f, "running", BulkStep::Stop("web".to_owned())).await?;
    step(&f, "running", BulkStep::Remove).await?;
    step(&f, ID, BulkStep::Remove).await?;
    equal(&store.bulk_changes(&Tenant::DEFAULT).await?, &Vec::new(), "the removed one")?;
    equal(&store.expired_bulk_changes(later, 10).await?, &Vec::new(), "expired afterwards")?;

    start(&f, ID).await?;
    store.remove_bulk_changes(&other).await?;
    equal(&store.bulk_changes(&Tenant::DEFAULT).await?.len(), &1, "those of another tenant")?;
    store.remove_bulk_changes(&Tenant::DEFAULT).await?;
    equal(&store.bulk_changes(&Tenant::DEFAULT).await?, &Vec::new(), "those of the tenant")?;
    equal(&store.due_bulk_changes(f.now(), 10).await?, &Vec::new(), "due afterwards")
}

pub async fn a_user_changes_if_it_matches_and_once(f: Fixture) -> Result<(), Failure> {
    create_tenant(&f).await?;
    let (user, server) = (f.create(&["handle:joe"]).await?, f.ids.next_id());
    start(&f, ID).await?;
    step(&f, ID, BulkStep::Take(server)).await?.ok_or("it was not taken")?;
    let part = part_of(server)?;
    let disable = async |key: &str| {
        let mutation = Mutation {
            bulk: Some(part.clone()),
            request: request(key, 1),
            ..f.mutation(user.id, UserChange::Disable)
        };
        f.apply(mutation).await.map(|outcome| outcome.report)
    };
    let report = |effect| MutationReport::BulkUser(effect);
    equal(&disable("one").await?, &report(BulkEffect::Changed), "a user that matches")?;
    equal(&disable("two").await?, &report(BulkEffect::Unmatched), "a user that does not")?;
    equal(&disable("one").await?, &MutationReport::Nothing, "the repeated request")?;
    f.change(&user, UserChange::Enable).await?;
    equal(&disable("one").await?, &MutationReport::Nothing, "the request again")?;
    // A user that does not match leaves no request behind.
    equal(&disable("two").await?, &report(BulkEffect::Changed), "another request")?;
    let disabled = f.events(&user).await?;
    let disabled = disabled.iter().filter(|event| event.kind == EventKind::UserDisabled).count();
    equal(&disabled, &2, "the events")
}

pub async fn a_bulk_change_says_for_what_it_waits(f: Fixture) -> Result<(), Failure> {
    create_tenant(&f).await?;
    let server = f.ids.next_id();
    start(&f, ID).await?;
    step(&f, ID, BulkStep::Take(server)).await?.ok_or("it was not taken")?;
    let wait = async |reason: &str| {
        let waiting = run_step(&f, server, RunStep::Wait(reason.to_owned())).await?;
        let wait = waiting.filter(|change| change.lease.is_some()).and_then(|change| change.wait);
        Ok::<_, Failure>(wait.ok_or("it does not wait")?)
    };
    let (first, second) = (wait("STORE_UNAVAILABLE").await?, wait("OVERLOADED").await?);
    equal(&&*second.reason, &"OVERLOADED", "the reason")?;
    equal(&second.since, &first.since, "the beginning of the wait")?;
    let stored = f.store.bulk_changes.bulk_change(&Tenant::DEFAULT, ID).await?;
    equal(&stored.and_then(|change| change.wait), &Some(second), "the stored wait")?;
    let saved = run_step(&f, server, RunStep::Save(progress(1, Vec::new()))).await?;
    equal(&saved.ok_or("the progress was not saved")?.wait, &None, "the wait after progress")?;
    wait("OVERLOADED").await?;
    let stopped = step(&f, ID, BulkStep::Stop("web".to_owned())).await?.ok_or("not stopped")?;
    equal(&stopped.wait, &None, "the wait of a stopped one")
}

pub async fn a_bulk_change_is_undone_once_its_users_rest(f: Fixture) -> Result<(), Failure> {
    create_tenant(&f).await?;
    let (one, other) = (f.ids.next_id(), f.ids.next_id());
    let undo = async || step(&f, ID, BulkStep::Undo(Vec::new())).await;
    let is_refused = |undone| matches!(undone, Err(Error::Bulk(BulkError::Running)));
    start(&f, ID).await?;
    ensure(is_refused(undo().await), "one without a server was undone")?;
    step(&f, ID, BulkStep::Take(one)).await?.ok_or("it was not taken")?;
    step(&f, ID, BulkStep::Stop("web".to_owned())).await?;
    ensure(is_refused(undo().await), "one was undone whose last users may change")?;
    run_step(&f, one, RunStep::Save(progress(1, Vec::new()))).await?;
    undo().await?.ok_or("it was not undone")?;
    let resume = async || step(&f, ID, BulkStep::Resume("web".to_owned())).await;
    let is_undoing = |resumed| matches!(resumed, Err(Error::Bulk(BulkError::Undoing)));
    ensure(is_undoing(resume().await), "one was resumed while it is undone")?;
    step(&f, ID, BulkStep::Remove).await?;
    f.wait_until(f.now().plus(LEASE / 2));
    undo().await?.ok_or("the undoing was not renewed")?;
    f.wait_until(f.now().plus(LEASE / 2));
    ensure(is_undoing(resume().await), "one was resumed whose undoing was renewed")?;
    step(&f, ID, BulkStep::EndUndo(Vec::new())).await?.ok_or("the undoing did not end")?;

    // A server is gone that has changed its last users.
    resume().await?;
    ensure(is_refused(undo().await), "a resumed one was undone")?;
    step(&f, ID, BulkStep::Take(other)).await?.ok_or("it was not taken again")?;
    step(&f, ID, BulkStep::Stop("web".to_owned())).await?;
    ensure(is_refused(undo().await), "one with a lease was undone")?;
    f.wait_until(f.now().plus(LEASE));
    let undone = undo().await?.ok_or("it was not undone again")?;
    equal(&undone.lease, &None, "the lease")?;
    // The server of the undoing is gone, too.
    f.wait_until(f.now().plus(LEASE));
    ensure(resume().await.is_ok(), "one was not resumed whose undoing is over")
}

pub async fn a_server_without_the_lease_changes_nobody(f: Fixture) -> Result<(), Failure> {
    create_tenant(&f).await?;
    let (user, server, other) =
        (f.create(&["handle:joe"]).await?, f.ids.next_id(), f.ids.next_id());
    let disable = async |server| {
        let part = Some(part_of(server)?);
        let mutation = Mutation { bulk: part, ..f.mutation(user.id, UserChange::Disable) };
        Ok::<_, Failure>(f.apply(mutation).await?.report)
    };
    let (unmatched, changed) = (BulkEffect::Unmatched, BulkEffect::Changed);
    equal(&disable(server).await?, &MutationReport::BulkUser(unmatched), "without a record")?;
    start(&f, ID).await?;
    step(&f, ID, BulkStep::Take(server)).await?.ok_or("it was not taken")?;
    equal(&disable(other).await?, &MutationReport::BulkUser(unmatched), "by another server")?;
    step(&f, ID, BulkStep::Stop("web".to_owned())).await?;
    // The last users of a stopped one change until it is undone.
    equal(&disable(server).await?, &MutationReport::BulkUser(changed), "by its server")?;
    f.change(&user, UserChange::Enable).await?;
    f.wait_until(f.now().plus(LEASE));
    step(&f, ID, BulkStep::Undo(Vec::new())).await?.ok_or("it was not undone")?;
    equal(&disable(server).await?, &MutationReport::BulkUser(unmatched), "by a frozen server")?;
    let present = f.get(user.id).await?.ok_or("the user is gone")?;
    equal(&present.state, &State::Active, "the state")
}
