//! Purges of users who share many events with others.

use polynym_directory::{Event, Limits, Mutation, MutationReport, User, UserChange, check_history};

use crate::fixture::assertions::{ensure, equal};
use crate::fixture::factory::Failure;
use crate::fixture::{Fixture, identifier, key, request};

/// The number of moves of an identity to another user and back.
const ROUND_TRIPS: usize = 15;
/// The maximum events that one transaction reads.
const EVENTS_PER_ROUND: usize = 4;
/// The round after which the purge is interrupted: it has rewritten some events.
const INTERRUPTED_ROUND: usize = 12;
const MAX_ROUNDS: usize = 100;
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
    let limits = Limits { purge_events: EVENTS_PER_ROUND, ..Limits::default() };
    Mutation { limits, request: request("purge", 1), ..f.mutation(user.id, UserChange::Purge) }
}

fn count_with_name(events: &[Event]) -> usize {
    events.iter().filter(|event| format!("{event:?}").contains("wanderer")).count()
}

pub async fn a_purge_continues_until_no_event_has_the_name(f: Fixture) -> Result<(), Failure> {
    let (joe, ann) = users_sharing_events(&f).await?;
    let before = f.events(&ann).await?;
    equal(&count_with_name(&before), &(2 * ROUND_TRIPS), "events of the other user with the name")?;

    let (mut f, mut rounds, mut left) = (f, 0, count_with_name(&before));
    let mut purge = purge(&f, &joe);
    loop {
        let report = f.apply(purge.clone()).await?.report;
        rounds += 1;
        ensure(rounds < MAX_ROUNDS, "the purge does not end")?;
        let kept = f.events(&ann).await?;
        check_history(&f.get(ann.id).await?.ok_or("the other user is gone")?, &kept)?;
        let with_name = count_with_name(&kept);
        let is_bounded = with_name <= left && left - with_name <= EVENTS_PER_ROUND;
        ensure(is_bounded, format!("{left} events with the name, then {with_name}"))?;
        left = with_name;
        let MutationReport::PurgeBegun(progress) = report else {
            equal(&report, &MutationReport::Purged(vec![joe.id]), "the end of the purge")?;
            break;
        };
        f.has(&joe).await?;
        // An interrupted purge begins anew, on another server.
        f = f.reopen().await?;
        purge.purge = (rounds != INTERRUPTED_ROUND).then_some(progress);
    }
    ensure(rounds > INTERRUPTED_ROUND, format!("{rounds} rounds"))?;

    let after = f.events(&ann).await?;
    equal(&count_with_name(&after), &0, "events with the name")?;
    equal(&after.len(), &before.len(), "events of the other user")?;
    let ended = f.store.histories.ended_ownerships(&[key("default", NAME)?]).await?;
    ensure(ended.iter().all(|ended| ended.0.iter().all(|one| one.user.is_none())), "an owner")?;
    equal(&f.get(joe.id).await?, &None, "the purged user")?;
    let again = f.apply(Mutation { purge: None, ..purge }).await?.report;
    equal(&again, &MutationReport::Purged(vec![joe.id]), "the repeated purge")
}

/// A user who changes while it is purged is purged with what has changed.
pub async fn a_purge_notices_changes_in_between(f: Fixture) -> Result<(), Failure> {
    let (joe, ann) = users_sharing_events(&f).await?;
    let mut purge = Mutation { request: None, ..purge(&f, &joe) };
    let eve = f.create(&["handle:eve"]).await?;
    for round in 0..MAX_ROUNDS {
        let report = f.apply(purge.clone()).await?.report;
        let MutationReport::PurgeBegun(progress) = report else {
            ensure(round > 20, format!("{round} rounds"))?;
            for user in [&ann, &eve] {
                let left = count_with_name(&f.events(user).await?);
                equal(&left, &0, "events with the name")?;
            }
            return Ok(());
        };
        purge.purge = Some(progress);
        if [3, 14, 30].contains(&round) {
            f.change(&eve, UserChange::Move(joe.id, identifier(NAME)?)).await?;
            f.change(&joe, UserChange::Move(eve.id, identifier(NAME)?)).await?;
        }
    }
    Err("the purge does not end".into())
}

pub async fn a_dry_run_of_a_purge_takes_one_round(f: Fixture) -> Result<(), Failure> {
    let (joe, ann) = users_sharing_events(&f).await?;
    let trial = Mutation { dry_run: true, request: None, ..purge(&f, &joe) };
    let report = f.apply(trial).await?.report;
    equal(&report, &MutationReport::Purged(vec![joe.id]), "the trial")?;
    equal(&count_with_name(&f.events(&ann).await?), &(2 * ROUND_TRIPS), "events with the name")
}
