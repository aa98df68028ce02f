//! Takeovers by verified identities, and policies that forbid unlinking.

use std::sync::Arc;

use polynym_directory::{
    Error, EventKind, Mutation, NewIdentity, NewUser, Now, Outcome, Policies, Takeover, Timestamp,
    User, UserChange, Verification,
};

use crate::fixture::assertions::{equal, refused, taken};
use crate::fixture::factory::Failure;
use crate::fixture::{
    DAY, Fixture, draft, identifier, key, link, lists, names, no_holds, replace, unlink,
};

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

const PHONE: &str = "phone:+14155552300";
const EMAIL: &str = "email:joe@example.com";

/// Policies under which a verification protects a phone for 90 days.
fn phones_lapse() -> Arc<Policies> {
    Arc::new(Policies { phone_takeover_after: 90 * DAY, ..no_holds() })
}

/// The link of an identity that is verified at `time`, under these policies.
fn link_verified_at(
    f: &Fixture,
    user: &User,
    name: &str,
    time: Timestamp,
) -> Result<Mutation, Failure> {
    let verification = Some(Verification { time, by: "a code".to_owned() });
    let change = UserChange::Link(NewIdentity { verification, ..draft(name)? });
    Ok(Mutation { policies: phones_lapse(), ..f.mutation(user.id, change) })
}

/// A user who has verified a phone and an email now.
async fn verified_owner(f: &Fixture) -> Result<User, Failure> {
    let mut owner = f.create(&[PHONE, EMAIL]).await?;
    for name in [PHONE, EMAIL] {
        owner = verify_now(f, &owner, name).await?;
    }
    Ok(owner)
}

async fn verify_now(f: &Fixture, user: &User, name: &str) -> Result<User, Failure> {
    let verification = Some(Verification { time: f.now(), by: "a code".to_owned() });
    Ok(f.change(user, UserChange::Verify(identifier(name)?, verification)).await?)
}

pub async fn an_old_phone_goes_to_the_user_who_verifies_it(f: Fixture) -> Result<(), Failure> {
    let owner = verified_owner(&f).await?;
    let winner = f.create(&["handle:winner"]).await?;
    let begun = f.now();
    f.wait_until(begun.plus(89 * DAY));
    let early = f.mutate(link_verified_at(&f, &winner, PHONE, f.now())?).await;
    taken(early, &owner, "identifier")?;

    f.wait_until(begun.plus(90 * DAY));
    let link = || link_verified_at(&f, &winner, PHONE, f.now());
    let unverified = UserChange::Link(draft(PHONE)?);
    for refused in [
        link_verified_at(&f, &winner, PHONE, begun.plus(89 * DAY))?,
        link_verified_at(&f, &winner, EMAIL, f.now())?,
        Mutation { policies: phones_lapse(), ..f.mutation(winner.id, unverified) },
        Mutation { policies: Arc::new(no_holds()), ..link()? },
        Mutation { now: Now { clock_uncertain: true, ..Now::certain(f.now()) }, ..link()? },
    ] {
        taken(f.mutate(refused).await, &owner, "identifier")?;
    }
    f.apply(Mutation { dry_run: true, ..link()? }).await?;
    f.has(&owner).await?;
    f.has(&winner).await?;

    let outcome = f.apply(link()?).await?;
    let taken_over = Takeover { winner: winner.id, loser: owner.id };
    equal(&outcome.takeovers, &vec![taken_over], "the takeovers")?;
    let winner = outcome.into_user()?;
    f.has(&winner).await?;
    lists(&winner, &["handle:winner", PHONE])?;
    let left = f.get(owner.id).await?.ok_or("the former owner is gone")?;
    lists(&left, &[EMAIL])?;
    f.has(&left).await?;
    phone_has_a_history(&f, &owner, &winner).await
}

/// Fails unless both users have the event of the takeover, and the ownership has ended.
async fn phone_has_a_history(f: &Fixture, owner: &User, winner: &User) -> Result<(), Failure> {
    for (user, other, kind) in
        [(winner, owner, EventKind::IdentityLinked), (owner, winner, EventKind::IdentityTakenOver)]
    {
        let newest = f.events(user).await?.into_iter().next().ok_or("no event")?;
        equal(&(newest.kind, newest.changes.other_user), &(kind, Some(other.id)), "the event")?;
    }
    let ended = f.store.histories.ended_ownerships(&[key("default", PHONE)?]).await?;
    let former = ended[0].0.first().ok_or("no former owner")?;
    equal(&former.user, &Some(owner.id), "the former owner")?;
    let verification = former.identity.as_ref().map(|identity| &identity.verification);
    equal(&verification, &Some(&owner.identities[0].verification), "the former verification")
}

pub async fn a_renewed_verification_keeps_a_phone(f: Fixture) -> Result<(), Failure> {
    let owner = verified_owner(&f).await?;
    let other = f.create(&["handle:other"]).await?;
    f.wait_until(f.now().plus(60 * DAY));
    let owner = verify_now(&f, &owner, PHONE).await?;
    f.wait_until(f.now().plus(60 * DAY));
    let early = f.mutate(link_verified_at(&f, &other, PHONE, f.now())?).await;
    taken(early, &owner, "identifier")?;

    // One that is not verified is lost at once.
    let owner = f.change(&owner, UserChange::Verify(identifier(PHONE)?, None)).await?;
    let winner = f.mutate(link_verified_at(&f, &other, PHONE, f.now())?).await?;
    f.has(&winner).await?;
    lists(&f.get(owner.id).await?.ok_or("the former owner is gone")?, &[EMAIL])
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
