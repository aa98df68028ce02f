//! Disabling, deleting, restoring and purging users.

use std::sync::Arc;
use std::time::Duration;

use locality_uuid::LocalityId;
use polynym_directory::{
    Claim, Error, ExpiredUser, Mutation, MutationReport, Policies, State, Tenant, Timestamp,
    Update, User, UserChange,
};
use polynym_identifier::RULES_VERSION;

use crate::fixture::assertions::{ensure, equal, refused, taken};
use crate::fixture::decoded;
use crate::fixture::factory::Failure;
use crate::fixture::{DAY, Fixture, holding, identifier, link, replace, request, unlink};

const NAMES: [&str; 2] = ["email:joe@example.com", "handle:joe"];

pub async fn disable_and_enable_change_the_state_alone(f: Fixture) -> Result<(), Failure> {
    let user = f.create(&NAMES).await?;
    let disabled = f.change(&user, UserChange::Disable).await?;
    equal(
        &disabled,
        &User { state: State::Disabled, update_time: disabled.update_time, ..user.clone() },
        "the user",
    )?;
    ensure(
        disabled.update_time > user.update_time && disabled.etag() != user.etag(),
        "time and etag did not change",
    )?;
    f.has(&disabled).await?;
    equal(&f.change(&user, UserChange::Disable).await?, &disabled, "a repeated disable")?;
    let linked = f.change(&user, link("social:github/1")?).await?;
    equal(&linked.state, &State::Disabled, "the state after a link")?;
    let enabled = f.change(&user, UserChange::Enable).await?;
    equal(
        &enabled,
        &User { state: State::Active, update_time: enabled.update_time, ..linked },
        "the user",
    )?;
    equal(&f.change(&user, UserChange::Enable).await?, &enabled, "a repeated enable")?;

    f.has(&enabled).await
}

/// The state of a user after this deletion under the default policies.
fn deleted(mutation: &Mutation) -> State {
    let delete_time = mutation.now.time;
    State::Deleted { delete_time, purge_time: delete_time.plus(30 * DAY) }
}

async fn delete(f: &Fixture, user: &User) -> Result<User, Failure> {
    let mutation = f.mutation(user.id, UserChange::Delete);
    let state = deleted(&mutation);
    let user = f.mutate(mutation).await?;
    equal(&user.state, &state, "the state of a deleted user")?;
    Ok(user)
}

pub async fn a_deleted_user_keeps_its_identities(f: Fixture) -> Result<(), Failure> {
    let user = f.create(&NAMES).await?;
    let other = f.create(&["handle:other"]).await?;
    let gone = delete(&f, &user).await?;
    equal(&gone.identities, &user.identities, "the identities")?;
    f.has(&gone).await?;
    taken(f.change(&other, link("handle:joe")?).await, &gone, "identifier")?;
    let back = f.change(&user, UserChange::Undelete).await?;
    equal(
        &back,
        &User { state: State::Active, update_time: back.update_time, ..user },
        "the user",
    )?;

    f.has(&back).await
}

pub async fn undelete_restores_the_disabled_state(f: Fixture) -> Result<(), Failure> {
    let user = f.create(&NAMES).await?;
    f.change(&user, UserChange::Disable).await?;
    delete(&f, &user).await?;
    let f = f.reopen().await?;
    equal(&f.change(&user, UserChange::Undelete).await?.state, &State::Disabled, "the state")?;
    f.change(&user, UserChange::Enable).await?;
    delete(&f, &user).await?;

    equal(
        &f.change(&user, UserChange::Undelete).await?.state,
        &State::Active,
        "the state of a user that was enabled since",
    )
}

/// Changes of one user that are no deletion.
fn changes() -> Result<Vec<UserChange>, Failure> {
    Ok(vec![
        UserChange::Update(Update::from_mask(None, "Eve".to_owned(), Default::default())?),
        link("handle:new")?,
        unlink("handle:joe")?,
        replace("handle:joe", "handle:new")?,
        UserChange::Verify(identifier("handle:joe")?, None),
        UserChange::Disable,
        UserChange::Enable,
    ])
}

pub async fn a_deleted_user_is_not_changed(f: Fixture) -> Result<(), Failure> {
    let user = f.create(&NAMES).await?;
    refused(f.change(&user, UserChange::Undelete).await, &Error::UserNotDeleted)?;
    let gone = delete(&f, &user).await?;
    for change in changes()? {
        refused(f.change(&user, change).await, &Error::UserDeleted { user: user.id })?;
    }

    refused(f.change(&user, UserChange::Delete).await, &Error::UserNotFound)?;
    let stale = Mutation { etag: Some(user.etag()), ..f.mutation(user.id, UserChange::Undelete) };
    refused(f.mutate(stale).await, &Error::EtagMismatch)?;
    f.free(&["handle:new"]).await?;
    f.has(&gone).await?;
    let current = Mutation { etag: Some(gone.etag()), ..f.mutation(user.id, UserChange::Undelete) };

    f.has(&f.mutate(current).await?).await
}

pub async fn state_changes_of_unknown_users_are_refused(f: Fixture) -> Result<(), Failure> {
    let creation = Mutation { tenant: Tenant::parse("elsewhere")?, ..f.creation(&["handle:joe"])? };
    let elsewhere = f.mutate(creation).await?;
    for id in [f.ids.next_id(), elsewhere.id] {
        for change in [
            UserChange::Disable,
            UserChange::Enable,
            UserChange::Delete,
            UserChange::Undelete,
            UserChange::Purge,
        ] {
            refused(f.mutate(f.mutation(id, change)).await, &Error::UserNotFound)?;
        }
    }

    let tenant = elsewhere.tenant.clone();
    f.mutate(Mutation { tenant, ..f.mutation(elsewhere.id, UserChange::Disable) })
        .await
        .map(drop)
        .map_err(Failure::from)
}

pub async fn expired_users_are_not_found(f: Fixture) -> Result<(), Failure> {
    let user = f.create(&NAMES).await?;
    let gone = delete(&f, &user).await?;
    let State::Deleted { purge_time, .. } = gone.state else { return Err("not deleted".into()) };
    let before = Timestamp::from_millis(purge_time.as_millis() - 1);
    for change in [UserChange::Undelete, UserChange::Purge, UserChange::Delete, link("handle:new")?]
    {
        let late = Mutation { now: purge_time.into(), ..f.mutation(user.id, change) };
        refused(f.mutate(late).await, &Error::UserNotFound)?;
    }
    let back = f
        .mutate(Mutation { now: before.into(), ..f.mutation(user.id, UserChange::Undelete) })
        .await?;

    f.has(&back).await
}

/// Purges a user under `policies` and returns the ids that were removed.
async fn purge(
    f: &Fixture,
    policies: Policies,
    id: LocalityId,
) -> Result<Vec<LocalityId>, Failure> {
    let mutation = Mutation { policies: Arc::new(policies), ..f.mutation(id, UserChange::Purge) };
    match f.apply(mutation).await?.report {
        MutationReport::Purged(ids) => Ok(ids),
        other => Err(format!("a purge reports {other:?}").into()),
    }
}

pub async fn purge_leaves_only_ownerless_holds(f: Fixture) -> Result<(), Failure> {
    let created = f.create(&["email:joe@example.com", "handle:joe", "handle:second"]).await?;
    let policies = holding(10);
    let user = f.change_with(&policies, &created, unlink("handle:second")?).await?;
    let held = f.claim("handle:second").await?.and_then(|claim| claim.hold);
    let until = f.now().plus(10 * DAY);
    equal(&purge(&f, policies, user.id).await?, &vec![user.id], "the purged users")?;
    equal(&f.get(user.id).await?, &None, "the user")?;
    f.free(&["email:joe@example.com", "handle:joe", "handle:second"]).await?;
    equal(&f.claim("email:joe@example.com").await?, &None, "the claim on a released identifier")?;
    for (name, until) in [("handle:joe", Some(until)), ("handle:second", held)] {
        let reserved =
            Claim { owner: None, guard: false, hold: until, rules_version: RULES_VERSION };
        equal(&f.claim(name).await?, &Some(reserved), &format!("what holds {name}"))?;
    }

    let other = f.create(&["email:joe@example.com"]).await?;
    let held = Error::IdentityHeld { until, field: "identifier".to_owned() };
    refused(f.change(&other, link("handle:joe")?).await, &held)?;
    f.wait_until(until);
    f.has(&f.change(&other, link("handle:joe")?).await?).await?;

    f.has(&f.change(&other, link("handle:second")?).await?).await
}

pub async fn purge_works_in_every_state_and_can_be_repeated(f: Fixture) -> Result<(), Failure> {
    for state in [None, Some(UserChange::Disable), Some(UserChange::Delete)] {
        let user = f.create(&NAMES).await?;
        if let Some(change) = state {
            f.change(&user, change).await?;
        }
        let purge = || Mutation {
            request: request(&user.id.to_string(), 1),
            ..f.mutation(user.id, UserChange::Purge)
        };
        let stale = Mutation { request: None, etag: Some("0".repeat(16)), ..purge() };
        refused(f.mutate(stale).await, &Error::EtagMismatch)?;
        for _ in 0..2 {
            let outcome = f.apply(purge()).await?;
            equal(
                &(outcome.user, outcome.report),
                &(None, MutationReport::Purged(vec![user.id])),
                "the answer",
            )?;
        }
        refused(f.change(&user, UserChange::Purge).await, &Error::UserNotFound)?;
        equal(&f.get(user.id).await?, &None, "the user")?;
    }

    f.free(&NAMES).await
}

/// Expires a user at this time.
async fn expire(f: &Fixture, id: LocalityId, time: Timestamp) -> Result<MutationReport, Failure> {
    Ok(f.apply(Mutation { now: time.into(), ..f.mutation(id, UserChange::Expire) }).await?.report)
}

pub async fn deleted_users_are_purged_at_their_purge_time(f: Fixture) -> Result<(), Failure> {
    let users = [
        f.create(&["handle:a"]).await?,
        f.create(&["handle:b"]).await?,
        f.create(&["handle:c"]).await?,
    ];
    let [first, second, third] = &users;
    let mut times = Vec::new();
    for user in [second, first, third] {
        let State::Deleted { purge_time, .. } = delete(&f, user).await?.state else { continue };
        times.push(purge_time);
    }

    f.change(third, UserChange::Undelete).await?;
    let f = f.reopen().await?;
    let early = Timestamp::from_millis(times[0].as_millis() - 1);
    expect_expired(&f, early, 10, &[]).await?;
    expect_expired(&f, times[0], 10, &[second]).await?;
    expect_expired(&f, times[2], 10, &[second, first]).await?;
    expect_expired(&f, times[2], 1, &[second]).await?;

    let expiry = "the report of an expiry";
    equal(&expire(&f, first.id, times[0]).await?, &MutationReport::Nothing, expiry)?;
    f.owns(&f.get(first.id).await?.ok_or("gone too early")?, &["handle:a"]).await?;
    let purged = MutationReport::Purged(vec![first.id]);
    equal(&expire(&f, first.id, times[1]).await?, &purged, expiry)?;
    expect_expired(&f, times[2], 10, &[second]).await?;
    equal(&f.get(first.id).await?, &None, "the purged user")?;

    equal(&expire(&f, first.id, times[2]).await?, &MutationReport::Nothing, expiry)?;
    equal(&expire(&f, third.id, times[2]).await?, &MutationReport::Nothing, expiry)?;

    f.free(&["handle:a"]).await
}

/// Fails unless exactly these users, at most `limit`, have expired at `now`.
async fn expect_expired(
    f: &Fixture,
    now: Timestamp,
    limit: usize,
    users: &[&User],
) -> Result<(), Failure> {
    let wanted = users.iter().map(|user| (Tenant::DEFAULT, user.id)).collect();
    equal(&decoded::expired_users(&f.store, now, limit).await?, &wanted, "the expired users")
}

/// The users that have expired at `now`, read in pages of `limit`.
async fn pages(
    f: &Fixture,
    now: Timestamp,
    limit: usize,
) -> Result<Vec<(Timestamp, LocalityId)>, Failure> {
    let mut found: Vec<(Timestamp, LocalityId)> = Vec::new();
    loop {
        let page = f.store.histories.expired_users(now, found.last().copied(), limit).await?;
        ensure(page.len() <= limit, "a page exceeds its limit")?;
        if page.is_empty() {
            return Ok(found);
        }
        found.extend(page.iter().map(ExpiredUser::position));
    }
}

pub async fn expired_users_are_listed_in_pages(f: Fixture) -> Result<(), Failure> {
    let start = f.now();
    let mut wanted = Vec::new();
    for n in 0..16 {
        let user = f.create(&[&format!("handle:user{n}")]).await?;
        // Most expire at the same time.
        let time = start.plus(Duration::from_secs([100, 100, 100, 101, 99, 100, 102, 100][n % 8]));
        let deleted = f
            .mutate(Mutation { now: time.into(), ..f.mutation(user.id, UserChange::Delete) })
            .await?;
        let State::Deleted { purge_time, .. } = deleted.state else {
            return Err("not deleted".into());
        };
        wanted.push((purge_time, user.id));
    }

    wanted.sort_unstable();
    let f = f.reopen().await?;
    for limit in [1, 2, 3, 5, 16, 20] {
        equal(&pages(&f, Timestamp::MAX, limit).await?, &wanted, &format!("pages of {limit}"))?;
    }

    let (now, _) = wanted[8];
    let due: Vec<_> = wanted.iter().copied().filter(|(time, _)| *time <= now).collect();
    equal(&pages(&f, now, 4).await?, &due, "pages of expired users")?;
    equal(
        &f.store.histories.expired_users(now, Some(wanted[15]), 4).await?.len(),
        &0,
        "expired users after one that has not expired",
    )
}

pub async fn a_repeated_change_of_state_happens_once(f: Fixture) -> Result<(), Failure> {
    let user = f.create(&NAMES).await?;
    for (n, (change, back)) in
        [(UserChange::Disable, UserChange::Enable), (UserChange::Delete, UserChange::Undelete)]
            .into_iter()
            .enumerate()
    {
        let send = || Mutation {
            request: request(&format!("request{n}"), 1),
            ..f.mutation(user.id, change.clone())
        };
        let changed = f.mutate(send()).await?;
        equal(&f.mutate(send()).await?, &changed, "the answer to the same request")?;
        let restored = f.change(&user, back).await?;
        equal(&f.mutate(send()).await?, &restored, "the user as it is now")?;
    }

    Ok(())
}

pub async fn one_of_many_deletions_succeeds(f: Fixture) -> Result<(), Failure> {
    let user = f.create(&NAMES).await?;
    let outcomes =
        f.all((0..32).map(|_| f.mutation(user.id, UserChange::Delete)).collect()).await?;
    let (done, refusals): (Vec<_>, Vec<_>) = outcomes.into_iter().partition(Result::is_ok);
    equal(&done.len(), &1, "successful deletions")?;
    ensure(refusals.iter().all(|e| matches!(e, Err(Error::UserNotFound))), "another refusal")?;
    let mut mutations = vec![f.mutation(user.id, UserChange::Purge)];
    for _ in 0..8 {
        mutations.push(f.creation(&NAMES)?);
    }

    let ids: Vec<_> = mutations.iter().filter_map(Mutation::user_id).collect();
    f.all(mutations).await?;
    f.invariants(&ids, &NAMES.map(str::to_owned)).await.map(drop)
}
