//! Names of attributes.

use std::collections::BTreeMap;

use polynym_directory::{
    DeletionStep, Error, Mutation, MutationKind, NewUser, PolicyUpdate, Tenant, TenantChange,
    Timestamp, Update, UserChange, Value, View,
};

use crate::fixture::Fixture;
use crate::fixture::assertions::{ensure, equal};
use crate::fixture::decoded;
use crate::fixture::factory::Failure;

/// The maximum names of a tenant.
const NAMES_PER_TENANT: usize = 10_000;

fn with<'n>(names: impl IntoIterator<Item = &'n str>) -> BTreeMap<String, Value> {
    let value = |(n, name): (usize, &str)| (name.to_owned(), Value::Int(n as i64));
    names.into_iter().enumerate().map(value).collect()
}

fn create(attributes: BTreeMap<String, Value>) -> UserChange {
    UserChange::Create(NewUser { attributes, ..NewUser::default() })
}

fn set(attributes: BTreeMap<String, Value>) -> UserChange {
    let all = ["attributes".to_owned()];
    let update = Update::from_mask(Some(&all), String::new(), attributes);
    UserChange::Update(update.unwrap_or_default())
}

pub async fn names_of_any_script_come_back(f: Fixture) -> Result<(), Failure> {
    let longest = "é".repeat(128);
    let names = ["Favorite Player", "price.in.$", "お気に入り", "a`b", "$set", "0", &longest];
    let user = f.change_new(create(with(names))).await?;
    equal(&user.attributes, &with(names), "attributes")?;

    let (id, f) = (user.id, f.reopen().await?);
    let read = decoded::users(&f.store, &Tenant::DEFAULT, &[id]).await?;
    equal(&read, &vec![Some(user.clone())], "the user")?;
    let record = f.store.lookups.get(&Tenant::DEFAULT, &[id], View::Basic).await?.remove(0)?;
    let basic = record.ok_or("no user")?.decode()?;
    ensure(basic.attributes.is_empty(), "a look-up without attributes reads some")?;
    equal(&basic.update_time, &user.update_time, "the rest of the user")?;

    let mut sorted = names.to_vec();
    sorted.sort_unstable();
    let listed = f.store.tenants.attribute_names(&Tenant::DEFAULT, "", 100).await?;
    equal(&listed, &sorted.iter().map(ToString::to_string).collect(), "the names")?;
    let page = f.store.tenants.attribute_names(&Tenant::DEFAULT, sorted[1], 2).await?;
    equal(&page, &listed[2..4].to_vec(), "a page of names")
}

pub async fn an_unused_name_stays_listed(f: Fixture) -> Result<(), Failure> {
    let created = f.change_new(create(with(["a", "b"]))).await?;
    let user = f.change(&created, set(with(["b", "c"]))).await?;
    equal(&user.attributes, &with(["b", "c"]), "attributes")?;
    let read = decoded::users(&f.store, &Tenant::DEFAULT, &[user.id]).await?;
    equal(&read, &vec![Some(user)], "the user")?;
    let listed = f.store.tenants.attribute_names(&Tenant::DEFAULT, "", 100).await?;
    equal(&listed, &["a", "b", "c"].map(str::to_owned).to_vec(), "the names")
}

pub async fn a_tenant_has_a_bounded_number_of_names(f: Fixture) -> Result<(), Failure> {
    let names: Vec<_> = (0..NAMES_PER_TENANT).map(|n| format!("name {n}")).collect();
    for names in names.chunks(200) {
        f.change_new(create(with(names.iter().map(String::as_str)))).await?;
    }
    let full = f.change_new(create(with(["name 0", "one more"]))).await;
    ensure(
        matches!(full, Err(Error::AttributeNamesFull { limit: NAMES_PER_TENANT })),
        "a name beyond the limit was accepted",
    )?;
    let user = f.change_new(create(with(["name 0", "name 9999"]))).await?;
    equal(&user.attributes.len(), &2, "attributes with known names")?;
    let listed =
        f.store.tenants.attribute_names(&Tenant::DEFAULT, "", 2 * NAMES_PER_TENANT).await?;
    equal(&listed.len(), &NAMES_PER_TENANT, "names")
}

pub async fn a_dry_run_adds_no_name(f: Fixture) -> Result<(), Failure> {
    let user = f.change_new(create(with(["a"]))).await?;
    let change = f.mutation(user.id, set(with(["b"])));
    f.apply(Mutation { dry_run: true, ..change }).await?;
    let listed = f.store.tenants.attribute_names(&Tenant::DEFAULT, "", 100).await?;
    equal(&listed, &vec!["a".to_owned()], "the names")
}

pub async fn a_recreated_tenant_starts_empty(f: Fixture) -> Result<(), Failure> {
    for since in [1_000, 2_000, 3_000].map(Timestamp::from_millis) {
        let tenant = |change| f.mutation_of(MutationKind::Tenant(change));
        let make = TenantChange::Set(PolicyUpdate::default());
        f.apply(tenant(make)).await?;
        let names = [format!("of {since:?}"), "of all".to_owned()];
        let attributes = with(names.iter().map(String::as_str));
        let creation = f.mutation(f.ids.next_id(), create(attributes));
        let user = f.mutate(Mutation { tenant_since: since, ..creation }).await?;

        let read = decoded::users(&f.store, &Tenant::DEFAULT, &[user.id]).await?;
        equal(&read, &vec![Some(user.clone())], "the user")?;
        let mut listed = f.store.tenants.attribute_names(&Tenant::DEFAULT, "", 100).await?;
        listed.sort_unstable();
        let mut wanted = names.to_vec();
        wanted.sort_unstable();
        equal(&listed, &wanted, "the names")?;

        let purge = f.mutation(user.id, UserChange::Purge);
        f.apply(Mutation { tenant_since: since, ..purge }).await?;
        for step in [DeletionStep::Begin { with_users: true }, DeletionStep::Finish] {
            f.apply(tenant(TenantChange::Delete(step))).await?;
        }
        let listed = f.store.tenants.attribute_names(&Tenant::DEFAULT, "", 100).await?;
        equal(&listed, &Vec::new(), "the names of a deleted tenant")?;
    }
    Ok(())
}

pub async fn concurrent_additions_of_a_name_share_one_id(f: Fixture) -> Result<(), Failure> {
    let own = |n: usize| format!("own {n}");
    let attributes = |n: usize| with(["shared 1", "shared 2", own(n).as_str()]);
    let changes = (0..40).map(|n| f.mutation(f.ids.next_id(), create(attributes(n))));
    let users = f.all(changes.collect()).await?.into_iter().collect::<Result<Vec<_>, _>>()?;
    let ids: Vec<_> = users.iter().map(|user| user.id).collect();

    let f = f.reopen().await?;
    let read = decoded::users(&f.store, &Tenant::DEFAULT, &ids).await?;
    equal(&read, &users.into_iter().map(Some).collect(), "the users")?;
    let listed = f.store.tenants.attribute_names(&Tenant::DEFAULT, "", 100).await?;
    equal(&listed.len(), &42, "names")
}
