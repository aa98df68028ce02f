//! Snapshots for exports, and imported tenants.

use locality_uuid::LocalityId;
use polynym_directory::{
    Error, ExportSnapshot, ExportedUser, Hold, ImportedTenant, Mutation, MutationKind,
    MutationReport, Policies, PolicyUpdate, Tenant, TenantChange, TenantRecord, Timestamp, Update,
    UserChange, Value,
};
use polynym_identifier::Kind;

use crate::fixture::assertions::{ensure, equal};
use crate::fixture::factory::Failure;
use crate::fixture::{DAY, Fixture, identifier};

/// Users in a page.
const PAGE_SIZE: usize = 2;

/// The users and ownerless holds of the default tenant in a snapshot, after a user.
async fn content(
    snapshot: &dyn ExportSnapshot,
    mut after: Option<LocalityId>,
) -> Result<(Vec<ExportedUser>, Vec<Hold>), Failure> {
    const EXPIRED: &str = "the snapshot has expired";
    let mut users = Vec::new();
    loop {
        let page = snapshot.scan(&Tenant::DEFAULT, after, PAGE_SIZE).await?.ok_or(EXPIRED)?;
        ensure(page.users.len() <= PAGE_SIZE, format!("a page of {} users", page.users.len()))?;
        after = page.next;
        users.extend(page.into_readable());
        if after.is_none() {
            break;
        }
    }
    let holds = snapshot.ownerless_holds(&Tenant::DEFAULT, None, 10).await?.ok_or(EXPIRED)?;
    Ok((users, holds))
}

fn encoded(users: &[ExportedUser]) -> Vec<(Vec<u8>, Vec<u8>)> {
    users.iter().map(|user| (user.user.as_bytes().to_vec(), user.internals.to_vec())).collect()
}

fn team(name: &str) -> Result<UserChange, Failure> {
    let attributes = [("team".to_owned(), Value::String(name.to_owned()))].into();
    Ok(UserChange::Update(Update::from_mask(None, name.to_owned(), attributes)?))
}

pub async fn a_snapshot_does_not_change(f: Fixture) -> Result<(), Failure> {
    let holding = Policies { holds: [(Kind::Handle, DAY)].into(), ..Policies::default() };
    let mut users = Vec::new();
    for name in ["handle:a", "handle:b", "handle:c", "handle:d", "handle:e"] {
        let user = f.create(&[name]).await?;
        users.push(f.change(&user, team("before")?).await?);
    }
    users.sort_by_key(|user| user.id);
    let purge =
        |id| Mutation { policies: holding.clone().into(), ..f.mutation(id, UserChange::Purge) };
    let held = f.create(&["handle:held"]).await?;
    f.change_with(&holding, &held, UserChange::Unlink(identifier("handle:held")?)).await?;
    f.apply(purge(held.id)).await?;

    let snapshot = f.store.search.snapshot().await?.ok_or("no snapshot")?;
    let before = content(&*snapshot, None).await?;
    equal(&before.0.iter().map(|user| user.id).collect(), &ids(&users), "the users")?;
    equal(&before.1.len(), &1, "holds without an owner")?;

    f.change(&users[1], team("after")?).await?;
    f.change(&users[2], UserChange::Disable).await?;
    f.apply(purge(users[3].id)).await?;
    f.create(&["handle:new"]).await?;
    let released = MutationKind::ReleaseHold(identifier("handle:held")?);
    f.apply(f.mutation_of(released)).await?;

    let after = content(&*snapshot, None).await?;
    equal(&encoded(&after.0), &encoded(&before.0), "the users of the snapshot")?;
    equal(&after.1, &before.1, "the holds of the snapshot")?;
    let rest = content(&*snapshot, Some(users[1].id)).await?.0;
    equal(&encoded(&rest), &encoded(&before.0[2..]), "the rest of the users")?;
    let now = f.store.search.snapshot().await?.ok_or("no snapshot")?;
    equal(&content(&*now, None).await?.0.len(), &5, "users of a later snapshot")
}

fn ids(users: &[polynym_directory::User]) -> Vec<LocalityId> {
    users.iter().map(|user| user.id).collect()
}

fn import(f: &Fixture, tenant: &ImportedTenant) -> Mutation {
    f.mutation_of(MutationKind::Tenant(TenantChange::Import(tenant.clone())))
}

async fn imported(f: &Fixture, tenant: &ImportedTenant) -> Result<TenantRecord, Failure> {
    match f.apply(import(f, tenant)).await?.report {
        MutationReport::Tenant(tenant) => Ok(*tenant),
        other => Err(format!("another report: {other:?}").into()),
    }
}

pub async fn an_imported_tenant_keeps_all_fields(f: Fixture) -> Result<(), Failure> {
    let time = |millis: i64| Some(Timestamp::from_millis(1_600_000_000_000 + millis));
    let policies = PolicyUpdate {
        keep_last: Some(true),
        history_retention: Some(500 * DAY),
        ..PolicyUpdate::default()
    };
    let line = ImportedTenant { policies, create_time: time(0), update_time: time(1) };
    let dry = Mutation { dry_run: true, ..import(&f, &line) };
    f.apply(dry).await?;
    equal(&f.store.tenants.tenant(&Tenant::DEFAULT).await?, &None, "the tenant after a dry run")?;

    let made = imported(&f, &line).await?;
    equal(&(Some(made.create_time), Some(made.update_time)), &(time(0), time(1)), "the times")?;
    ensure(made.policies.keep_last, "its policies differ")?;
    ensure(Some(made.since) > time(1), "it does not start at the import")?;
    let f = f.reopen().await?;
    equal(&f.store.tenants.tenant(&Tenant::DEFAULT).await?, &Some(made.clone()), "the tenant")?;
    equal(&imported(&f, &line).await?, &made, "the tenant, imported again")?;
    let other = ImportedTenant::default();
    let refused = f.apply(import(&f, &other)).await;
    ensure(matches!(refused, Err(Error::TenantExists)), format!("{refused:?}"))?;

    let snapshot = f.store.search.snapshot().await?.ok_or("no snapshot")?;
    equal(&snapshot.tenant(&Tenant::DEFAULT).await?, &Some(Some(made)), "the tenant in a snapshot")
}
