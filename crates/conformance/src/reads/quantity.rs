//! Limits, batches and large users.

use std::collections::BTreeMap;

use polynym_directory::{
    Consistency, Error, Limits, Mutation, NewUser, Tenant, Update, User, UserChange, Value,
};
use polynym_identifier::IdentityKey;

use crate::fixture::assertions::{equal, refused};
use crate::fixture::decoded;
use crate::fixture::factory::Failure;
use crate::fixture::{Fixture, draft, key, link, replace, unlink};

fn numbered(count: usize) -> BTreeMap<String, Value> {
    (0..count).map(|n| (format!("a{n:03}"), Value::Int(n as i64))).collect()
}

/// Changes `user` under this limit of identities and attributes.
async fn limited(
    f: &Fixture,
    user: &User,
    limit: usize,
    change: UserChange,
) -> Result<User, Error> {
    let limits = Limits { identities: limit, attributes: limit, ..Limits::default() };
    f.mutate(Mutation { limits, ..f.mutation(user.id, change) }).await
}

const fn too_many(what: &'static str, limit: usize, count: usize) -> Error {
    Error::TooMany { what, limit, count }
}

pub async fn identities_are_limited(f: Fixture) -> Result<(), Failure> {
    let limits = Limits { identities: 2, ..Limits::default() };
    let creation = Mutation { limits, ..f.creation(&["handle:a", "handle:b", "handle:c"])? };
    refused(f.mutate(creation).await, &too_many("identities", 2, 3))?;
    f.free(&["handle:a", "handle:b", "handle:c"]).await?;
    let user = f.mutate(Mutation { limits, ..f.creation(&["handle:a", "handle:b"])? }).await?;
    refused(limited(&f, &user, 2, link("handle:c")?).await, &too_many("identities", 2, 3))?;
    equal(
        &limited(&f, &user, 2, link("handle:b")?).await?,
        &user,
        "a repeated link of a user at the limit",
    )?;
    f.free(&["handle:c"]).await?;
    f.has(&user).await?;
    let replaced = limited(&f, &user, 2, replace("handle:b", "handle:c")?).await?;

    f.has(&replaced).await
}

pub async fn attributes_are_limited(f: Fixture) -> Result<(), Failure> {
    let set =
        |count| Update::from_mask(None, String::new(), numbered(count)).map(UserChange::Update);
    let user = f.create(&["handle:a"]).await?;
    refused(limited(&f, &user, 2, set(3)?).await, &too_many("attributes", 2, 3))?;
    f.has(&user).await?;
    let full = limited(&f, &user, 2, set(2)?).await?;
    f.has(&full).await?;
    let add =
        Update::from_mask(Some(&["attributes.a009".to_owned()]), String::new(), numbered(10))?;
    refused(limited(&f, &full, 2, UserChange::Update(add)).await, &too_many("attributes", 2, 3))?;
    f.has(&full).await
}

pub async fn a_lowered_limit_only_stops_growth(f: Fixture) -> Result<(), Failure> {
    let identities =
        ["handle:a", "handle:b", "handle:c"].map(draft).into_iter().collect::<Result<_, _>>()?;
    let draft = NewUser { identities, attributes: numbered(3), ..NewUser::default() };
    let user = f.change_new(UserChange::Create(draft)).await?;
    refused(limited(&f, &user, 1, link("handle:d")?).await, &too_many("identities", 1, 4))?;
    let named = limited(
        &f,
        &user,
        1,
        UserChange::Update(Update::from_mask(None, "Joe".to_owned(), numbered(3))?),
    )
    .await?;
    let replaced = limited(&f, &named, 1, replace("handle:a", "handle:d")?).await?;
    let unlinked = limited(&f, &replaced, 1, unlink("handle:b")?).await?;
    let reduced = limited(
        &f,
        &unlinked,
        1,
        UserChange::Update(Update::from_mask(None, String::new(), numbered(2))?),
    )
    .await?;
    refused(limited(&f, &reduced, 1, link("handle:b")?).await, &too_many("identities", 1, 3))?;
    f.free(&["handle:a", "handle:b"]).await?;

    f.has(&reduced).await
}

/// Keys in a batch; every fourth has no owner.
const BATCH_KEYS: usize = 1_000;

pub async fn a_batch_is_answered_in_order(f: Fixture) -> Result<(), Failure> {
    let creations = (0..50)
        .map(|n| f.creation(&[&format!("email:user{n}@example.com"), &format!("handle:user{n}")]));
    let users = f
        .all(creations.collect::<Result<_, _>>()?)
        .await?
        .into_iter()
        .collect::<Result<Vec<_>, _>>()?;
    let item = |n: usize| -> Result<(IdentityKey, Option<User>), Failure> {
        let (user, kind) = (n * 7 % users.len(), n % 4);
        let name = match kind {
            0 => format!("handle:nobody{n}"),
            1 => format!("handle:user{user}"),
            _ => format!("email:user{user}@example.com"),
        };
        Ok((key("default", &name)?, users.get(user).filter(|_| kind > 0).cloned()))
    };
    let (keys, wanted): (Vec<_>, Vec<_>) =
        (0..BATCH_KEYS).map(item).collect::<Result<Vec<_>, _>>()?.into_iter().unzip();
    let found = decoded::owners(&f.store, &keys, Consistency::Latest).await?;
    equal(&found, &wanted, "the owners of 1,000 keys")?;
    let ids: Vec<_> = (0..BATCH_KEYS)
        .map(|n| if n % 4 == 0 { f.ids.next_id() } else { users[n * 7 % 50].id })
        .collect();
    let wanted: Vec<_> =
        (0..BATCH_KEYS).map(|n| users.get(n * 7 % 50).filter(|_| n % 4 > 0).cloned()).collect();

    equal(
        &decoded::users(&f.store, &Tenant::DEFAULT, &ids).await?,
        &wanted,
        "the users of 1,000 ids",
    )
}

/// A user at the default limits of entries and near the limit of bytes.
fn large(f: &Fixture, n: usize) -> Result<Mutation, Failure> {
    let identity = |i| draft(&format!("social:provider/{n}-{i}-{}", "ü".repeat(120)));
    let mut attributes: BTreeMap<String, Value> =
        (0..199).map(|i: usize| (format!("a{i:063}"), Value::String("字".repeat(300)))).collect();
    attributes.insert("list".to_owned(), Value::List(vec!["x".repeat(2_048); 100]));
    let identities = (0..100).map(identity).collect::<Result<_, _>>()?;
    let draft = NewUser { display_name: "𝄞".repeat(256), identities, attributes };
    Ok(f.mutation(f.ids.next_id(), UserChange::Create(draft)))
}

pub async fn large_users_come_back(f: Fixture) -> Result<(), Failure> {
    let creations = (0..4).map(|n| large(&f, n)).collect::<Result<_, _>>()?;
    for created in f.all(creations).await? {
        let user = created?;
        equal(&user.identities.len(), &100, "identities")?;
        equal(&f.get(user.id).await?, &Some(user.clone()), "a large user")?;
        let ids: Vec<_> =
            user.identities.iter().map(|identity| identity.identifier.to_string()).collect();
        f.owns(&user, &[&ids[0], &ids[99]]).await?;
        let changed = f.change(&user, unlink(&ids[50])?).await?;
        f.free(&[&ids[50]]).await?;
        equal(&f.get(changed.id).await?, &Some(changed), "a large user after a change")?;
    }

    Ok(())
}
