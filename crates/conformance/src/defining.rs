//! Definitions of attributes: an index follows them once users are stored again.

use polynym_directory::search::{Filter, Lead};
use polynym_directory::{
    AttributeDefinition, DefinitionUpdate, Error, Limits, Mutation, MutationKind, MutationReport,
    NewUser, Policies, PolicyUpdate, Tenant, TenantChange, Timestamp, Update, User, UserChange,
    Value, ValueType, View,
};
use polynym_identifier::Rules;

use super::Failure;
use super::assertions::{ensure, equal};
use super::fixture::Fixture;

const UNINDEXED: AttributeDefinition =
    AttributeDefinition { indexed: false, value_type: None, index_change: None };

fn lead(text: &str) -> Result<Lead, Failure> {
    Ok(Filter::parse(text, &[Rules::PRESENT])?.leads().remove(0))
}

/// Defines the attribute `bio`; the policies of the tenant after that, and when they were set.
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
    let time = mutation.time;
    match f.store.mutations.mutate(mutation).await?.report {
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
        f.store
            .mutations
            .mutate(Mutation { policies: policies.clone().into(), ..mutation })
            .await?;
        f.is_kept(user).await?;
    }
    Ok(())
}

async fn finish(f: &Fixture, since: Timestamp) -> Result<Policies, Failure> {
    let kind = MutationKind::Tenant(TenantChange::FinishIndexChanges(since));
    f.store.mutations.mutate(f.mutation_of(kind)).await?;
    let tenant = f.store.tenants.tenant(&Tenant::DEFAULT).await?.ok_or("no tenant")?;
    Ok(tenant.policies)
}

pub async fn an_index_follows_the_definition(f: Fixture) -> Result<(), Failure> {
    let count = async |text: &str| -> Result<usize, Failure> {
        let lead = lead(text)?;
        let found = f.store.search.search(&Tenant::DEFAULT, &lead, None, 10, View::Full).await?;
        equal(&f.store.search.probe(&Tenant::DEFAULT, &lead, 10).await?, &found.len(), text)?;
        Ok(found.len())
    };
    let plain = super::fixture::free();
    // Makes the tenant.
    define(&f, AttributeDefinition::default()).await?;
    let before = create(&f, &plain, "x").await?;
    let (unindexed, since) = define(&f, UNINDEXED).await?;
    ensure(unindexed.index_change() == Some(since), "a change that is noted")?;
    let during = create(&f, &unindexed, "x").await?;
    equal(&count("attributes.bio = x").await?, &1, "users in the index before it is changed")?;
    reindex(&f, &unindexed, &[&before, &during]).await?;
    equal(&count("attributes.bio = x").await?, &0, "users in the index without the attribute")?;
    equal(&count("attributes.team = a").await?, &2, "users with another attribute")?;

    let later = Timestamp::from_millis(since.as_millis() - 1);
    ensure(finish(&f, later).await?.index_change().is_some(), "an older change ends no newer one")?;
    let unindexed = finish(&f, since).await?;
    equal(&unindexed.index_change(), &None, "the change that was made")?;
    ensure(!unindexed.indexes("bio"), "the definition stays")?;
    let attributes = [("bio".to_owned(), Value::String("y".to_owned()))].into();
    let update = UserChange::Update(Update::from_mask(None, String::new(), attributes)?);
    let during = f.change_under(&unindexed, &during, update).await?;
    equal(&count("attributes.bio:*").await?, &0, "users in the index after an update")?;

    let (indexed, since) = define(&f, AttributeDefinition::default()).await?;
    reindex(&f, &indexed, &[&before, &during]).await?;
    equal(&count("attributes.bio = x").await?, &1, "users in the index again")?;
    equal(&count("attributes.bio = y").await?, &1, "users in the index with what they have now")?;
    equal(&finish(&f, since).await?, &Policies::default(), "policies without a definition")?;
    f.store.mutations.mutate(f.mutation(before.id, UserChange::Purge)).await?;
    equal(&count("attributes.bio = x").await?, &0, "users in the index after a purge")
}

pub async fn values_of_a_defined_type_are_taken(f: Fixture) -> Result<(), Failure> {
    let typed = AttributeDefinition {
        value_type: Some(ValueType::String),
        ..AttributeDefinition::default()
    };
    let (policies, _) = define(&f, typed).await?;
    let joe = create(&f, &policies, "x").await?;
    let wrong = [("bio".to_owned(), Value::Int(1))].into();
    let update = UserChange::Update(Update::from_mask(None, String::new(), wrong)?);
    let outcome = f.change_under(&policies, &joe, update.clone()).await;
    ensure(matches!(outcome, Err(Error::Invalid { .. })), format!("{outcome:?}"))?;
    f.is_kept(&joe).await?;
    f.change(&joe, update).await.map(drop).map_err(Into::into)
}

pub async fn values_to_be_found_by_are_limited(f: Fixture) -> Result<(), Failure> {
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
    let free = super::fixture::free();
    create(2, &free).await?;
    let outcome = create(3, &free).await;
    ensure(matches!(outcome, Err(Error::TooMany { limit: 3, .. })), format!("{outcome:?}"))?;
    let (unindexed, _) = define(&f, UNINDEXED).await?;
    create(3, &unindexed).await?;
    Ok(())
}
