//! Verified identities that win over those which are not, and what policies say of unlinking.

use std::sync::Arc;

use polynym_directory::{
    Error, Mutation, NewUser, Outcome, Policies, Takeover, Timestamp, User, UserChange,
    Verification,
};

use super::Failure;
use super::assertions::{equal, refused, taken};
use super::fixture::{Fixture, draft, free, identifier, link, replace, unlink};
use super::linking::names;

fn verification() -> Option<Verification> {
    Some(Verification { time: Timestamp::from_millis(5), by: "a letter".to_owned() })
}

/// The link of an identity that is verified.
fn verified_link(name: &str) -> Result<UserChange, Failure> {
    let mut draft = draft(name)?;
    draft.verification = verification();
    Ok(UserChange::Link(draft))
}

/// Carries out a change under a policy by which the verified win.
async fn winning(f: &Fixture, user: &User, change: UserChange) -> Result<Outcome, Error> {
    let policies = Arc::new(Policies { verified_wins: true, ..free() });
    f.store.mutations.mutate(Mutation { policies, ..f.mutation(user.id, change) }).await
}

pub async fn a_verified_identity_takes_the_place_of_another(f: Fixture) -> Result<(), Failure> {
    let loser =
        f.create(&["email:joe@example.com", "handle:loser", "email:loser@example.com"]).await?;
    let winner = f.create(&["handle:winner"]).await?;
    taken(f.change(&winner, verified_link("email:joe@example.com")?).await, &loser, "identifier")?;
    taken(
        winning(&f, &winner, link("email:joe@example.com")?).await.and_then(Outcome::into_user),
        &loser,
        "identifier",
    )?;
    let outcome = winning(&f, &winner, verified_link("email:joe@example.com")?).await?;
    let taken_over = Takeover { winner: winner.id, loser: loser.id };
    equal(&outcome.takeovers, &vec![taken_over], "the takeovers")?;
    let winner = outcome.into_user()?;
    f.is_kept(&winner).await?;
    let left = f.get(loser.id).await?.ok_or("the loser is gone")?;
    equal(
        &names(&left),
        &vec!["handle:loser".to_owned(), "email:loser@example.com".to_owned()],
        "what is left",
    )?;
    equal(&left.identities[1].primary, &true, "whether the mark moved on")?;
    equal(
        &(left.update_time > loser.update_time, left.etag() != loser.etag()),
        &(true, true),
        "what shows the change",
    )?;
    f.is_kept(&left).await?;

    taken(
        winning(&f, &left, verified_link("email:joe@example.com")?)
            .await
            .and_then(Outcome::into_user),
        &winner,
        "identifier",
    )
}

pub async fn a_verified_identity_takes_no_verified_one(f: Fixture) -> Result<(), Failure> {
    let owner = f.create(&["email:joe@example.com"]).await?;
    let owner = f
        .change(&owner, UserChange::Verify(identifier("email:joe@example.com")?, verification()))
        .await?;
    let other = f.create(&["handle:other"]).await?;
    let outcome = winning(&f, &other, verified_link("email:joe@example.com")?)
        .await
        .and_then(Outcome::into_user);
    taken(outcome, &owner, "identifier")?;
    f.is_kept(&owner).await?;
    f.is_kept(&other).await
}

pub async fn a_new_user_takes_from_several(f: Fixture) -> Result<(), Failure> {
    let a = f.create(&["email:a@example.com", "handle:ѕсоре", "social:github/1"]).await?;
    let b = f.create(&["email:b@example.com"]).await?;
    let wanted = ["email:a@example.com", "email:b@example.com", "handle:ѕсоре"];
    let mut identities = wanted.into_iter().map(draft).collect::<Result<Vec<_>, _>>()?;
    identities.iter_mut().for_each(|identity| identity.verification = verification());
    let creation = f.mutation(
        f.ids.next_id(),
        UserChange::Create(NewUser { identities, ..NewUser::default() }),
    );
    let policies = Arc::new(Policies { verified_wins: true, ..free() });
    let outcome = f.store.mutations.mutate(Mutation { policies, ..creation }).await?;
    let mut losers = vec![a.id, b.id];
    losers.sort_unstable();
    let takeovers = outcome.takeovers.clone();
    let winner = outcome.into_user()?;
    let lost = |loser| Takeover { winner: winner.id, loser };
    equal(&takeovers, &losers.into_iter().map(lost).collect(), "the takeovers")?;
    f.is_kept(&winner).await?;
    equal(
        &names(&f.get(a.id).await?.ok_or("gone")?),
        &vec!["social:github/1".to_owned()],
        "what is left of the one",
    )?;
    equal(&names(&f.get(b.id).await?.ok_or("gone")?), &Vec::new(), "what is left of the other")?;
    let confusable = Error::IdentityConfusable { field: "identifier".to_owned() };
    refused(f.change(&a, link("handle:scope")?).await, &confusable)?;

    f.invariants(&[a.id, b.id, winner.id], &wanted.map(str::to_owned)).await.map(drop)
}

pub async fn the_mark_of_the_primary_identity_can_be_moved_and_kept(
    f: Fixture,
) -> Result<(), Failure> {
    let user = f.create(&["email:a@example.com", "email:b@example.com", "handle:joe"]).await?;
    let keep = Policies { keep_primary: true, ..free() };
    refused(
        f.change_under(&keep, &user, unlink("email:a@example.com")?).await,
        &Error::PrimaryIdentity,
    )?;
    let other_kind = replace("email:a@example.com", "phone:+14155552671")?;
    refused(f.change_under(&keep, &user, other_kind).await, &Error::PrimaryIdentity)?;
    f.is_kept(&user).await?;
    let mut marked = draft("email:b@example.com")?;
    marked.primary = true;
    let user = f.change(&user, UserChange::Link(marked)).await?;
    let marks: Vec<bool> = user.identities.iter().map(|identity| identity.primary).collect();
    equal(marks.as_slice(), &[false, true, true], "the marks")?;
    let user = f.change_under(&keep, &user, unlink("email:a@example.com")?).await?;
    // The last of its kind can go: there is nothing that the mark could be kept from.
    let user = f.change_under(&keep, &user, unlink("email:b@example.com")?).await?;
    let user = f.change_under(&keep, &user, unlink("handle:joe")?).await?;

    f.is_kept(&user).await
}

pub async fn the_last_identity_can_be_kept(f: Fixture) -> Result<(), Failure> {
    let keep = Policies { keep_last: true, ..free() };
    let user = f.create(&["email:a@example.com", "handle:joe"]).await?;
    let user = f.change_under(&keep, &user, unlink("email:a@example.com")?).await?;
    refused(f.change_under(&keep, &user, unlink("handle:joe")?).await, &Error::LastIdentity)?;
    f.is_kept(&user).await?;
    f.is_kept(&f.change(&user, unlink("handle:joe")?).await?).await
}
