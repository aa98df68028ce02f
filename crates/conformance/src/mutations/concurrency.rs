//! Concurrent and cancelled mutations.

use std::time::Duration;

use futures_util::FutureExt;
use locality_uuid::LocalityId;
use polynym_directory::{Error, Mutation, Update, User, UserChange};

use crate::fixture::assertions::{ensure, equal, taken};
use crate::fixture::factory::Failure;
use crate::fixture::{Fixture, link, replace, request, unlink};

/// The number of concurrent callers.
const CALLERS: usize = 64;

/// Users who own `handle:user0`, `handle:user1` and so on.
async fn users(f: &Fixture, count: usize) -> Result<Vec<User>, Failure> {
    let creations =
        (0..count).map(|n| f.creation(&[&format!("handle:user{n}")])).collect::<Result<_, _>>()?;
    f.all(creations).await?.into_iter().map(|user| Ok(user?)).collect()
}

fn ids(mutations: &[Mutation]) -> Vec<LocalityId> {
    mutations.iter().filter_map(Mutation::user_id).collect()
}

/// Fails unless one outcome is a user and all others name it as the owner of `field`.
fn one_wins(outcomes: Vec<Result<User, Error>>, field: &str) -> Result<User, Failure> {
    let (mut winners, losers): (Vec<_>, Vec<_>) = outcomes.into_iter().partition(Result::is_ok);
    equal(&winners.len(), &1, "acknowledged callers")?;
    let winner = winners.remove(0)?;
    for loser in losers {
        taken(loser, &winner, field)?;
    }
    Ok(winner)
}

pub async fn one_of_many_links_gets_the_identifier(f: Fixture) -> Result<(), Failure> {
    let users = users(&f, CALLERS).await?;
    let changes = users.iter().map(|user| Ok(f.mutation(user.id, link("email:joe@example.com")?)));
    let links = changes.collect::<Result<Vec<_>, Failure>>()?;
    let ids = ids(&links);
    let winner = one_wins(f.all(links).await?, "identifier")?;
    let after = f.invariants(&ids, &["email:joe@example.com".to_owned()]).await?;
    f.owns(&winner, &["email:joe@example.com"]).await?;
    for (before, after) in users.iter().zip(after) {
        let wanted = if after.id == winner.id { &winner } else { before };
        equal(&after, wanted, "a user after the race")?;
    }

    Ok(())
}

pub async fn one_of_many_creates_gets_the_shared_identifier(f: Fixture) -> Result<(), Failure> {
    let mut names = vec!["email:joe@example.com".to_owned()];
    let mut creations = Vec::new();
    for n in 0..CALLERS {
        let own = [format!("handle:a{n}"), format!("social:github/{n}")];
        creations.push(f.creation(&[&own[0], &names[0], &own[1]])?);
        names.extend(own);
    }

    let ids = ids(&creations);
    let winner = one_wins(f.all(creations).await?, "user.identities[1].identifier")?;
    let left = f.invariants(&ids, &names).await?;
    equal(&left, &vec![winner], "the users")
}

pub async fn concurrent_links_of_one_user_all_succeed(f: Fixture) -> Result<(), Failure> {
    let user = f.create(&[]).await?;
    let names: Vec<_> = (0..CALLERS).map(|n| format!("handle:name{n}")).collect();
    let links = names
        .iter()
        .map(|name| Ok(f.mutation(user.id, link(name)?)))
        .collect::<Result<_, Failure>>()?;
    for (answer, name) in f.all(links).await?.into_iter().zip(&names) {
        let listed =
            answer?.identities.iter().any(|identity| identity.identifier.to_string() == *name);
        ensure(listed, format!("the answer to a link of {name} does not list it"))?;
    }
    let users = f.invariants(&[user.id], &names).await?;

    equal(&users[0].identities.len(), &CALLERS, "identities")
}

pub async fn one_of_many_changes_with_one_etag_succeeds(f: Fixture) -> Result<(), Failure> {
    let user = f.create(&["handle:joe"]).await?;
    let update = |n: usize| -> Result<Mutation, Failure> {
        let update = Update::from_mask(None, format!("Joe {n}"), Default::default())?;
        Ok(Mutation { etag: Some(user.etag()), ..f.mutation(user.id, UserChange::Update(update)) })
    };
    let outcomes = f.all((0..CALLERS).map(update).collect::<Result<_, _>>()?).await?;
    let (winners, losers): (Vec<_>, Vec<_>) = outcomes.into_iter().partition(Result::is_ok);
    equal(&winners.len(), &1, "successful changes")?;
    ensure(
        losers.iter().all(|loser| matches!(loser, Err(Error::EtagMismatch))),
        "a loser got another error",
    )?;
    for winner in winners {
        f.has(&winner?).await?;
    }

    Ok(())
}

pub async fn a_concurrent_refused_mutation_changes_nothing(f: Fixture) -> Result<(), Failure> {
    let owner = f.create(&["email:owner@example.com"]).await?;
    let mut names = Vec::new();
    let mut creations = Vec::new();
    for n in 0..CALLERS {
        let own = [format!("handle:a{n}"), format!("social:github/{n}")];
        let last = if n % 2 == 0 {
            "email:owner@example.com".to_owned()
        } else {
            format!("email:{n}@example.com")
        };
        creations.push(f.creation(&[&own[0], &own[1], &last])?);
        names.extend(own);
    }

    let ids = ids(&creations);
    for (n, outcome) in f.all(creations).await?.into_iter().enumerate() {
        match n % 2 {
            0 => taken(outcome, &owner, "user.identities[2].identifier")?,
            _ => f.has(&outcome?).await?,
        }
    }
    equal(&f.invariants(&ids, &names).await?.len(), &(CALLERS / 2), "users")?;

    f.has(&owner).await
}

/// Every user tries to take the next user's name, and may return to its own. No name may ever have
/// two owners.
pub async fn contested_names_have_one_owner(f: Fixture) -> Result<(), Failure> {
    let users = users(&f, 16).await?;
    let mut mutations = Vec::new();
    for round in 0..6 {
        for (n, user) in users.iter().enumerate() {
            let (own, next) = (
                format!("handle:user{n}"),
                format!("handle:user{}", (n + 1 + round % 3) % users.len()),
            );
            let change = match round % 3 {
                0 => replace(&own, &next)?,
                1 => unlink(&next)?,
                _ => link(&own)?,
            };
            mutations.push(f.mutation(user.id, change));
        }
    }

    for outcome in f.all(mutations).await? {
        let expected =
            matches!(outcome, Ok(_) | Err(Error::IdentityTaken { .. } | Error::NotOwned));
        ensure(expected, format!("an outcome that no order of the calls explains: {outcome:?}"))?;
    }

    let ids: Vec<_> = users.iter().map(|user| user.id).collect();
    let names: Vec<_> = (0..users.len()).map(|n| format!("handle:user{n}")).collect();
    equal(&f.invariants(&ids, &names).await?.len(), &users.len(), "users")
}

/// Starts a mutation and drops it at once, after one poll or after a millisecond.
async fn cancel(f: &Fixture, mutation: Mutation, n: usize) {
    let running = f.apply(mutation);
    match n % 3 {
        0 => drop(running),
        1 => drop(running.now_or_never()),
        _ => drop(tokio::time::timeout(Duration::from_millis(1), running).await),
    }
}

pub async fn a_cancelled_call_changes_all_or_nothing(f: Fixture) -> Result<(), Failure> {
    let mut names = Vec::new();
    let mut ids = Vec::new();
    let mut answers = Vec::new();
    for n in 0..CALLERS {
        let own = [format!("handle:a{n}"), format!("email:a{n}@example.com")];
        let send = || -> Result<Mutation, Failure> {
            Ok(Mutation {
                request: request(&format!("r{n}"), 1),
                ..f.creation(&[&own[0], &own[1]])?
            })
        };
        let (dropped, again) = (send()?, send()?);
        ids.extend([&dropped, &again].into_iter().filter_map(Mutation::user_id));
        cancel(&f, dropped, n).await;
        answers.push(f.mutate(again).await?);
        names.extend(own);
    }

    let users = f.invariants(&ids, &names).await?;
    equal(&users, &answers, "the users of the second calls")
}
