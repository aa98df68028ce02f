//! Bulk changes that undo an operation.

use std::sync::Arc;

use locality_uuid::{Generator, Mode};
use polynym_directory::{
    BulkAction, BulkError, BulkProgress, BulkState, BulkStep, BulkUsers, Directory, Error, Limits,
    Mutation, Origin, RunStep, StartBulkChange, State, Tenant, User, UserChange,
};

use super::runs::{directories, run, run_of, start_by, users_in_all_states};
use super::{ID, create_tenant, step};
use crate::fixture::Fixture;
use crate::fixture::assertions::{ensure, equal};
use crate::fixture::factory::Failure;

/// More than two rows of a list.
const USERS: i64 = 230;

fn undo<'a>(id: &'a str, operation: &str) -> StartBulkChange<'a> {
    StartBulkChange {
        id,
        users: BulkUsers::Matching(""),
        action: BulkAction::Undo(operation.to_owned()),
        dry_run: false,
    }
}

fn disable(id: &str) -> StartBulkChange<'_> {
    let users = BulkUsers::Matching("state = ACTIVE");
    StartBulkChange { id, users, action: BulkAction::Disable, dry_run: false }
}

/// Two servers that keep so few ids that they look for users more than once.
fn forgetful(f: &Fixture) -> [Arc<Directory>; 2] {
    let limits = Limits { undone_users: 120, ..Limits::default() };
    [(); 2].map(|()| {
        let ids = Generator::new(Mode::Variable);
        Arc::new(Directory::new(f.store.clone(), ids, limits))
    })
}

/// Users of whom an operation has disabled all that were active.
async fn disabled_users(f: &Fixture, servers: &[Arc<Directory>; 2]) -> Result<Vec<User>, Failure> {
    let users = users_in_all_states(f, USERS).await?;
    start_by(&servers[0], "web", disable("leavers")).await?;
    equal(&run(servers, "leavers").await?.counts.changed, &(USERS as u64 - 3), "the disabled")?;
    Ok(users)
}

/// The methods of the events of a user, the newest first.
async fn methods(f: &Fixture, user: &User) -> Result<Vec<(String, String)>, Failure> {
    let events = f.events(user).await?.into_iter();
    Ok(events.map(|event| (event.origin.method, event.origin.operation_id)).collect())
}

pub async fn a_bulk_change_undoes_an_operation(f: Fixture) -> Result<(), Failure> {
    let servers = forgetful(&f);
    let users = disabled_users(&f, &servers).await?;
    // Somebody changes one of them as a part of another operation.
    let origin =
        Origin { caller: "ann".to_owned(), operation_id: "crm".to_owned(), ..Origin::default() };
    let tenant_since = create_tenant(&f).await?;
    f.mutate(Mutation { origin, tenant_since, ..f.mutation(users[9].id, UserChange::Enable) })
        .await?;

    let dry = StartBulkChange { dry_run: true, ..undo("dry", "leavers") };
    start_by(&servers[1], "ann", dry).await?;
    let dry = run(&servers, "dry").await?;
    start_by(&servers[0], "ann", undo(ID, "leavers")).await?;
    let done = run(&servers, ID).await?;
    equal(&(done.state, &*done.end_reason), &(BulkState::Completed, ""), "the end")?;
    equal(&dry.counts, &done.counts, "what the dry run counts")?;
    equal(&done.counts.changed, &(USERS as u64 - 4), "the undone users")?;
    equal(&done.list.map(|list| list.total()), &Some(USERS as u64 - 3), "the found users")?;
    equal(&done.counts.checked(), &(USERS as u64 - 3), "the users that were met")?;
    let failed: Vec<_> = done.failures.iter().map(|one| (one.user, &*one.reason)).collect();
    equal(&failed, &vec![(users[9].id, "CHANGED_SINCE")], "the user that stays")?;
    let blocked: Vec<_> = done.blockers.iter().map(|one| (&one.blocker, one.users)).collect();
    let [(blocker, 1)] = blocked[..] else { return Err(format!("{blocked:?}").into()) };
    equal(&(&*blocker.caller, &*blocker.operation_id), &("ann", "crm"), "what blocks it")?;
    for user in users[4..].iter().filter(|user| user.id != users[9].id) {
        let present = f.get(user.id).await?.ok_or("a user is gone")?;
        equal(&present.state, &State::Active, "the state")?;
        let newest = methods(&f, user).await?.swap_remove(0);
        equal(&newest, &("UndoOperation".to_owned(), "leavers".to_owned()), "the newest event")?;
    }

    equal(&start_by(&servers[0], "ann", undo(ID, "leavers")).await?.state, &done.state, "again")?;
    start_by(&servers[0], "ann", undo("again", "leavers")).await?;
    let again = run(&servers, "again").await?.counts;
    equal(&(again.changed, again.unchanged), &(0, USERS as u64 - 4), "undone twice")
}

/// Two bulk changes that undo the same operation at once.
pub async fn an_operation_is_undone_once(f: Fixture) -> Result<(), Failure> {
    let servers = directories(&f);
    let users = disabled_users(&f, &servers).await?;
    for (server, id) in servers.iter().zip(["one", "other"]) {
        start_by(server, "ann", undo(id, "leavers")).await?;
    }
    let (one, other) = (run(&servers, "one").await?, run(&servers, "other").await?);
    let counts = [&one, &other].map(|change| (change.counts.changed, change.counts.unchanged));
    let sums = (counts[0].0 + counts[1].0, counts[0].1 + counts[1].1);
    equal(&sums, &(USERS as u64 - 3, USERS as u64 - 3), &format!("the users: {counts:?}"))?;
    for user in &users[4..] {
        let events = methods(&f, user).await?;
        let undone = events.iter().filter(|(method, _)| method == "UndoOperation").count();
        equal(&undone, &1, "the events of the undoings")?;
    }
    Ok(())
}

/// A bulk change is not undone while it runs, and not resumed while it is undone.
pub async fn an_undoing_and_its_bulk_change_exclude_each_other(f: Fixture) -> Result<(), Failure> {
    let servers = directories(&f);
    users_in_all_states(&f, 5).await?;
    start_by(&servers[0], "web", disable("leavers")).await?;
    for dry_run in [true, false] {
        let refused =
            start_by(&servers[0], "ann", StartBulkChange { dry_run, ..undo(ID, "leavers") });
        let refused = refused.await;
        ensure(matches!(refused, Err(Error::Bulk(BulkError::Running))), format!("{refused:?}"))?;
    }
    step(&f, "leavers", BulkStep::Stop("web".to_owned())).await?;
    start_by(&servers[0], "ann", undo(ID, "leavers")).await?;
    let context = servers[0].context(Tenant::DEFAULT, "web", "ResumeBulkChange", "");
    let resume = async |id| servers[0].resume_bulk_change(context.clone().into(), id).await;
    let refused = resume("leavers").await;
    ensure(matches!(refused, Err(Error::Bulk(BulkError::Undoing))), format!("{refused:?}"))?;

    // It is stopped before a server has taken it, and its right ends.
    step(&f, ID, BulkStep::Stop("ann".to_owned())).await?;
    step(&f, "leavers", BulkStep::EndUndo(Vec::new())).await?;
    resume("leavers").await?;
    // Another server has it.
    let other = f.ids.next_id();
    step(&f, "leavers", BulkStep::Take(other)).await?.ok_or("it was not taken")?;
    resume(ID).await?;
    let ended = run(&servers, ID).await?;
    equal(&(ended.state, &*ended.end_reason), &(BulkState::Failed, "BULK_CHANGE_RUNNING"), "it")?;
    let released = BulkProgress { releases_lease: true, ..BulkProgress::default() };
    let released = RunStep::Save(Box::new(released));
    step(&f, "leavers", BulkStep::Run(other, released)).await?.ok_or("it was not released")?;
    run(&servers, "leavers").await?;
    resume(ID).await?;
    let ended = run(&servers, ID).await?;
    equal(&(ended.state, ended.counts.changed), &(BulkState::Completed, 2), "the end")
}

pub async fn what_cannot_be_undone_in_bulk_is_refused(f: Fixture) -> Result<(), Failure> {
    let servers = directories(&f);
    users_in_all_states(&f, 5).await?;
    let user = f.ids.next_id().to_string();
    let long = "x".repeat(65);
    for (request, field) in [
        (undo(ID, ""), "action.undo.operation_id"),
        (undo(ID, &long), "action.undo.operation_id"),
        (undo(ID, ID), "action.undo.operation_id"),
        (
            StartBulkChange { users: BulkUsers::Matching("state = ACTIVE"), ..undo(ID, "a") },
            "action.undo",
        ),
        (StartBulkChange { users: BulkUsers::Listed(&[user]), ..undo(ID, "a") }, "action.undo"),
    ] {
        let refused = start_by(&servers[0], "ann", request).await.err();
        let found = refused.as_ref().map(|error| error.to_string().contains(field));
        equal(&found, &Some(true), &format!("{refused:?}"))?;
    }

    // Nothing has the id of an unknown operation, or of one of another tenant.
    start_by(&servers[0], "web", disable("leavers")).await?;
    run(&servers, "leavers").await?;
    let other = crate::fixture::tenant("other")?;
    f.apply(Mutation { tenant: other.clone(), ..f.creation(&["handle:joe"])? }).await?;
    start_by(&servers[0], "ann", undo("unknown", "none")).await?;
    equal(&run(&servers, "unknown").await?.counts.checked(), &0, "an unknown operation")?;
    let context = servers[0].context(other.clone(), "ann", "StartBulkChange", "");
    servers[0].start_bulk_change(context.clone().into(), undo(ID, "leavers")).await?;
    let ended = run_of(&servers, &other, ID).await?;
    equal(&(ended.state, ended.counts.checked()), &(BulkState::Completed, 0), "another tenant")?;

    // An undoing cannot be undone, by a bulk change or by the call.
    let refused = start_by(&servers[0], "ann", undo("twice", "unknown")).await.err();
    let call = servers[0].context(Tenant::DEFAULT, "ann", "UndoOperation", "").into();
    let called = servers[0].begin_undo(&call, "unknown", &[]).await.err();
    for error in [refused, called] {
        let is_clear = error.as_ref().is_some_and(|error| error.to_string().contains("repeat"));
        ensure(is_clear, format!("{error:?}"))?;
    }
    Ok(())
}

/// A caller who is no admin any more undoes nothing.
pub async fn an_undoing_needs_the_rights_of_its_caller(f: Fixture) -> Result<(), Failure> {
    let servers = directories(&f);
    create_tenant(&f).await?;
    start_by(&servers[0], "gone", undo(ID, "leavers")).await?;
    let stopped = run(&servers, ID).await?;
    equal(&(stopped.state, &*stopped.end_reason), &(BulkState::Stopped, "ROLE_DENIED"), "the end")
}
