//! Deleting tenants step by step.

use std::sync::Arc;

use polynym_directory::{
    Deletion, DeletionStep, Error, Mutation, MutationKind, MutationReport, Policies, PolicyUpdate,
    TenantChange, TenantRecord, User, UserChange,
};
use polynym_identifier::{IdentityKey, Kind};

use crate::fixture::assertions::{ensure, equal};
use crate::fixture::factory::Failure;
use crate::fixture::{DAY, Fixture, create, identifier, request, tenant};

const NAME: &str = "acme";

async fn step(f: &Fixture, step: DeletionStep) -> Result<MutationReport, Error> {
    let mutation = f.mutation_of(MutationKind::Tenant(TenantChange::Delete(step)));
    let name = tenant(NAME).map_err(|error| Error::Internal(error.to_string().into()))?;
    Ok(f.apply(Mutation { tenant: name, ..mutation }).await?.report)
}

async fn create_tenant(f: &Fixture) -> Result<TenantRecord, Failure> {
    let mutation = f.mutation_of(MutationKind::Tenant(TenantChange::Set(PolicyUpdate::default())));
    f.apply(Mutation { tenant: tenant(NAME)?, ..mutation }).await?;
    Ok(f.store.tenants.tenant(&tenant(NAME)?).await?.ok_or("the tenant was not created")?)
}

async fn create_user(f: &Fixture, name: &str, names: &[&str]) -> Result<User, Failure> {
    let mutation = f.mutation(f.ids.next_id(), create(names)?);
    Ok(f.mutate(Mutation { tenant: tenant(name)?, ..mutation }).await?)
}

async fn purge(f: &Fixture, user: &User) -> Result<(), Failure> {
    let policies = Policies { holds: [(Kind::Handle, DAY)].into(), ..Policies::default() };
    let mutation = f.mutation(user.id, UserChange::Purge);
    let mutation = Mutation { tenant: tenant(NAME)?, policies: Arc::new(policies), ..mutation };
    f.apply(mutation).await?;
    Ok(())
}

fn is_not_empty<T>(outcome: &Result<T, Error>) -> bool {
    matches!(outcome, Err(Error::TenantNotEmpty))
}

pub async fn a_tenant_is_deleted_with_its_content(f: Fixture) -> Result<(), Failure> {
    let name = tenant(NAME)?;
    let before = create_tenant(&f).await?;
    let user = create_user(&f, NAME, &["handle:joe", "email:joe@example.com"]).await?;
    let begun = step(&f, DeletionStep::Begin { with_users: false }).await;
    ensure(is_not_empty(&begun), format!("a tenant with users: {begun:?}"))?;
    step(&f, DeletionStep::Begin { with_users: true }).await?;
    let f = f.reopen().await?;
    let marked = f.store.tenants.tenant(&name).await?.ok_or("marking removed the tenant")?;
    ensure(marked.deletion.is_some_and(|deletion| deletion.with_users), "it is not marked")?;
    equal(&TenantRecord { deletion: None, ..marked.clone() }, &before, "the rest of the tenant")?;
    ensure(marked.etag() != before.etag(), "the etag did not change")?;

    let set = f.mutation_of(MutationKind::Tenant(TenantChange::Set(PolicyUpdate::default())));
    let set = f.apply(Mutation { tenant: name.clone(), ..set }).await;
    ensure(
        matches!(set, Err(Error::TenantNotFound)),
        "the policies of a marked tenant can be changed",
    )?;
    ensure(
        is_not_empty(&step(&f, DeletionStep::Finish).await),
        "the tenant is removed before its users",
    )?;

    purge(&f, &user).await?;
    let held = f.store.tenants.keys(&name, 10).await?;
    equal(
        &held,
        &vec![IdentityKey::new(NAME, &identifier("handle:joe")?)],
        "the holds of its users",
    )?;
    step(&f, DeletionStep::RemoveClaims(held)).await?;
    equal(&f.store.tenants.keys(&name, 10).await?, &Vec::new(), "the holds afterwards")?;
    step(&f, DeletionStep::Finish).await?;
    let f = f.reopen().await?;
    equal(&f.store.tenants.tenant(&name).await?, &None, "the tenant")?;
    ensure(
        matches!(step(&f, DeletionStep::Finish).await, Err(Error::TenantNotFound)),
        "the tenant is removed twice",
    )?;

    create_tenant(&f).await?;

    create_user(&f, NAME, &["handle:joe"]).await.map(drop)
}

pub async fn a_deletion_can_be_cancelled(f: Fixture) -> Result<(), Failure> {
    let before = create_tenant(&f).await?;
    for with_users in [false, true, false] {
        step(&f, DeletionStep::Begin { with_users }).await?;
    }

    let marked = f.store.tenants.tenant(&tenant(NAME)?).await?.and_then(|tenant| tenant.deletion);
    ensure(
        matches!(marked, Some(Deletion { with_users: true, .. })),
        "a later call weakened the first",
    )?;
    step(&f, DeletionStep::Cancel).await?;
    equal(&f.store.tenants.tenant(&tenant(NAME)?).await?, &Some(before), "the tenant")?;

    create_user(&f, NAME, &["handle:joe"]).await.map(drop)
}

pub async fn an_unmarked_tenant_is_not_deleted(f: Fixture) -> Result<(), Failure> {
    let before = create_tenant(&f).await?;
    let user = create_user(&f, NAME, &["handle:joe"]).await?;
    let keys = vec![IdentityKey::new(NAME, &identifier("handle:joe")?)];
    for taken in
        [DeletionStep::RemoveClaims(keys.clone()), DeletionStep::Cancel, DeletionStep::Finish]
    {
        step(&f, taken).await?;
    }
    equal(&f.store.tenants.tenant(&tenant(NAME)?).await?, &Some(before), "the tenant")?;
    equal(&f.store.tenants.keys(&tenant(NAME)?, 10).await?, &keys, "its keys")?;
    purge(&f, &user).await
}

pub async fn keys_are_those_of_one_tenant(f: Fixture) -> Result<(), Failure> {
    for name in ["acme", "acm", "acme-2", "acme0"] {
        create_user(&f, name, &["handle:joe", "handle:eve", "phone:+14155552671"]).await?;
    }
    let mut keys = f.store.tenants.keys(&tenant(NAME)?, 10).await?;
    keys.sort();
    let names = ["handle:eve", "handle:joe", "phone:+14155552671"];
    let wanted = names.map(|name| Ok::<_, Failure>(IdentityKey::new(NAME, &identifier(name)?)));
    equal(&keys, &wanted.into_iter().collect::<Result<Vec<_>, _>>()?, "the keys of a tenant")?;
    equal(&f.store.tenants.keys(&tenant(NAME)?, 2).await?.len(), &2, "keys within the limit")?;
    equal(
        &f.store.tenants.keys(&tenant("acme1")?, 2).await?,
        &Vec::new(),
        "the keys of an unknown tenant",
    )
}

pub async fn requests_of_a_deleted_tenant_are_void(f: Fixture) -> Result<(), Failure> {
    let send = |tenant: &TenantRecord| -> Result<Mutation, Failure> {
        let (tenant, tenant_since) = (tenant.name.clone(), tenant.since);
        let request = request("key", 1);
        Ok(Mutation { tenant, tenant_since, request, ..f.creation(&["handle:joe"])? })
    };
    let former = create_tenant(&f).await?;
    let user = f.mutate(send(&former)?).await?;
    equal(&f.mutate(send(&former)?).await?, &user, "the answer to the request again")?;
    step(&f, DeletionStep::Begin { with_users: true }).await?;
    f.apply(Mutation { tenant: tenant(NAME)?, ..f.mutation(user.id, UserChange::Purge) }).await?;
    step(&f, DeletionStep::Finish).await?;

    let later = create_tenant(&f).await?;
    ensure(later.since != former.since, "both tenants begin at the same time")?;
    let together = f.store.mutations.mutate_all(vec![send(&later)?, send(&later)?]).await;
    let users: Vec<_> =
        together.into_iter().map(|outcome| outcome?.into_user()).collect::<Result<_, _>>()?;
    ensure(users[0].id != user.id && users[0] == users[1], format!("{users:?}"))?;
    equal(&f.mutate(send(&later)?).await?, &users[0], "the answer to the later request again")
}

pub async fn a_tenants_own_requests_end_with_it(f: Fixture) -> Result<(), Failure> {
    let send = async |key: &str, change: TenantChange| {
        let name = tenant(NAME).map_err(|error| Error::Internal(error.to_string().into()))?;
        let mutation = f.mutation_of(MutationKind::Tenant(change));
        let request = request(key, 1);
        Ok::<_, Error>(f.apply(Mutation { tenant: name, request, ..mutation }).await?.report)
    };
    let set = async |keep_last| {
        let update = PolicyUpdate { keep_last: Some(keep_last), ..PolicyUpdate::default() };
        match send("set", TenantChange::Set(update)).await? {
            MutationReport::Tenant(tenant) => Ok::<_, Failure>(*tenant),
            other => Err(format!("{other:?}").into()),
        }
    };
    let delete = TenantChange::Delete(DeletionStep::Begin { with_users: true });

    let former = set(true).await?;
    equal(&set(true).await?, &former, "the answer to the request again")?;
    send("delete", delete.clone()).await?;
    let again = send("delete", delete.clone()).await?;
    ensure(matches!(again, MutationReport::Tenant(_)), "the tenant is still there")?;
    step(&f, DeletionStep::Finish).await?;
    equal(&send("delete", delete.clone()).await?, &MutationReport::Nothing, "a deleted tenant")?;

    let later = set(true).await?;
    ensure(later.since != former.since, "the request of the former tenant created no other")?;
    ensure(later.policies.keep_last, "the request of the former tenant changed nothing")?;
    equal(&set(true).await?, &later, "the answer to the later request again")?;
    equal(&send("delete", delete).await?, &MutationReport::Nothing, "the deletion of the former")?;
    let present = f.store.tenants.tenant(&tenant(NAME)?).await?;
    equal(&present, &Some(later), "a repeated deletion of the former tenant touches a later one")
}
