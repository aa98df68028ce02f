//! Handles that look like others (UTS 39).

use polynym_directory::{Error, Mutation, Policies, User};
use polynym_identifier::{Guard, IdentityKey};

use crate::fixture::assertions::{ensure, equal, refused};
use crate::fixture::factory::Failure;
use crate::fixture::{
    DAY, Fixture, holding, identifier, key, link, no_holds, replace, tenant, unlink,
};

/// Rows of handles that are confusable with each other.
const CONFUSABLE: [&[&str]; 4] = [
    // Latin, then Cyrillic.
    &["handle:scope", "handle:ѕсоре"],
    // The same, and the first is the prototype of both.
    &["handle:ëxo", "handle:ёхо"],
    &["handle:joe_o", "handle:jоe_o", "handle:joe_о"],
    // Latin, with and without a dot.
    &["handle:ice", "handle:ıce"],
];

fn confusable(field: &str) -> Error {
    Error::IdentityConfusable { field: field.to_owned() }
}

/// All ordered pairs within the rows. Spellings that mix scripts are no handles and are left out.
fn pairs() -> Vec<(&'static str, &'static str)> {
    let mut pairs = Vec::new();
    for row in CONFUSABLE {
        let handles: Vec<&str> =
            row.iter().copied().filter(|name| identifier(name).is_ok()).collect();
        for first in &handles {
            pairs.extend(
                handles.iter().filter(|second| *second != first).map(|second| (*first, *second)),
            );
        }
    }
    pairs
}

pub async fn the_first_of_two_lookalikes_wins(f: Fixture) -> Result<(), Failure> {
    let other = f.create(&["handle:other"]).await?;
    let mut checked = 0;
    for (first, second) in pairs() {
        let owner = f.create(&[first]).await?;
        let creation = f.creation(&["handle:new", second])?;
        refused(f.mutate(creation).await, &confusable("user.identities[1].identifier"))?;
        refused(f.change(&other, link(second)?).await, &confusable("identifier"))?;
        refused(
            f.change(&other, replace("handle:other", second)?).await,
            &confusable("new_identifier"),
        )?;
        refused(f.change(&owner, link(second)?).await, &confusable("identifier"))?;
        f.free(&["handle:new", second]).await?;
        f.has(&owner).await?;
        f.has(&other).await?;
        let unlinked = f.change(&owner, unlink(first)?).await?;
        let relinked = f.change(&unlinked, link(second)?).await?;
        f.has(&relinked).await?;
        f.change(&relinked, unlink(second)?).await?;
        checked += 1;
    }

    ensure(checked >= 6, format!("only {checked} pairs were checked"))
}

/// The key of the guard of a handle.
fn guard(name: &str) -> Result<IdentityKey, Failure> {
    let guard = identifier(name)?.guard().ok_or("invalid case: no guard")?;
    Ok(IdentityKey::of_guard("default", &guard))
}

async fn is_guarded(f: &Fixture, owner: &User, name: &str) -> Result<(), Failure> {
    let claim = f.store.reads.claims(&[guard(name)?]).await?.pop().flatten().ok_or("no guard")?;
    equal(&(claim.owner, claim.guard, claim.hold), &(Some(owner.id), true, None), "the guard")
}

pub async fn a_guard_does_not_resolve(f: Fixture) -> Result<(), Failure> {
    let owner = f.create(&["handle:ѕсоре", "handle:ёхо"]).await?;
    f.free(&["handle:scope", "handle:ëxo"]).await?;
    f.owns(&owner, &["handle:ѕсоре", "handle:ёхо"]).await?;
    is_guarded(&f, &owner, "handle:ѕсоре").await?;
    is_guarded(&f, &owner, "handle:ёхо").await?;
    let f = f.reopen().await?;
    f.free(&["handle:scope"]).await?;
    f.has(&owner).await
}

pub async fn ascii_handles_have_no_guard(f: Fixture) -> Result<(), Failure> {
    let a = f.create(&["handle:joel", "handle:joe1", "handle:rn"]).await?;
    let b = f.create(&["handle:joei", "handle:m"]).await?;
    f.has(&a).await?;
    f.has(&b).await?;
    for name in ["joel", "joe1", "rn", "joei", "m"] {
        let text = key("default", &format!("handle:{name}"))?
            .into_string()
            .replace("handle", Guard::LOOKALIKE);
        let guard = IdentityKey::from_stored(text).ok_or("invalid case: no key")?;
        equal(&f.store.reads.claims(&[guard]).await?, &vec![None], &format!("a guard of {name}"))?;
    }

    Ok(())
}

pub async fn a_guard_is_removed_with_its_handle(f: Fixture) -> Result<(), Failure> {
    let user = f.create(&["handle:ѕсоре"]).await?;
    // The user itself may take the name that its handle looks like.
    let renamed = f.change(&user, replace("handle:ѕсоре", "handle:scope")?).await?;
    f.has(&renamed).await?;
    let restored = f.change(&renamed, replace("handle:scope", "handle:ѕсоре")?).await?;
    f.has(&restored).await?;
    is_guarded(&f, &restored, "handle:ѕсоре").await?;
    let unlinked = f.change(&restored, unlink("handle:ѕсоре")?).await?;
    equal(
        &f.store.reads.claims(&[guard("handle:ѕсоре")?]).await?,
        &vec![None],
        "the guard of the unlinked handle",
    )?;
    f.has(&unlinked).await?;

    f.has(&f.create(&["handle:scope"]).await?).await
}

pub async fn a_guard_is_held_like_its_handle(f: Fixture) -> Result<(), Failure> {
    let user = f.create(&["handle:ѕсоре"]).await?;
    let other = f.create(&["handle:other"]).await?;
    let until = f.now().plus(DAY * 10);
    let unlinked = f.change_with(&holding(10), &user, unlink("handle:ѕсоре")?).await?;
    let held = Error::IdentityHeld { until, field: "identifier".to_owned() };
    for name in ["handle:scope", "handle:ѕсоре"] {
        refused(f.change(&other, link(name)?).await, &held)?;
    }

    let relinked = f.change(&unlinked, link("handle:ѕсоре")?).await?;
    is_guarded(&f, &relinked, "handle:ѕсоре").await?;
    let unlinked_again = f.change_with(&holding(10), &relinked, unlink("handle:ѕсоре")?).await?;
    let linked = f.change(&unlinked_again, link("handle:scope")?).await?;
    f.has(&linked).await?;
    refused(f.change(&linked, link("handle:ѕсоре")?).await, &confusable("identifier"))?;

    f.has(&linked).await
}

pub async fn policies_can_allow_lookalikes(f: Fixture) -> Result<(), Failure> {
    let open = Policies { allow_lookalikes: true, ..no_holds() };
    let a = f.create(&["handle:a"]).await?;
    let lookalike = f.change_with(&open, &a, link("handle:ѕсоре")?).await?;
    let b = f.create(&["handle:scope"]).await?;
    f.has(&lookalike).await?;
    f.has(&b).await?;
    let unlinked = f.change(&lookalike, unlink("handle:ѕсоре")?).await?;
    refused(f.change(&unlinked, link("handle:ѕсоре")?).await, &confusable("identifier"))?;
    f.has(&b).await
}

pub async fn lookalikes_belong_to_one_tenant(f: Fixture) -> Result<(), Failure> {
    let a = f.create(&["handle:scope"]).await?;
    let b = f
        .mutate(Mutation { tenant: tenant("elsewhere")?, ..f.creation(&["handle:ѕсоре"])? })
        .await?;
    equal(&f.owner("handle:scope").await?, &Some(a), "the owner")?;
    equal(&b.identities.len(), &1, "identities")
}
