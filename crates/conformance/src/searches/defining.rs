//! Definitions of attributes: rewriting the users makes the index follow them.

use polynym_directory::{
    AccessPath, AttributeDefinition, DefinitionUpdate, Error, Filter, Limits, Mutation,
    MutationKind, MutationReport, NewUser, Policies, PolicyUpdate, Tenant, TenantChange, Timestamp,
    Update, User, UserChange, Value, ValueType, View,
};
use polynym_identifier::Rules;

use crate::fixture::assertions::{ensure, equal};
use crate::fixture::factory::Failure;
use crate::fixture::{Fixture, no_holds};

const UNINDEXED: AttributeDefinition = AttributeDefinition {
    indexed: false,
    value_type: None,
    evidence: false,
    find: false,
    index_change: None,
};

fn path(text: &str) -> Result<AccessPath, Failure> {
    Ok(Filter::parse(text, &[Rules::PRESENT])?.access_paths().remove(0))
}

/// Defines the attribute `bio`. Returns the new policies of the tenant and their time.
async fn define(
    f: &Fixture,
    definition: AttributeDefinition,
) -> Result<(Policies, Timestamp), Failure> {
    let definitions = [("bio".to_owned(), definition)].into();
    let update = PolicyUpdate {
        attributes: DefinitionUpdate { replace: false, definitions },
        ..PolicyUpdate::default()
    };
    let mutation = f.mutation_of(MutationKind::Tenant(TenantChange::Set(update)));
    let time = mutation.now.time;
    match f.apply(mutation).await?.report {
        MutationReport::Tenant(tenant) => {
            let holds = Default::default();
            Ok((Policies { holds, ..tenant.policies.clone() }, time))
        }
        other => Err(format!("a change of a tenant reports {other:?}").into()),
    }
}

async fn create(f: &Fixture, policies: &Policies, bio: &str) -> Result<User, Failure> {
    let attributes = [
        ("bio".to_owned(), Value::String(bio.to_owned())),
        ("team".to_owned(), Value::List(vec!["a".to_owned(), "b".to_owned()])),
    ];
    let new = NewUser { attributes: attributes.into(), ..NewUser::default() };
    let mutation = f.mutation(f.ids.next_id(), UserChange::Create(new));
    Ok(f.mutate(Mutation { policies: policies.clone().into(), ..mutation }).await?)
}

async fn reindex(f: &Fixture, policies: &Policies, users: &[&User]) -> Result<(), Failure> {
    for user in users {
        let mutation = f.mutation(user.id, UserChange::Reindex);
        f.apply(Mutation { policies: policies.clone().into(), ..mutation }).await?;
        f.has(user).await?;
    }
    Ok(())
}

async fn finish(f: &Fixture, since: Timestamp) -> Result<Policies, Failure> {
    let kind = MutationKind::Tenant(TenantChange::FinishIndexChanges(since));
    f.apply(f.mutation_of(kind)).await?;
    let tenant = f.store.tenants.tenant(&Tenant::DEFAULT).await?.ok_or("no tenant")?;
    Ok(tenant.policies)
}

pub async fn an_index_follows_the_definition(f: Fixture) -> Result<(), Failure> {
    let count = async |text: &str| -> Result<usize, Failure> {
        let path = path(text)?;
        let found = f.store.search.search(&Tenant::DEFAULT, &path, None, 10, View::Full).await?;
        equal(&f.store.search.probe(&Tenant::DEFAULT, &path, 10).await?, &found.users.len(), text)?;
        Ok(found.users.len())
    };
    let plain = no_holds();
    // Creates the tenant.
    define(&f, AttributeDefinition::default()).await?;
    let before = create(&f, &plain, "x").await?;
    let (unindexed, since) = define(&f, UNINDEXED).await?;
    ensure(unindexed.index_change() == Some(since), "the change is not recorded")?;
    let during = create(&f, &unindexed, "x").await?;
    equal(&count("attributes.bio = x").await?, &1, "users in the index before it is changed")?;
    reindex(&f, &unindexed, &[&before, &during]).await?;
    equal(&count("attributes.bio = x").await?, &0, "users in the index without the attribute")?;
    equal(&count("attributes.team = a").await?, &2, "users with another attribute")?;

    let later = Timestamp::from_millis(since.as_millis() - 1);
    ensure(finish(&f, later).await?.index_change().is_some(), "an older change ended a newer one")?;
    let unindexed = finish(&f, since).await?;
    equal(&unindexed.index_change(), &None, "the finished change")?;
    ensure(!unindexed.indexes("bio"), "the definition is gone")?;
    let attributes = [("bio".to_owned(), Value::String("y".to_owned()))].into();
    let update = UserChange::Update(Update::from_mask(None, String::new(), attributes)?);
    let updated = f.change_with(&unindexed, &during, update).await?;
    equal(&count("attributes.bio:*").await?, &0, "users in the index after an update")?;

    let (indexed, since) = define(&f, AttributeDefinition::default()).await?;
    reindex(&f, &indexed, &[&before, &updated]).await?;
    equal(&count("attributes.bio = x").await?, &1, "users in the index again")?;
    equal(&count("attributes.bio = y").await?, &1, "users in the index with the present value")?;
    equal(&finish(&f, since).await?, &Policies::default(), "policies without a definition")?;
    f.apply(f.mutation(before.id, UserChange::Purge)).await?;
    equal(&count("attributes.bio = x").await?, &0, "users in the index after a purge")
}

pub async fn attribute_types_are_enforced(f: Fixture) -> Result<(), Failure> {
    let typed = AttributeDefinition {
        value_type: Some(ValueType::String),
        ..AttributeDefinition::default()
    };
    let (policies, _) = define(&f, typed).await?;
    let joe = create(&f, &policies, "x").await?;
    let wrong = [("bio".to_owned(), Value::Int(1))].into();
    let update = UserChange::Update(Update::from_mask(None, String::new(), wrong)?);
    let outcome = f.change_with(&policies, &joe, update.clone()).await;
    ensure(matches!(outcome, Err(Error::Invalid { .. })), format!("{outcome:?}"))?;
    f.has(&joe).await?;
    f.change(&joe, update).await.map(drop).map_err(Into::into)
}

pub async fn indexed_values_are_limited(f: Fixture) -> Result<(), Failure> {
    let items = |n: usize| Value::List(vec!["a".to_owned(); n]);
    let new = |n: usize| NewUser {
        attributes: [("bio".to_owned(), items(n)), ("b".to_owned(), items(1))].into(),
        ..NewUser::default()
    };
    let create = |n: usize, policies: &Policies| {
        let mutation = f.mutation(f.ids.next_id(), UserChange::Create(new(n)));
        let limits = Limits { elements: 3, ..Limits::default() };
        f.mutate(Mutation { limits, policies: policies.clone().into(), ..mutation })
    };
    let free = no_holds();
    create(2, &free).await?;
    let outcome = create(3, &free).await;
    ensure(matches!(outcome, Err(Error::TooMany { limit: 3, .. })), format!("{outcome:?}"))?;
    let (unindexed, _) = define(&f, UNINDEXED).await?;
    create(3, &unindexed).await?;
    Ok(())
}
