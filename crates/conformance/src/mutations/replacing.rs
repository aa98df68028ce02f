//! Replacing an identity by another in one step.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use locality_uuid::LocalityId;
use polynym_directory::{
    Backend, Consistency, Error, Identity, Tenant, Timestamp, User, UserChange, Verification,
};

use crate::fixture::assertions::{ensure, equal, refused, taken};
use crate::fixture::decoded;
use crate::fixture::factory::Failure;
use crate::fixture::{Fixture, identifier, key, link, lists, replace, unlink};

pub async fn replace_takes_the_position_of_the_old_identity(f: Fixture) -> Result<(), Failure> {
    let before = f.create(&["handle:old", "handle:other", "email:joe@example.com"]).await?;
    let mutation = f.mutation(before.id, replace("handle:OLD", "handle:New")?);
    let time = mutation.now.time;
    let user = f.mutate(mutation).await?;
    let new = &user.identities[0];
    equal(&new.identifier, &identifier("handle:new")?, "the identity in the old one's place")?;
    equal(&new.display.as_str(), &"New", "the display form")?;
    equal(&(new.link_time, user.update_time), &(time, time), "the link time and the update time")?;
    ensure(new.primary, "the new identity is not primary")?;
    equal(&user.identities[1..], &before.identities[1..], "the other identities")?;
    f.free(&["handle:old"]).await?;
    f.has(&user).await?;
    let other = f.create(&["handle:old"]).await?;

    f.has(&other).await
}

pub async fn replace_drops_the_verification(f: Fixture) -> Result<(), Failure> {
    let joe = f.create(&["email:joe@example.com"]).await?;
    let verification = Verification { time: Timestamp::from_millis(1), by: "a link".to_owned() };
    let verify =
        UserChange::Verify(identifier("email:joe@example.com")?, Some(verification.clone()));
    f.change(&joe, verify).await?;
    let user = f.change(&joe, replace("email:joe@example.com", "email:JOE@example.com")?).await?;
    equal(
        &user.identities[0].verification,
        &Some(verification),
        "the verification of another spelling",
    )?;
    let eve = f.change(&user, replace("email:joe@example.com", "email:eve@example.com")?).await?;
    equal(&eve.identities[0].verification, &None, "the verification of another identifier")?;

    f.has(&eve).await
}

pub async fn replace_by_another_spelling_changes_the_display(f: Fixture) -> Result<(), Failure> {
    let before = f.create(&["handle:joe", "email:joe@example.com"]).await?;
    let user = f.change(&before, replace("handle:joe", "handle:JOE")?).await?;
    equal(&user.identities[0].display.as_str(), &"JOE", "the display form")?;
    equal(&user.identities[0].link_time, &before.identities[0].link_time, "the link time")?;
    ensure(user.etag() != before.etag(), "the etag is the same with another display")?;
    f.has(&user).await?;
    equal(
        &f.change(&user, replace("handle:joe", "handle:JOE")?).await?,
        &user,
        "the answer to a replace that changes nothing",
    )?;

    f.has(&user).await
}

pub async fn replace_by_an_owned_identity_drops_the_old_one(f: Fixture) -> Result<(), Failure> {
    let before = f.create(&["handle:one", "handle:two", "handle:three"]).await?;
    let user = f.change(&before, replace("handle:one", "handle:three")?).await?;
    lists(&user, &["handle:two", "handle:three"])?;
    equal(&user.identities[0], &before.identities[1], "the other identity")?;
    let marked = Identity { primary: true, ..before.identities[2].clone() };
    equal(&user.identities[1], &marked, "the new primary identity")?;
    f.free(&["handle:one"]).await?;

    f.has(&user).await
}

pub async fn replace_by_another_kind_keeps_one_primary_a_kind(f: Fixture) -> Result<(), Failure> {
    let created = f.create(&["handle:one", "handle:two", "email:a@example.com"]).await?;
    let user = f.change(&created, replace("handle:one", "email:b@example.com")?).await?;
    let primary: Vec<bool> = user.identities.iter().map(|identity| identity.primary).collect();
    equal(
        primary.as_slice(),
        &[false, true, true],
        "which of email b, handle two and email a are primary",
    )?;
    f.has(&user).await
}

pub async fn a_refused_replace_changes_nothing(f: Fixture) -> Result<(), Failure> {
    let owner = f.create(&["handle:owner"]).await?;
    let user = f.create(&["handle:user"]).await?;
    taken(
        f.change(&user, replace("handle:user", "handle:owner")?).await,
        &owner,
        "new_identifier",
    )?;
    refused(f.change(&user, replace("handle:owner", "handle:user")?).await, &Error::NotOwned)?;
    refused(f.change(&user, replace("handle:nobody", "handle:owner")?).await, &Error::NotOwned)?;
    f.has(&owner).await?;
    f.has(&user).await
}

pub async fn two_users_can_swap_names_via_a_third(f: Fixture) -> Result<(), Failure> {
    let a = f.create(&["handle:a"]).await?;
    let b = f.create(&["handle:b"]).await?;
    f.change(&a, replace("handle:a", "handle:between")?).await?;
    let b = f.change(&b, replace("handle:b", "handle:a")?).await?;
    let a = f.change(&a, replace("handle:between", "handle:b")?).await?;
    f.free(&["handle:between"]).await?;
    f.owns(&a, &["handle:b"]).await?;
    f.owns(&b, &["handle:a"]).await
}

/// The number of replaces in the two cases below.
const ROUNDS: usize = 150;

/// The progress of the writer of a chain of replaces.
#[derive(Default)]
struct Progress {
    begun: AtomicUsize,
    done: AtomicUsize,
}

/// Reads a user whose handle changes from `name-0` to `name-1` and so on.
struct Watcher {
    store: Backend,
    id: LocalityId,
    progress: Arc<Progress>,
}

impl Watcher {
    async fn owner(&self, name: &str) -> Result<Option<User>, Failure> {
        let found =
            decoded::owners(&self.store, &[key("default", name)?], Consistency::Linearizable)
                .await?
                .pop()
                .flatten();
        if let Some(user) = &found {
            equal(&user.id, &self.id, &format!("the owner of {name}"))?;
            ensure(
                user.identity(&identifier(name)?).is_some(),
                format!("the owner of {name} does not list it"),
            )?;
            equal(&user.identities.len(), &2, "identities at any moment")?;
        }

        Ok(found)
    }

    async fn check_owners(&self) -> Result<(), Failure> {
        let done = self.progress.done.load(Ordering::SeqCst);
        ensure(
            self.owner("email:joe@example.com").await?.is_some(),
            "an unchanged identity did not resolve",
        )?;
        if done > 0 {
            let old = self.owner(&format!("handle:name-{}", done - 1)).await?;
            ensure(old.is_none(), "an old name resolves after it was replaced")?;
        }

        if self.owner(&format!("handle:name-{done}")).await?.is_none() {
            let next = self.owner(&format!("handle:name-{}", done + 1)).await?;
            let begun = self.progress.begun.load(Ordering::SeqCst);
            ensure(next.is_some() || begun > done + 1, "neither of two names resolved")?;
        }

        let user = decoded::users(&self.store, &Tenant::DEFAULT, &[self.id]).await?.pop().flatten();
        equal(&user.map(|user| user.identities.len()), &Some(2), "identities at any moment")
    }

    async fn watch(self) -> Result<usize, Failure> {
        let mut checks = 0;
        while self.progress.done.load(Ordering::SeqCst) < ROUNDS {
            self.check_owners().await?;
            checks += 1;
            tokio::task::yield_now().await;
        }
        Ok(checks)
    }
}

pub async fn replace_is_atomic_for_readers(f: Fixture) -> Result<(), Failure> {
    let user = f.create(&["handle:name-0", "email:joe@example.com"]).await?;
    let progress = Arc::new(Progress::default());
    let watcher = Watcher { store: f.store.clone(), id: user.id, progress: progress.clone() };
    let watching = tokio::spawn(watcher.watch());
    for round in 1..=ROUNDS {
        progress.begun.store(round, Ordering::SeqCst);
        let change =
            replace(&format!("handle:name-{}", round - 1), &format!("handle:name-{round}"))?;
        f.change(&user, change).await?;
        progress.done.store(round, Ordering::SeqCst);
    }

    ensure(watching.await?? > 0, "nothing was checked")
}

/// Resolves `name` until `done` is set.
async fn watch_moves(
    store: Backend,
    name: &'static str,
    done: Arc<AtomicUsize>,
) -> Result<usize, Failure> {
    let key = key("default", name)?;
    let mut found = 0;
    while done.load(Ordering::SeqCst) == 0 {
        let users =
            decoded::owners(&store, std::slice::from_ref(&key), Consistency::Latest).await?;
        for user in users.into_iter().flatten() {
            ensure(
                user.identities.iter().any(|identity| key.is_of(&identity.identifier)),
                format!("{name} resolves to a user who does not list it"),
            )?;
            found += 1;
        }
        tokio::task::yield_now().await;
    }

    Ok(found)
}

pub async fn a_moving_identifier_resolves_to_its_owners_only(f: Fixture) -> Result<(), Failure> {
    let users = [f.create(&["handle:moves"]).await?, f.create(&["handle:other"]).await?];
    let done = Arc::new(AtomicUsize::new(0));
    let watcher = tokio::spawn(watch_moves(f.store.clone(), "handle:moves", done.clone()));
    for round in 0..ROUNDS {
        f.change(&users[round % 2], unlink("handle:moves")?).await?;
        let user = f.change(&users[(round + 1) % 2], link("handle:moves")?).await?;
        f.has(&user).await?;
    }
    done.store(1, Ordering::SeqCst);
    ensure(watcher.await?? > 0, "the identifier was never found")
}
