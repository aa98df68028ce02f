//! Tenants and keys that must stay apart, and spellings that must collide.

use polynym_directory::{
    ConflictPolicy, Consistency, Error, Mutation, MutationKind, MutationReport, State, Update,
    User, UserChange,
};

use crate::fixture::assertions::{equal, refused, taken};
use crate::fixture::decoded;
use crate::fixture::factory::Failure;
use crate::fixture::{Fixture, create, draft, holding, key, link, replace, tenant, unlink};

async fn create_in(f: &Fixture, name: &str, names: &[&str]) -> Result<User, Failure> {
    Ok(f.mutate(Mutation { tenant: tenant(name)?, ..f.creation(names)? }).await?)
}

async fn owner_in(f: &Fixture, tenant: &str, name: &str) -> Result<Option<User>, Failure> {
    let keys = [key(tenant, name)?];
    Ok(decoded::owners(&f.store, &keys, Consistency::Latest).await?.into_iter().next().flatten())
}

pub async fn tenants_share_nothing(f: Fixture) -> Result<(), Failure> {
    let names = ["email:joe@example.com", "handle:joe"];
    let a = create_in(&f, "a", &names).await?;
    let b = create_in(&f, "a-b", &names).await?;
    f.free(&names).await?;
    for name in names {
        equal(&owner_in(&f, "a", name).await?, &Some(a.clone()), "the owner in tenant a")?;
        equal(&owner_in(&f, "a-b", name).await?, &Some(b.clone()), "the owner in tenant a-b")?;
        equal(&owner_in(&f, "b", name).await?, &None, "the owner in tenant b")?;
    }

    equal(
        &decoded::users(&f.store, &tenant("a")?, &[a.id, b.id]).await?,
        &vec![Some(a.clone()), None],
        "users of tenant a",
    )?;
    let gone = f.mutation(b.id, unlink("handle:joe")?);
    f.mutate(Mutation { tenant: tenant("a-b")?, ..gone }).await?;
    equal(
        &owner_in(&f, "a-b", "handle:joe").await?,
        &None,
        "the owner in tenant a-b after the unlink",
    )?;

    equal(
        &owner_in(&f, "a", "handle:joe").await?,
        &Some(a),
        "the owner in tenant a after another's unlink",
    )
}

pub async fn changes_stay_in_their_tenant(f: Fixture) -> Result<(), Failure> {
    let user = f.create(&["email:joe@example.com"]).await?;
    let changes = [
        UserChange::Update(Update::from_mask(None, "Mallory".to_owned(), Default::default())?),
        link("handle:mallory")?,
        unlink("email:joe@example.com")?,
        replace("email:joe@example.com", "email:mallory@example.com")?,
        UserChange::Verify(draft("email:joe@example.com")?.identifier, None),
    ];
    for change in changes {
        let mutation = Mutation { tenant: tenant("other")?, ..f.mutation(user.id, change) };
        refused(f.mutate(mutation).await, &Error::UserNotFound)?;
    }
    f.has(&user).await?;

    equal(&owner_in(&f, "other", "handle:mallory").await?, &None, "the owner of the refused name")
}

pub async fn lifecycle_changes_stay_in_their_tenant(f: Fixture) -> Result<(), Failure> {
    let (user, other) =
        (f.create(&["handle:joe"]).await?, create_in(&f, "other", &["handle:joe"]).await?);
    let changes = [
        UserChange::Disable,
        UserChange::Enable,
        UserChange::Delete,
        UserChange::Undelete,
        UserChange::Purge,
        UserChange::Merge(other.id, ConflictPolicy::PrimaryWins),
        UserChange::Unmerge(other.id),
        UserChange::Renormalize(draft("handle:joe")?.identifier),
    ];
    for change in changes {
        let mutation = Mutation { tenant: tenant("other")?, ..f.mutation(user.id, change) };
        refused(f.mutate(mutation).await, &Error::UserNotFound)?;
    }

    let stranger = UserChange::Merge(other.id, ConflictPolicy::PrimaryWins);
    refused(f.change(&user, stranger).await, &Error::UserNotFound)?;
    let deleted = f.change(&user, UserChange::Delete).await?;
    let State::Deleted { purge_time, .. } = deleted.state else {
        return Err("it is not deleted".into());
    };

    let expiry = Mutation {
        now: purge_time.into(),
        tenant: tenant("other")?,
        ..f.mutation(user.id, UserChange::Expire)
    };
    equal(
        &f.apply(expiry).await?.report,
        &MutationReport::Nothing,
        "the report of an expiry in another tenant",
    )?;
    let user = f.change(&user, UserChange::Undelete).await?;
    f.change_with(&holding(1), &user, unlink("handle:joe")?).await?;
    let release = MutationKind::ReleaseHold(draft("handle:joe")?.identifier);
    let release = Mutation { tenant: tenant("third")?, ..f.mutation_of(release) };
    refused(f.mutate(release).await, &Error::NotHeld)?;
    let user = f.change(&user, link("handle:joe")?).await?;
    f.has(&user).await?;

    equal(
        &owner_in(&f, "other", "handle:joe").await?,
        &Some(other),
        "the owner in the other tenant",
    )
}

pub async fn a_user_id_is_used_once(f: Fixture) -> Result<(), Failure> {
    let user = f.create(&["handle:first"]).await?;
    for name in ["default", "other"] {
        let again = f.mutation(user.id, create(&["handle:second"])?);
        let again = Mutation { tenant: tenant(name)?, ..again };
        refused(f.mutate(again).await, &Error::Internal("an id was given twice".into()))?;
        equal(&owner_in(&f, name, "handle:second").await?, &None, "the owner of the refused name")?;
    }
    f.has(&user).await
}

/// Tenants and names whose naive concatenation gives equal keys, or keys that are prefixes of each
/// other.
const SIMILAR_KEYS: &[(&str, &str)] = &[
    ("a", "social:p/x"),
    ("a", "social:p/x,y"),
    ("a", "social:p/x:y"),
    ("a", "social:p/x/y"),
    ("a", "social:p/x,"),
    ("a", "social:p/,x"),
    ("a", "social:p/a,email,joe@example.com"),
    ("a", "social:p/a-b,social,p/x"),
    ("a", "social:p/%2C"),
    ("a", "social:p/␀"),
    ("a", "social:p/x\u{2003}"),
    ("a", "social:p/x\u{a0}"),
    ("a", "social:p/x "),
    ("a", "social:p/ x"),
    ("a", "social:p/X"),
    ("a", "social:p/$x.y"),
    ("a", "social:p/é"),
    ("a", "social:p/e\u{301}"),
    ("a", "social:p/\u{fffd}"),
    ("a", "social:p/🙂"),
    ("a", "social:p/\u{10ffff}"),
    ("a", "social:p-x/y"),
    ("a", "social:px/y"),
    ("a", "email:x@p"),
    ("a", "handle:x"),
    ("a", "url:https://p/x"),
    ("a", "url:https://p/x,y"),
    ("a", "url:https://p/x/y"),
    ("a-b", "social:p/x"),
    ("a-b", "handle:x"),
    ("ab", "social:p/x"),
    ("b", "social:p/x"),
    ("default", "social:p/x"),
    ("0", "handle:x"),
    ("social", "social:social/social"),
    ("email", "email:email@email"),
];

pub async fn separators_in_values_keep_keys_apart(f: Fixture) -> Result<(), Failure> {
    let mut users = Vec::new();
    for (tenant, name) in SIMILAR_KEYS {
        users.push(
            create_in(&f, tenant, &[name])
                .await
                .map_err(|error| format!("{tenant}, {name}: {error}"))?,
        );
    }

    for ((tenant, name), user) in SIMILAR_KEYS.iter().zip(users) {
        equal(
            &owner_in(&f, tenant, name).await?,
            &Some(user),
            &format!("the owner of {name} in {tenant}"),
        )?;
    }

    Ok(())
}

pub async fn spellings_of_one_identifier_collide(f: Fixture) -> Result<(), Failure> {
    let spellings = [
        ("email:Joe@EXAMPLE.com", "email:joe@example.com"),
        ("email:joe@exämple.com", "email:JOE@xn--exmple-cua.com"),
        ("handle:@Ｊoé_99", "handle:jOe\u{301}_99"),
        ("phone/US:(415) 555-2300", "phone:+1 415 555 2300"),
        ("social:GitHub/Ab", "social:github/Ab"),
        ("url:http://example.com/in/joe/?utm_id=b#c", "url:https://EXAMPLE.com:443/in/%6Aoe"),
    ];
    for (first, second) in spellings {
        let owner = f.create(&[first]).await?;
        f.owns(&owner, &[second]).await?;
        let other = f.create(&[]).await?;
        taken(
            f.mutate(f.creation(&["handle:free", second])?).await,
            &owner,
            "user.identities[1].identifier",
        )?;
        taken(f.change(&other, link(second)?).await, &owner, "identifier")?;
        f.free(&["handle:free"]).await?;
        f.has(&owner).await?;
    }

    Ok(())
}
