//! Purges of users who share many events with others.

use polynym_directory::{
    Event, Limits, Mutation, MutationReport, Tenant, User, UserChange, check_history,
};

use super::Failure;
use super::assertions::{ensure, equal};
use super::fixture::{Fixture, identifier, key, request};

/// The number of times that an identity goes to another user and comes back.
const TIMES: usize = 15;
/// The events that one transaction rewrites.
const LIMITS: usize = 4;
/// The identity that moves.
const NAME: &str = "handle:wanderer";

/// Two users: one who has an identity, and one who had it many times.
async fn entangled(f: &Fixture) -> Result<(User, User), Failure> {
    let (mut joe, ann) = (f.create(&[NAME]).await?, f.create(&["handle:ann"]).await?);
    for _ in 0..TIMES {
        f.change(&ann, UserChange::Move(joe.id, identifier(NAME)?)).await?;
        joe = f.change(&joe, UserChange::Move(ann.id, identifier(NAME)?)).await?;
    }
    Ok((joe, ann))
}

fn purge(f: &Fixture, user: &User) -> Mutation {
    let limits = Limits { redactions: LIMITS, ..Limits::default() };
    Mutation { limits, request: request("purge", 1), ..f.mutation(user.id, UserChange::Purge) }
}

/// All events of a user, the newest first.
async fn events(f: &Fixture, user: &User) -> Result<Vec<Event>, Failure> {
    let history = f.store.histories.history(&Tenant::DEFAULT, user.id, None, 1_000).await?;
    Ok(history.ok_or("the user is gone")?.events)
}

fn have_name(events: &[Event]) -> usize {
    events.iter().filter(|event| format!("{event:?}").contains("wanderer")).count()
}

pub async fn a_purge_goes_on_until_no_event_has_the_name(f: Fixture) -> Result<(), Failure> {
    let (joe, ann) = entangled(&f).await?;
    let before = events(&f, &ann).await?;
    equal(&have_name(&before), &(2 * TIMES), "events of the other user with the name")?;

    let (mut f, mut rounds) = (f, 0);
    let purge = purge(&f, &joe);
    loop {
        let report = f.store.mutations.mutate(purge.clone()).await?.report;
        rounds += 1;
        let kept = events(&f, &ann).await?;
        check_history(&f.get(ann.id).await?.ok_or("the other user is gone")?, &kept)?;
        if report != MutationReport::PurgeBegun {
            equal(&report, &MutationReport::Purged(vec![joe.id]), "the end of the purge")?;
            break;
        }
        equal(&have_name(&kept), &(2 * TIMES - rounds * LIMITS), "events that are left")?;
        f.is_kept(&joe).await?;
        // Another server goes on.
        f = f.reopen().await?;
    }
    ensure(rounds == (2 * TIMES).div_ceil(LIMITS), format!("{rounds} rounds"))?;

    let after = events(&f, &ann).await?;
    equal(&have_name(&after), &0, "events with the name")?;
    equal(&after.len(), &before.len(), "events of the other user")?;
    let ended = f.store.histories.ended_ownerships(&[key("default", NAME)?]).await?;
    ensure(ended.iter().all(|ended| ended.0.iter().all(|one| one.user.is_none())), "an owner")?;
    equal(&f.get(joe.id).await?, &None, "the purged user")?;
    // Its request was answered.
    let again = f.store.mutations.mutate(purge).await?.report;
    equal(&again, &MutationReport::Purged(vec![joe.id]), "the purge that is sent again")
}

pub async fn a_dry_run_of_a_purge_needs_no_second_one(f: Fixture) -> Result<(), Failure> {
    let (joe, ann) = entangled(&f).await?;
    let trial = Mutation { dry_run: true, request: None, ..purge(&f, &joe) };
    let report = f.store.mutations.mutate(trial).await?.report;
    equal(&report, &MutationReport::Purged(vec![joe.id]), "the trial")?;
    equal(&have_name(&events(&f, &ann).await?), &(2 * TIMES), "events with the name")
}
