//! Bulk changes.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use locality_uuid::{Generator, LocalityId, Mode};
use polynym_directory::error::BulkError;
use polynym_directory::model::bulk::change::{BulkAction, BulkChange, BulkState, MAX_RUNNING};
use polynym_directory::model::bulk::progress::{BulkBatch, BulkCounts, BulkEffect, BulkResults};
use polynym_directory::mutation::bulk::{BulkProgress, BulkStep, LEASE, RunStep};
use polynym_directory::search::Filter;
use polynym_directory::service::bulk::calls::StartBulkChange;
use polynym_directory::service::bulk::run::BulkHost;
use polynym_directory::{
    ConflictPolicy, Directory, Error, EventKind, Limits, Mutation, MutationKind, MutationReport,
    NewUser, PolicyUpdate, State, Tenant, TenantChange, Timestamp, UserChange, Value,
};
use polynym_identifier::Rules;

use super::fixture::assertions::{ensure, equal};
use super::fixture::factory::Failure;
use super::fixture::{Fixture, request};

const ID: &str = "bulk-1";

/// A host whose callers have all rights, except for one.
struct Host;

impl BulkHost for Host {
    fn may_change_users(&self, caller: &str, _: &Tenant) -> bool {
        caller != "gone"
    }

    fn error_reason(&self, _: &Error) -> &'static str {
        "SOME_REASON"
    }
}

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

async fn due_bulk_changes(f: &Fixture) -> Result<Vec<(Tenant, String)>, Error> {
    f.store.bulk_changes.due_bulk_changes(f.now(), 10).await
}

async fn start(f: &Fixture, id: &str) -> Result<BulkChange, Failure> {
    let started = step(f, id, BulkStep::Start(Box::new(new_change(f, id)))).await?;
    Ok(started.ok_or("it was not started")?)
}

fn progress(changed: u64, users: Vec<LocalityId>) -> Box<BulkProgress> {
    let counts = BulkCounts { changed, ..BulkCounts::default() };
    let next = BulkBatch { users, cursor: vec![1], is_last: false };
    let results = BulkResults { counts, failures: Vec::new() };
    Box::new(BulkProgress { results, next, releases_lease: false })
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
    let saved = step(&f, ID, BulkStep::Run(one, RunStep::Save(progress(1, vec![user])))).await?;
    let saved = saved.ok_or("the progress was not saved")?;
    equal(&(saved.counts.changed, saved.batch.users.clone()), &(1, vec![user]), "the progress")?;
    ensure(saved.lease.is_some() && saved.lease != taken.lease, "the lease was not renewed")?;

    // The first server is gone for a while.
    f.wait_until(f.now().plus(LEASE * 2));
    let f = f.reopen().await?;
    let stored = f.store.bulk_changes.bulk_change(&Tenant::DEFAULT, ID).await?;
    equal(&stored, &Some(saved), "the stored one")?;
    ensure(step(&f, ID, BulkStep::Take(other)).await?.is_some(), "nobody took over")?;
    let late = step(&f, ID, BulkStep::Run(one, RunStep::Save(progress(100, Vec::new())))).await?;
    equal(&late, &None, "progress of the first server")?;
    let late = step(&f, ID, BulkStep::Run(one, RunStep::End(BulkState::Failed, "LATE".to_owned()))).await?;
    equal(&late, &None, "an end by the first server")?;

    // The last results of a server count even if somebody stops it meanwhile.
    step(&f, ID, BulkStep::Stop("admin".to_owned())).await?;
    let stopped = step(&f, ID, BulkStep::Run(other, RunStep::Save(progress(2, vec![user])))).await?;
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
    let ended = step(&f, ID, BulkStep::Run(one, RunStep::Save(last))).await?.ok_or("the end was not saved")?;
    equal(&(ended.state, ended.counts.changed), &(BulkState::Completed, 3), "the end")
}

pub async fn a_tenant_runs_few_bulk_changes_at_once(f: Fixture) -> Result<(), Failure> {
    create_tenant(&f).await?;
    let ids: Vec<_> = (0..3 * MAX_RUNNING).map(|n| format!("bulk-{n}")).collect();
    let starts = ids.iter().map(|id| {
        let start = BulkStep::Start(Box::new(new_change(&f, id)));
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

    let other_start = BulkStep::Start(Box::new(new_change(&f, ID)));
    let mut mutation = f.mutation_of(MutationKind::Bulk(ID.to_owned(), other_start));
    mutation.tenant = other.clone();
    let absent = f.apply(mutation).await;
    ensure(matches!(absent, Err(Error::TenantNotFound)), "one of a tenant that does not exist")?;

    let ended = step(&f, ID, BulkStep::Stop("web".to_owned())).await?.ok_or("not stopped")?;
    equal(&store.due_bulk_changes(f.now(), 10).await?, &Vec::new(), "due at its end")?;
    equal(&store.due_bulk_changes(ended.due_time(), 10).await?.len(), &1, "due after 30 days")?;
    step(&f, ID, BulkStep::Remove).await?;
    equal(&store.bulk_changes(&Tenant::DEFAULT).await?, &Vec::new(), "the removed one")?;
    equal(&store.due_bulk_changes(ended.due_time(), 10).await?, &Vec::new(), "due afterwards")?;

    start(&f, ID).await?;
    store.remove_bulk_changes(&other).await?;
    equal(&store.bulk_changes(&Tenant::DEFAULT).await?.len(), &1, "those of another tenant")?;
    store.remove_bulk_changes(&Tenant::DEFAULT).await?;
    equal(&store.bulk_changes(&Tenant::DEFAULT).await?, &Vec::new(), "those of the tenant")?;
    equal(&store.due_bulk_changes(f.now(), 10).await?, &Vec::new(), "due afterwards")
}

pub async fn a_user_changes_if_it_matches_and_once(f: Fixture) -> Result<(), Failure> {
    let user = f.create(&["handle:joe"]).await?;
    let filter = Arc::new(Filter::parse("state = ACTIVE", &[Rules::PRESENT])?);
    let disable = async |key: &str| {
        let mutation = Mutation {
            filter: Some(filter.clone()),
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

/// Runs bulk changes on two servers until the one with this id has ended.
async fn run(directories: &[Arc<Directory>; 2], id: &str) -> Result<BulkChange, Failure> {
    let context = directories[0].context(Tenant::DEFAULT, "web", "GetBulkChange", "");
    let ended = async {
        loop {
            let found = directories[0].bulk_change(&context, id).await?;
            if found.end_time.is_some() {
                return Ok::<_, Failure>(found);
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::select! {
        ended = ended => ended,
        never = directories[0].run_bulk_changes(Arc::new(Host)) => match never {},
        never = directories[1].run_bulk_changes(Arc::new(Host)) => match never {},
    }
}

fn directories(f: &Fixture) -> [Arc<Directory>; 2] {
    let ids = || Generator::new(Mode::Variable);
    [(); 2].map(|()| Arc::new(Directory::new(f.store.clone(), ids(), Limits::default())))
}

async fn start_by(
    directory: &Directory,
    caller: &str,
    request: StartBulkChange<'_>,
) -> Result<BulkChange, Error> {
    let context = directory.context(Tenant::DEFAULT, caller, "StartBulkChange", "");
    directory.start_bulk_change(context.into(), request).await
}

/// Creates users, of whom the first ones are disabled, deleted and merged.
async fn users_in_all_states(
    f: &Fixture,
    count: i64,
) -> Result<Vec<polynym_directory::User>, Failure> {
    let (mut users, tenant_since) = (Vec::new(), create_tenant(f).await?);
    for n in 0..count {
        let attributes = [("n".to_owned(), Value::Int(n % 3))].into();
        let new = NewUser { attributes, ..NewUser::default() };
        let creation = f.mutation(f.ids.next_id(), UserChange::Create(new));
        users.push(f.mutate(Mutation { tenant_since, ..creation }).await?);
    }
    let changes = [
        UserChange::Disable,
        UserChange::Delete,
        UserChange::Merge(users[3].id, ConflictPolicy::SecondaryWins),
    ];
    for (user, change) in users.iter().zip(changes) {
        let mutation = f.mutation(user.id, change);
        f.mutate(Mutation { tenant_since, ..mutation }).await?;
    }
    Ok(users)
}

/// The filter is on the state that the change changes, and on an attribute that the next one
/// raises.
pub async fn servers_change_each_user_once(f: Fixture) -> Result<(), Failure> {
    const USERS: i64 = 110;
    let users = users_in_all_states(&f, USERS).await?;
    let servers = directories(&f);
    let disable = StartBulkChange {
        id: "disable",
        filter: "state = ACTIVE",
        action: BulkAction::Disable,
        dry_run: true,
    };
    start_by(&servers[0], "web", StartBulkChange { id: "dry", ..disable.clone() }).await?;
    let dry = run(&servers, "dry").await?;
    start_by(&servers[1], "web", StartBulkChange { dry_run: false, ..disable.clone() }).await?;
    let changed = run(&servers, "disable").await?;
    equal(&changed.counts.changed, &(USERS as u64 - 3), "the disabled users")?;
    equal(&dry.counts, &changed.counts, "what the dry run counts")?;

    let edits = [("n".to_owned(), Some(Value::Int(1_000)))];
    let raise = StartBulkChange {
        id: "raise",
        filter: "attributes.n >= 0",
        action: BulkAction::Attributes(edits.into()),
        dry_run: false,
    };
    start_by(&servers[0], "web", raise).await?;
    let counts = run(&servers, "raise").await?.counts;
    // The merged user has no attributes any more.
    equal(&(counts.changed, counts.skipped), &(USERS as u64 - 2, 1), "the raised users")?;
    for user in &users[4..] {
        let present = f.get(user.id).await?.ok_or("a user is gone")?;
        equal(&present.state, &State::Disabled, "the state")?;
        equal(&present.attributes["n"], &Value::Int(1_000), "the attribute")?;
        let operations: Vec<_> =
            f.events(user).await?.into_iter().map(|event| event.origin.operation_id).collect();
        equal(&operations, &["raise", "disable", ""].map(str::to_owned).into(), "the events")?;
    }
    let other = StartBulkChange { filter: "state = DISABLED", ..disable };
    let exists = start_by(&servers[0], "web", other).await;
    ensure(matches!(exists, Err(Error::Bulk(BulkError::Exists))), "another one with the id")
}

pub async fn a_caller_without_rights_changes_nobody(f: Fixture) -> Result<(), Failure> {
    let user = f.create(&["handle:joe"]).await?;
    let servers = directories(&f);
    let delete = StartBulkChange { id: ID, filter: "", action: BulkAction::Delete, dry_run: false };
    start_by(&servers[0], "gone", delete).await?;
    let stopped = run(&servers, ID).await?;
    equal(&stopped.state, &BulkState::Stopped, "the state")?;
    equal(&&*stopped.end_reason, &"ROLE_DENIED", "the reason")?;
    f.has(&user).await?;

    let context = servers[0].context(Tenant::DEFAULT, "web", "ResumeBulkChange", "");
    servers[0].resume_bulk_change(context.into(), ID).await?;
    let ended = run(&servers, ID).await?;
    equal(&(ended.state, ended.counts.changed), &(BulkState::Completed, 1), "the end")
}
