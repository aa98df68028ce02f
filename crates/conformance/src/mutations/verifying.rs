//! Takeovers by verified identities, and policies that forbid unlinking.

use std::sync::Arc;

use polynym_directory::{
    Error, Mutation, NewUser, Outcome, Policies, Takeover, Timestamp, User, UserChange,
    Verification,
};

use crate::fixture::assertions::{equal, refused, taken};
use crate::fixture::factory::Failure;
use crate::fixture::{Fixture, draft, identifier, link, lists, names, no_holds, replace, unlink};

fn verification() -> Option<Verification> {
    Some(Verification { time: Timestamp::from_millis(5), by: "a letter".to_owned() })
}

/// The link of an identity that is verified.
fn verified_link(name: &str) -> Result<UserChange, Failure> {
    let mut draft = draft(name)?;
    draft.verification = verification();
    Ok(UserChange::Link(draft))
}

/// Executes a change with the policy `verified_wins`.
async fn change_verified_wins(
    f: &Fixture,
    user: &User,
    change: UserChange,
) -> Result<Outcome, Error> {
    let policies = Arc::new(Policies { verified_wins: true, ..no_holds() });
    f.apply(Mutation { policies, ..f.mutation(user.id, change) }).await
}

pub async fn a_verified_link_takes_over_an_unverified_identity(f: Fixture) -> Result<(), Failure> {
    let loser =
        f.create(&["email:joe@example.com", "handle:loser", "email:loser@example.com"]).await?;
    let winner = f.create(&["handle:winner"]).await?;
    taken(f.change(&winner, verified_link("email:joe@example.com")?).await, &loser, "identifier")?;
    taken(
        change_verified_wins(&f, &winner, link("email:joe@example.com")?)
            .await
            .and_then(Outcome::into_user),
        &loser,
        "identifier",
    )?;
    let outcome =
        change_verified_wins(&f, &winner, verified_link("email:joe@example.com")?).await?;
    let taken_over = Takeover { winner: winner.id, loser: loser.id };
    equal(&outcome.takeovers, &vec![taken_over], "the takeovers")?;
    let winner = outcome.into_user()?;
    f.has(&winner).await?;
    let left = f.get(loser.id).await?.ok_or("the loser is gone")?;
    lists(&left, &["handle:loser", "email:loser@example.com"])?;
    equal(&left.identities[1].primary, &true, "whether another identity is primary")?;
    equal(
        &(left.update_time > loser.update_time, left.etag() != loser.etag()),
        &(true, true),
        "whether time and etag changed",
    )?;
    f.has(&left).await?;

    taken(
        change_verified_wins(&f, &left, verified_link("email:joe@example.com")?)
            .await
            .and_then(Outcome::into_user),
        &winner,
        "identifier",
    )
}

pub async fn a_verified_link_takes_over_no_verified_identity(f: Fixture) -> Result<(), Failure> {
    let created = f.create(&["email:joe@example.com"]).await?;
    let owner = f
        .change(&created, UserChange::Verify(identifier("email:joe@example.com")?, verification()))
        .await?;
    let other = f.create(&["handle:other"]).await?;
    let outcome = change_verified_wins(&f, &other, verified_link("email:joe@example.com")?)
        .await
        .and_then(Outcome::into_user);
    taken(outcome, &owner, "identifier")?;
    f.has(&owner).await?;
    f.has(&other).await
}

pub async fn a_new_user_takes_over_from_several(f: Fixture) -> Result<(), Failure> {
    let a = f.create(&["email:a@example.com", "handle:ѕсоре", "social:github/1"]).await?;
    let b = f.create(&["email:b@example.com"]).await?;
    let wanted = ["email:a@example.com", "email:b@example.com", "handle:ѕсоре"];
    let mut identities = wanted.into_iter().map(draft).collect::<Result<Vec<_>, _>>()?;
    identities.iter_mut().for_each(|identity| identity.verification = verification());
    let creation = f.mutation(
        f.ids.next_id(),
        UserChange::Create(NewUser { identities, ..NewUser::default() }),
    );
    let policies = Arc::new(Policies { verified_wins: true, ..no_holds() });
    let outcome = f.apply(Mutation { policies, ..creation }).await?;
    let mut losers = vec![a.id, b.id];
    losers.sort_unstable();
    let takeovers = outcome.takeovers.clone();
    let winner = outcome.into_user()?;
    let lost = |loser| Takeover { winner: winner.id, loser };
    equal(&takeovers, &losers.into_iter().map(lost).collect(), "the takeovers")?;
    f.has(&winner).await?;
    equal(
        &names(&f.get(a.id).await?.ok_or("gone")?),
        &vec!["social:github/1".to_owned()],
        "the identities of the first",
    )?;
    equal(&names(&f.get(b.id).await?.ok_or("gone")?), &Vec::new(), "the identities of the second")?;
    let confusable = Error::IdentityConfusable { field: "identifier".to_owned() };
    refused(f.change(&a, link("handle:scope")?).await, &confusable)?;

    f.invariants(&[a.id, b.id, winner.id], &wanted.map(str::to_owned)).await.map(drop)
}

pub async fn policies_can_keep_the_primary_identity(f: Fixture) -> Result<(), Failure> {
    let user = f.create(&["email:a@example.com", "email:b@example.com", "handle:joe"]).await?;
    let keep = Policies { keep_primary: true, ..no_holds() };
    refused(
        f.change_with(&keep, &user, unlink("email:a@example.com")?).await,
        &Error::PrimaryIdentity,
    )?;
    let other_kind = replace("email:a@example.com", "phone:+14155552671")?;
    refused(f.change_with(&keep, &user, other_kind).await, &Error::PrimaryIdentity)?;
    f.has(&user).await?;
    let mut marked = draft("email:b@example.com")?;
    marked.primary = true;
    let linked = f.change(&user, UserChange::Link(marked)).await?;
    let marks: Vec<bool> = linked.identities.iter().map(|identity| identity.primary).collect();
    equal(marks.as_slice(), &[false, true, true], "the marks")?;
    let without_a = f.change_with(&keep, &linked, unlink("email:a@example.com")?).await?;
    // The last identity of a kind can be unlinked.
    let without_email = f.change_with(&keep, &without_a, unlink("email:b@example.com")?).await?;
    let emptied = f.change_with(&keep, &without_email, unlink("handle:joe")?).await?;

    f.has(&emptied).await
}

pub async fn policies_can_keep_the_last_identity(f: Fixture) -> Result<(), Failure> {
    let keep = Policies { keep_last: true, ..no_holds() };
    let created = f.create(&["email:a@example.com", "handle:joe"]).await?;
    let user = f.change_with(&keep, &created, unlink("email:a@example.com")?).await?;
    refused(f.change_with(&keep, &user, unlink("handle:joe")?).await, &Error::LastIdentity)?;
    f.has(&user).await?;
    f.has(&f.change(&user, unlink("handle:joe")?).await?).await
}
