//! Identifiers that are held for their former owners.

use polynym_directory::{
    Claim, Error, Limits, Mutation, MutationKind, Outcome, Timestamp, User, UserChange,
};

use super::Failure;
use super::assertions::{ensure, equal, refused, taken};
use super::fixture::{DAY, Fixture, holding, identifier, link, replace, request, tenant, unlink};

fn held(until: Timestamp, field: &str) -> Error {
    Error::IdentityHeld { until, field: field.to_owned() }
}

/// A user who has given up `handle:joe`, another one, and until when the handle is held.
async fn one_held(f: &Fixture) -> Result<(User, User, Timestamp), Failure> {
    let (owner, other) = (f.create(&["handle:joe"]).await?, f.create(&["handle:other"]).await?);
    let until = f.now().plus(10 * DAY);
    let owner = f.change_under(&holding(10), &owner, unlink("handle:joe")?).await?;
    Ok((owner, other, until))
}

pub async fn what_is_given_up_is_held_for_its_owner(f: Fixture) -> Result<(), Failure> {
    let (owner, other, until) = one_held(&f).await?;
    f.free(&["handle:joe"]).await?;
    f.is_kept(&owner).await?;
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
    f.is_kept(&other).await?;
    let owner = f.change(&owner, link("handle:joe")?).await?;
    f.is_kept(&owner).await?;

    taken(f.change(&other, link("handle:joe")?).await, &owner, "identifier")
}

pub async fn a_hold_ends_to_the_millisecond(f: Fixture) -> Result<(), Failure> {
    let (owner, other, until) = one_held(&f).await?;
    let at = |millis: i64, user: &User, change| {
        let time = Timestamp::from_millis(until.as_millis() + millis);
        f.mutate(Mutation { time, ..f.mutation(user.id, change) })
    };
    refused(at(-1, &other, link("handle:joe")?).await, &held(until, "identifier"))?;
    let other = at(0, &other, link("handle:joe")?).await?;
    f.is_kept(&other).await?;
    taken(at(1, &owner, link("handle:joe")?).await, &other, "identifier")?;
    // By a clock that is behind the hold is not over yet; but the identifier is the other's by now.
    taken(at(-1, &owner, link("handle:joe")?).await, &other, "identifier")?;
    f.is_kept(&other).await?;

    f.is_kept(&owner).await
}

pub async fn who_takes_back_after_the_hold_is_one_among_others(f: Fixture) -> Result<(), Failure> {
    let (owner, other, until) = one_held(&f).await?;
    f.wait_until(until);
    let owner = f.change(&owner, link("handle:joe")?).await?;
    f.is_kept(&owner).await?;
    taken(f.change(&other, link("handle:joe")?).await, &owner, "identifier")
}

pub async fn a_replaced_identifier_is_held_like_an_unlinked_one(f: Fixture) -> Result<(), Failure> {
    let owner = f.create(&["handle:joe", "email:joe@example.com"]).await?;
    let until = f.now().plus(10 * DAY);
    let owner =
        f.change_under(&holding(10), &owner, replace("handle:joe", "handle:joseph")?).await?;
    let owner = f
        .change_under(
            &holding(10),
            &owner,
            replace("email:joe@example.com", "email:j@example.com")?,
        )
        .await?;
    let other = f.create(&["email:joe@example.com"]).await?;
    refused(f.change(&other, link("handle:joe")?).await, &held(until, "identifier"))?;
    let owner =
        f.change_under(&holding(10), &owner, replace("handle:joseph", "handle:joe")?).await?;
    f.is_kept(&owner).await?;
    ensure(
        f.claim("handle:joseph").await?.is_some_and(|claim| claim.hold.is_some()),
        "a name in between is not held",
    )?;

    f.is_kept(&other).await
}

pub async fn other_policies_leave_a_hold_as_it_is(f: Fixture) -> Result<(), Failure> {
    let (owner, other, until) = one_held(&f).await?;
    refused(
        f.change_under(&holding(1), &other, link("handle:joe")?).await,
        &held(until, "identifier"),
    )?;
    f.change(&owner, link("handle:joe")?).await?;
    let later = f.now().plus(20 * DAY);
    f.change_under(&holding(20), &owner, unlink("handle:joe")?).await?;
    f.wait_until(until);
    refused(f.change(&other, link("handle:joe")?).await, &held(later, "identifier"))
}

async fn release(f: &Fixture, name: &str) -> Result<Result<Outcome, Error>, Failure> {
    Ok(f.store.mutations.mutate(f.mutation_of(MutationKind::ReleaseHold(identifier(name)?))).await)
}

/// Fails unless there is no hold to end.
async fn not_held(f: &Fixture, name: &str) -> Result<(), Failure> {
    let outcome = release(f, name).await?;
    ensure(
        matches!(outcome, Err(Error::NotHeld)),
        format!("the end of no hold on {name}: {outcome:?}"),
    )
}

pub async fn a_hold_can_be_ended(f: Fixture) -> Result<(), Failure> {
    let (owner, other, until) = one_held(&f).await?;
    for name in ["handle:other", "handle:nobody", "email:joe@example.com"] {
        not_held(&f, name).await?;
    }

    let send = || {
        Ok::<_, Failure>(Mutation {
            request: request("release", 1),
            ..f.mutation_of(MutationKind::ReleaseHold(identifier("handle:JOE")?))
        })
    };
    equal(&f.store.mutations.mutate(send()?).await?.user, &None, "the user in the answer")?;
    f.store.mutations.mutate(send()?).await?;
    equal(&f.claim("handle:joe").await?, &None, "the claim")?;
    not_held(&f, "handle:joe").await?;
    let other = f.change(&other, link("handle:joe")?).await?;
    f.is_kept(&other).await?;
    f.is_kept(&owner).await?;
    f.change_under(&holding(10), &other, unlink("handle:joe")?).await?;
    f.wait_until(until.plus(DAY));

    not_held(&f, "handle:joe").await
}

pub async fn what_is_held_for_nobody_can_be_released(f: Fixture) -> Result<(), Failure> {
    let (owner, other, _) = one_held(&f).await?;
    f.store.mutations.mutate(f.mutation(owner.id, UserChange::Purge)).await?;
    let nobody = |claim: Option<Claim>| {
        claim.is_some_and(|claim| claim.owner.is_none() && claim.hold.is_some())
    };
    ensure(nobody(f.claim("handle:joe").await?), "a purge has ended a hold")?;
    release(&f, "handle:joe").await??;
    f.is_kept(&f.change(&other, link("handle:joe")?).await?).await
}

pub async fn holds_of_a_user_are_limited(f: Fixture) -> Result<(), Failure> {
    let user = f.create(&["handle:a", "handle:b", "handle:c", "handle:d"]).await?;
    let limits = Limits { holds: 2, ..Limits::default() };
    let give_up = |name: &str, days| -> Result<Mutation, Failure> {
        let policies = holding(days).into();
        Ok(Mutation { limits, policies, ..f.mutation(user.id, unlink(name)?) })
    };
    f.mutate(give_up("handle:a", 1)?).await?;
    let kept = f.mutate(give_up("handle:b", 10)?).await?;
    let too_many = Error::TooMany { what: "identifiers held for it", limit: 2, count: 3 };
    refused(f.mutate(give_up("handle:c", 10)?).await, &too_many)?;
    f.is_kept(&kept).await?;
    f.wait_until(f.now().plus(DAY));
    let kept = f.mutate(give_up("handle:c", 10)?).await?;
    f.is_kept(&kept).await?;
    let kept = f.mutate(Mutation { limits, ..f.mutation(user.id, link("handle:b")?) }).await?;
    f.is_kept(&kept).await?;

    f.mutate(give_up("handle:d", 10)?).await.map(drop).map_err(Failure::from)
}

pub async fn what_one_tenant_holds_is_free_in_another(f: Fixture) -> Result<(), Failure> {
    let (_, _, until) = one_held(&f).await?;
    let elsewhere = Mutation { tenant: tenant("elsewhere")?, ..f.creation(&["handle:joe"])? };
    f.mutate(elsewhere).await?;
    let released = f.mutation_of(MutationKind::ReleaseHold(identifier("handle:joe")?));
    let outcome =
        f.store.mutations.mutate(Mutation { tenant: tenant("elsewhere")?, ..released }).await;
    ensure(matches!(outcome, Err(Error::NotHeld)), "a hold of another tenant was ended")?;
    refused(
        f.mutate(f.creation(&["handle:joe"])?).await,
        &held(until, "user.identities[0].identifier"),
    )
}

/// The former owner and many others want it back at once: the former owner gets it, in whatever
/// order they come.
pub async fn among_many_the_former_owner_gets_it_back(f: Fixture) -> Result<(), Failure> {
    let (owner, other, until) = one_held(&f).await?;
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
            Ok(user) => equal(&(user.id, *id), &(owner.id, owner.id), "who got it")?,
            Err(Error::IdentityHeld { until: end, .. }) => {
                equal(&end, &until, "the end of the hold")?
            }
            Err(Error::IdentityTaken { owner: by, .. }) => equal(&by, &owner.id, "who has it")?,
            Err(other) => return Err(other.into()),
        }
    }
    let users = f.invariants(&[owner.id, other.id], &["handle:joe".to_owned()]).await?;

    f.owns(&users[0], &["handle:joe"]).await
}
