//! Moving an identity from one user to another.

use polynym_directory::{
    Error, Identity, Invalid, Mutation, Policies, User, UserChange, Verification,
};

use super::merging::{conflicting_users, merge};
use crate::fixture::assertions::{ensure, equal, refused};
use crate::fixture::factory::Failure;
use crate::fixture::{Fixture, draft, holding, identifier, no_holds, request, unlink};

fn take(from: &User, text: &str) -> Result<UserChange, Failure> {
    Ok(UserChange::Move(from.id, identifier(text)?))
}

pub async fn a_moved_identity_has_its_new_owner_at_once(f: Fixture) -> Result<(), Failure> {
    let (to, from) = conflicting_users(&f).await?;
    let verification = Some(Verification { time: f.now(), by: "a letter".to_owned() });
    let name = "handle:ѕсоре";
    let user = f.change(&from, UserChange::Link(draft(name)?)).await?;
    let from = f.change(&user, UserChange::Verify(identifier(name)?, verification.clone())).await?;

    let outcome = f.change_with(&holding(30), &to, take(&from, name)?).await?;
    let is = |identity: &&Identity| identity.identifier.to_string() == name;
    let moved = outcome.identities.iter().find(is).ok_or("it was not moved")?;
    equal(&moved.verification, &verification, "the verification")?;
    f.has(&outcome).await?;
    let from = f.get(from.id).await?.ok_or("the former owner is gone")?;
    ensure(!from.identities.iter().any(|identity| is(&identity)), "the former owner still has it")?;
    f.has(&from).await?;

    // Its guard moved along, and no former owner has a hold on it.
    let scope = Error::IdentityConfusable { field: "identifier".to_owned() };
    refused(f.mutate(f.mutation(from.id, UserChange::Link(draft("handle:scope")?))).await, &scope)?;
    f.change(&outcome, unlink(name)?).await?;

    f.change(&from, UserChange::Link(draft("handle:scope")?)).await.map(drop).map_err(Failure::from)
}

pub async fn bad_moves_are_refused(f: Fixture) -> Result<(), Failure> {
    let (to, from) = conflicting_users(&f).await?;
    let try_to = |user: &User, change: UserChange| f.mutate(f.mutation(user.id, change));
    let itself =
        Error::invalid(Invalid::UserId, "from_user_id", "is the user who gets the identity");
    refused(try_to(&to, take(&to, "handle:joe")?).await, &itself)?;
    refused(try_to(&to, take(&from, "handle:nobody")?).await, &Error::NotOwned)?;

    let only = f.create(&["handle:only"]).await?;
    let policies = Policies { keep_last: true, ..no_holds() }.into();
    let last = Mutation { policies, ..f.mutation(to.id, take(&only, "handle:only")?) };
    refused(f.mutate(last).await, &Error::LastIdentity)?;

    f.change(&to, merge(&from)).await?;
    let merged = Error::UserMerged { user: from.id, into: to.id };
    refused(try_to(&only, take(&from, "handle:only")?).await, &merged)?;

    f.has(&only).await
}

pub async fn a_repeated_move_happens_once(f: Fixture) -> Result<(), Failure> {
    let (to, from) =
        (f.create(&["handle:to"]).await?, f.create(&["handle:from", "handle:moves"]).await?);
    let mutation = Mutation {
        request: request("moves", 1),
        ..f.mutation(to.id, take(&from, "handle:moves")?)
    };
    let first = f.apply(mutation.clone()).await?.into_user()?;
    f.change(&first, unlink("handle:moves")?).await?;
    let again = f.apply(mutation).await?.into_user()?;
    equal(&again.identities.len(), &1, "identities after a repeated move")
}
