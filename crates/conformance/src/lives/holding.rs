//! Identifiers that are held for their former owners.

use polynym_directory::{
    Claim, Error, Limits, Mutation, MutationKind, Outcome, Timestamp, User, UserChange,
};

use crate::fixture::assertions::{ensure, equal, refused, taken};
use crate::fixture::factory::Failure;
use crate::fixture::{DAY, Fixture, holding, identifier, link, replace, request, tenant, unlink};

fn held(until: Timestamp, field: &str) -> Error {
    Error::IdentityHeld { until, field: field.to_owned() }
}

/// A user who has unlinked `handle:joe`, another user, and the end of the hold.
async fn held_handle(f: &Fixture) -> Result<(User, User, Timestamp), Failure> {
    let (owner, other) = (f.create(&["handle:joe"]).await?, f.create(&["handle:other"]).await?);
    let until = f.now().plus(10 * DAY);
    let unlinked = f.change_with(&holding(10), &owner, unlink("handle:joe")?).await?;
    Ok((unlinked, other, until))
}

pub async fn an_unlinked_identifier_is_held_for_its_owner(f: Fixture) -> Result<(), Failure> {
    let (owner, other, until) = held_handle(&f).await?;
    f.free(&["handle:joe"]).await?;
    f.has(&owner).await?;
    let claim = f.claim("handle:joe").await?.ok_or("no claim")?;
    equal(
        &(claim.owner, claim.hold, claim.guard),
        &(Some(owner.id), Some(until), false),
        "the claim",
    )?;
    let f = f.reopen().await?;
    refused(f.change(&other, link("handle:joe")?).await, &held(until, "identifier"))?;
    refused(
        f.change(&other, replace("handle:other", "handle:Joe")?).await,
        &held(until, "new_identifier"),
    )?;
    let create = f.creation(&["handle:new", "handle:joe"])?;
    refused(f.mutate(create).await, &held(until, "user.identities[1].identifier"))?;
    f.has(&other).await?;
    let relinked = f.change(&owner, link("handle:joe")?).await?;
    f.has(&relinked).await?;

    taken(f.change(&other, link("handle:joe")?).await, &relinked, "identifier")
}

pub async fn a_hold_ends_to_the_millisecond(f: Fixture) -> Result<(), Failure> {
    let (owner, other, until) = held_handle(&f).await?;
    let at = |millis: i64, user: &User, change| {
        let time = Timestamp::from_millis(until.as_millis() + millis);
        f.mutate(Mutation { now: time.into(), ..f.mutation(user.id, change) })
    };
    refused(at(-1, &other, link("handle:joe")?).await, &held(until, "identifier"))?;
    let winner = at(0, &other, link("handle:joe")?).await?;
    f.has(&winner).await?;
    taken(at(1, &owner, link("handle:joe")?).await, &winner, "identifier")?;
    // A clock that is behind does not revive the hold.
    taken(at(-1, &owner, link("handle:joe")?).await, &winner, "identifier")?;
    f.has(&winner).await?;

    f.has(&owner).await
}

pub async fn an_expired_hold_gives_no_priority(f: Fixture) -> Result<(), Failure> {
    let (owner, other, until) = held_handle(&f).await?;
    f.wait_until(until);
    let relinked = f.change(&owner, link("handle:joe")?).await?;
    f.has(&relinked).await?;
    taken(f.change(&other, link("handle:joe")?).await, &relinked, "identifier")
}

pub async fn a_replaced_identifier_is_held_like_an_unlinked_one(f: Fixture) -> Result<(), Failure> {
    let created = f.create(&["handle:joe", "email:joe@example.com"]).await?;
    let until = f.now().plus(10 * DAY);
    let owner =
        f.change_with(&holding(10), &created, replace("handle:joe", "handle:joseph")?).await?;
    let replaced = f
        .change_with(&holding(10), &owner, replace("email:joe@example.com", "email:j@example.com")?)
        .await?;
    let other = f.create(&["email:joe@example.com"]).await?;
    refused(f.change(&other, link("handle:joe")?).await, &held(until, "identifier"))?;
    let restored =
        f.change_with(&holding(10), &replaced, replace("handle:joseph", "handle:joe")?).await?;
    f.has(&restored).await?;
    ensure(
        f.claim("handle:joseph").await?.is_some_and(|claim| claim.hold.is_some()),
        "the intermediate name is not held",
    )?;

    f.has(&other).await
}

pub async fn policies_do_not_change_existing_holds(f: Fixture) -> Result<(), Failure> {
    let (owner, other, until) = held_handle(&f).await?;
    refused(
        f.change_with(&holding(1), &other, link("handle:joe")?).await,
        &held(until, "identifier"),
    )?;
    f.change(&owner, link("handle:joe")?).await?;
    let later = f.now().plus(20 * DAY);
    f.change_with(&holding(20), &owner, unlink("handle:joe")?).await?;
    f.wait_until(until);
    refused(f.change(&other, link("handle:joe")?).await, &held(later, "identifier"))
}

async fn release(f: &Fixture, name: &str) -> Result<Result<Outcome, Error>, Failure> {
    Ok(f.apply(f.mutation_of(MutationKind::ReleaseHold(identifier(name)?))).await)
}

/// Fails unless a release reports that nothing is held.
async fn expect_not_held(f: &Fixture, name: &str) -> Result<(), Failure> {
    let outcome = release(f, name).await?;
    ensure(matches!(outcome, Err(Error::NotHeld)), format!("a release of {name}: {outcome:?}"))
}

pub async fn a_hold_can_be_released(f: Fixture) -> Result<(), Failure> {
    let (owner, other, until) = held_handle(&f).await?;
    for name in ["handle:other", "handle:nobody", "email:joe@example.com"] {
        expect_not_held(&f, name).await?;
    }

    let send = || {
        Ok::<_, Failure>(Mutation {
            request: request("release", 1),
            ..f.mutation_of(MutationKind::ReleaseHold(identifier("handle:JOE")?))
        })
    };
    equal(&f.apply(send()?).await?.user, &None, "the user in the answer")?;
    f.apply(send()?).await?;
    equal(&f.claim("handle:joe").await?, &None, "the claim")?;
    expect_not_held(&f, "handle:joe").await?;
    let linked = f.change(&other, link("handle:joe")?).await?;
    f.has(&linked).await?;
    f.has(&owner).await?;
    f.change_with(&holding(10), &linked, unlink("handle:joe")?).await?;
    f.wait_until(until.plus(DAY));

    expect_not_held(&f, "handle:joe").await
}

pub async fn ownerless_holds_can_be_released(f: Fixture) -> Result<(), Failure> {
    let (owner, other, _) = held_handle(&f).await?;
    f.apply(f.mutation(owner.id, UserChange::Purge)).await?;
    let nobody = |claim: Option<Claim>| {
        claim.is_some_and(|claim| claim.owner.is_none() && claim.hold.is_some())
    };
    ensure(nobody(f.claim("handle:joe").await?), "a purge ended a hold")?;
    release(&f, "handle:joe").await??;
    f.has(&f.change(&other, link("handle:joe")?).await?).await
}

pub async fn holds_of_a_user_are_limited(f: Fixture) -> Result<(), Failure> {
    let user = f.create(&["handle:a", "handle:b", "handle:c", "handle:d"]).await?;
    let limits = Limits { holds: 2, ..Limits::default() };
    let unlink_with = |name: &str, days| -> Result<Mutation, Failure> {
        let policies = holding(days).into();
        Ok(Mutation { limits, policies, ..f.mutation(user.id, unlink(name)?) })
    };
    f.mutate(unlink_with("handle:a", 1)?).await?;
    let user_after = f.mutate(unlink_with("handle:b", 10)?).await?;
    let too_many = Error::TooMany { what: "identifiers held for it", limit: 2, count: 3 };
    refused(f.mutate(unlink_with("handle:c", 10)?).await, &too_many)?;
    f.has(&user_after).await?;
    f.wait_until(f.now().plus(DAY));
    let user_after = f.mutate(unlink_with("handle:c", 10)?).await?;
    f.has(&user_after).await?;
    let user_after =
        f.mutate(Mutation { limits, ..f.mutation(user.id, link("handle:b")?) }).await?;
    f.has(&user_after).await?;

    f.mutate(unlink_with("handle:d", 10)?).await.map(drop).map_err(Failure::from)
}

pub async fn holds_belong_to_one_tenant(f: Fixture) -> Result<(), Failure> {
    let (_, _, until) = held_handle(&f).await?;
    let elsewhere = Mutation { tenant: tenant("elsewhere")?, ..f.creation(&["handle:joe"])? };
    f.mutate(elsewhere).await?;
    let released = f.mutation_of(MutationKind::ReleaseHold(identifier("handle:joe")?));
    let outcome = f.apply(Mutation { tenant: tenant("elsewhere")?, ..released }).await;
    ensure(matches!(outcome, Err(Error::NotHeld)), "a hold of another tenant was released")?;
    refused(
        f.mutate(f.creation(&["handle:joe"])?).await,
        &held(until, "user.identities[0].identifier"),
    )
}

/// The former owner and many others link a held identifier concurrently: the former owner gets it.
pub async fn the_former_owner_wins_a_race(f: Fixture) -> Result<(), Failure> {
    let (owner, other, until) = held_handle(&f).await?;
    let mut mutations = Vec::new();
    for n in 0..32 {
        mutations.push(f.mutation(other.id, link("handle:joe")?));
        if n == 16 {
            mutations.push(f.mutation(owner.id, link("handle:joe")?));
        }
        mutations.push(f.creation(&["handle:joe"])?);
    }

    let ids: Vec<_> = mutations.iter().filter_map(Mutation::user_id).collect();
    for (id, outcome) in ids.iter().zip(f.all(mutations).await?) {
        match outcome {
            Ok(user) => equal(&(user.id, *id), &(owner.id, owner.id), "the new owner")?,
            Err(Error::IdentityHeld { until: end, .. }) => {
                equal(&end, &until, "the end of the hold")?
            }
            Err(Error::IdentityTaken { owner: by, .. }) => equal(&by, &owner.id, "the owner")?,
            Err(other) => return Err(other.into()),
        }
    }
    let users = f.invariants(&[owner.id, other.id], &["handle:joe".to_owned()]).await?;

    f.owns(&users[0], &["handle:joe"]).await
}
