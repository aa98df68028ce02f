//! Purges of users who share many events with others.

use polynym_directory::{
    Event, Limits, Mutation, MutationReport, PageLimit, Tenant, User, UserChange, check_history,
};

use crate::fixture::assertions::{ensure, equal};
use crate::fixture::factory::Failure;
use crate::fixture::{Fixture, identifier, key, request};

/// The number of moves of an identity to another user and back.
const ROUND_TRIPS: usize = 15;
/// The maximum events that one transaction rewrites.
const EVENTS_PER_ROUND: usize = 4;
/// The identity that moves.
const NAME: &str = "handle:wanderer";

/// Two users between whom an identity has moved many times; the first owns it.
async fn users_sharing_events(f: &Fixture) -> Result<(User, User), Failure> {
    let (mut joe, ann) = (f.create(&[NAME]).await?, f.create(&["handle:ann"]).await?);
    for _ in 0..ROUND_TRIPS {
        f.change(&ann, UserChange::Move(joe.id, identifier(NAME)?)).await?;
        joe = f.change(&joe, UserChange::Move(ann.id, identifier(NAME)?)).await?;
    }
    Ok((joe, ann))
}

fn purge(f: &Fixture, user: &User) -> Mutation {
    let limits = Limits { redactions: EVENTS_PER_ROUND, ..Limits::default() };
    Mutation { limits, request: request("purge", 1), ..f.mutation(user.id, UserChange::Purge) }
}

/// All events of a user, the newest first.
async fn events(f: &Fixture, user: &User) -> Result<Vec<Event>, Failure> {
    let history =
        f.store.histories.history(&Tenant::DEFAULT, user.id, None, PageLimit::unlimited()).await?;
    Ok(history.ok_or("the user is gone")?.events)
}

fn count_with_name(events: &[Event]) -> usize {
    events.iter().filter(|event| format!("{event:?}").contains("wanderer")).count()
}

pub async fn a_purge_continues_until_no_event_has_the_name(f: Fixture) -> Result<(), Failure> {
    let (joe, ann) = users_sharing_events(&f).await?;
    let before = events(&f, &ann).await?;
    equal(&count_with_name(&before), &(2 * ROUND_TRIPS), "events of the other user with the name")?;

    let (mut f, mut rounds) = (f, 0);
    let purge = purge(&f, &joe);
    loop {
        let report = f.apply(purge.clone()).await?.report;
        rounds += 1;
        let kept = events(&f, &ann).await?;
        check_history(&f.get(ann.id).await?.ok_or("the other user is gone")?, &kept)?;
        if report != MutationReport::PurgeBegun {
            equal(&report, &MutationReport::Purged(vec![joe.id]), "the end of the purge")?;
            break;
        }
        equal(
            &count_with_name(&kept),
            &(2 * ROUND_TRIPS - rounds * EVENTS_PER_ROUND),
            "events with the name",
        )?;
        f.has(&joe).await?;
        // Another server continues.
        f = f.reopen().await?;
    }
    ensure(rounds == (2 * ROUND_TRIPS).div_ceil(EVENTS_PER_ROUND), format!("{rounds} rounds"))?;

    let after = events(&f, &ann).await?;
    equal(&count_with_name(&after), &0, "events with the name")?;
    equal(&after.len(), &before.len(), "events of the other user")?;
    let ended = f.store.histories.ended_ownerships(&[key("default", NAME)?]).await?;
    ensure(ended.iter().all(|ended| ended.0.iter().all(|one| one.user.is_none())), "an owner")?;
    equal(&f.get(joe.id).await?, &None, "the purged user")?;
    let again = f.apply(purge).await?.report;
    equal(&again, &MutationReport::Purged(vec![joe.id]), "the repeated purge")
}

pub async fn a_dry_run_of_a_purge_takes_one_round(f: Fixture) -> Result<(), Failure> {
    let (joe, ann) = users_sharing_events(&f).await?;
    let trial = Mutation { dry_run: true, request: None, ..purge(&f, &joe) };
    let report = f.apply(trial).await?.report;
    equal(&report, &MutationReport::Purged(vec![joe.id]), "the trial")?;
    equal(&count_with_name(&events(&f, &ann).await?), &(2 * ROUND_TRIPS), "events with the name")
}
