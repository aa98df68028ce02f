//! Servers that run bulk changes.

use std::sync::Arc;
use std::time::Duration;

use locality_uuid::{Generator, Mode};
use polynym_directory::{
    BulkAction, BulkChange, BulkError, BulkState, BulkStep, BulkUsers, ConflictPolicy, Directory,
    Error, Limits, Mutation, NewUser, StartBulkChange, State, Tenant, UserChange, Value,
};

use super::{ID, create_tenant, step};
use crate::fixture::Fixture;
use crate::fixture::assertions::{ensure, equal};
use crate::fixture::factory::Failure;

/// All callers have all rights, except for one.
fn may_change(change: &BulkChange) -> bool {
    change.caller != "gone"
}

/// Runs bulk changes on two servers until the one with this id has ended.
pub(super) async fn run(
    directories: &[Arc<Directory>; 2],
    id: &str,
) -> Result<BulkChange, Failure> {
    run_of(directories, &Tenant::DEFAULT, id).await
}

/// Runs bulk changes until that of a tenant has ended.
pub(super) async fn run_of(
    directories: &[Arc<Directory>; 2],
    tenant: &Tenant,
    id: &str,
) -> Result<BulkChange, Failure> {
    let context = directories[0].context(tenant.clone(), "web", "GetBulkChange", "");
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
        never = directories[0].run_bulk_changes(Arc::new(may_change)) => match never {},
        never = directories[1].run_bulk_changes(Arc::new(may_change)) => match never {},
    }
}

pub(super) fn directories(f: &Fixture) -> [Arc<Directory>; 2] {
    let ids = || Generator::new(Mode::Variable);
    [(); 2].map(|()| Arc::new(Directory::new(f.store.clone(), ids(), Limits::default())))
}

pub(super) async fn start_by(
    directory: &Directory,
    caller: &str,
    request: StartBulkChange<'_>,
) -> Result<BulkChange, Error> {
    let context = directory.context(Tenant::DEFAULT, caller, "StartBulkChange", "");
    directory.start_bulk_change(context.into(), request).await
}

/// Creates users, of whom the first ones are disabled, deleted and merged.
pub(super) async fn users_in_all_states(
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
        users: BulkUsers::Matching("state = ACTIVE"),
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
        users: BulkUsers::Matching("attributes.n >= 0"),
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
    let other = StartBulkChange { users: BulkUsers::Matching("state = DISABLED"), ..disable };
    let exists = start_by(&servers[0], "web", other).await;
    ensure(matches!(exists, Err(Error::Bulk(BulkError::Exists))), "another one with the id")
}

pub async fn a_caller_without_rights_changes_nobody(f: Fixture) -> Result<(), Failure> {
    let user = f.create(&["handle:joe"]).await?;
    let servers = directories(&f);
    let delete = StartBulkChange {
        id: ID,
        users: BulkUsers::Matching(""),
        action: BulkAction::Delete,
        dry_run: false,
    };
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

pub async fn an_id_is_used_again_for_another_bulk_change(f: Fixture) -> Result<(), Failure> {
    let user = f.create(&["handle:joe"]).await?;
    let servers = directories(&f);
    for _ in 0..2 {
        let action = BulkAction::Disable;
        let disable = StartBulkChange {
            id: ID,
            users: BulkUsers::Matching("state = ACTIVE"),
            action,
            dry_run: false,
        };
        start_by(&servers[0], "web", disable).await?;
        equal(&run(&servers, ID).await?.counts.changed, &1, "the disabled users")?;
        let disabled = f.get(user.id).await?.ok_or("the user is gone")?;
        equal(&disabled.state, &State::Disabled, "the state")?;
        f.change(&user, UserChange::Enable).await?;
        step(&f, ID, BulkStep::Remove).await?;
    }
    Ok(())
}

/// Their ids are stored apart from the bulk change, and go with it.
pub async fn listed_users_change(f: Fixture) -> Result<(), Failure> {
    const USERS: i64 = 230;
    let users = users_in_all_states(&f, USERS).await?;
    let servers = directories(&f);
    let mut ids: Vec<_> = users.iter().rev().map(|user| user.id.to_string()).collect();
    ids.push(f.ids.next_id().to_string());
    let disable = StartBulkChange {
        id: ID,
        users: BulkUsers::Listed(&ids),
        action: BulkAction::Disable,
        dry_run: false,
    };
    for _ in 0..2 {
        start_by(&servers[0], "web", disable.clone()).await?;
        let last = f.store.bulk_changes.listed_users(&Tenant::DEFAULT, ID, 2).await?;
        equal(&last.len(), &31, "the last batch")?;
        let ended = run(&servers, ID).await?;
        equal(&ended.counts.checked(), &(USERS as u64 + 1), "the users")?;
        equal(&ended.counts.failed["USER_NOT_FOUND"], &1, "those that do not exist")?;
        equal(&ended.counts.skipped, &2, "the deleted one and the merged one")?;
        let other = StartBulkChange { users: BulkUsers::Listed(&ids[1..]), ..disable.clone() };
        let exists = start_by(&servers[1], "web", other).await;
        ensure(matches!(exists, Err(Error::Bulk(BulkError::Exists))), "another list")?;
        step(&f, ID, BulkStep::Remove).await?;
        for batch in 0..3 {
            let left = f.store.bulk_changes.listed_users(&Tenant::DEFAULT, ID, batch).await?;
            ensure(left.is_empty(), "its list goes with it")?;
        }
    }
    start_by(&servers[0], "web", disable).await?;
    f.store.bulk_changes.remove_bulk_changes(&Tenant::DEFAULT).await?;
    let left = f.store.bulk_changes.listed_users(&Tenant::DEFAULT, ID, 0).await?;
    ensure(left.is_empty(), "its list goes with those of the tenant")
}
