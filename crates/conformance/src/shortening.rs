//! Shorter retentions of history.

use std::sync::Arc;
use std::time::Duration;

use polynym_directory::{
    Mutation, Policies, Shortening, Tenant, Timestamp, Update, UserChange, check_history,
};

use super::Failure;
use super::assertions::{ensure, equal};
use super::fixture::{DAY, Fixture, create, draft, free, key, unlink};

/// The longest that a store may take to remove what is over age.
const PATIENCE: Duration = Duration::from_secs(120);
/// The events of long ago: more than are kept with the user.
const OLD: i64 = 19;
const NEW: i64 = 2;

fn at(time: Timestamp, mutation: Mutation) -> Mutation {
    Mutation { time, ..mutation }
}

fn rename(n: i64) -> Result<UserChange, Failure> {
    Ok(UserChange::Update(Update::from_mask(None, format!("Joe {n}"), Default::default())?))
}

pub async fn what_a_shorter_retention_does_not_keep_is_removed(f: Fixture) -> Result<(), Failure> {
    let now = Timestamp::now();
    let old = now.minus(200 * DAY);
    let id = f.ids.next_id();
    f.mutate(at(old, f.mutation(id, create(&["handle:joe"])?))).await?;
    f.mutate(at(old, f.mutation(id, UserChange::Link(draft("handle:gone")?)))).await?;
    f.mutate(at(old, f.mutation(id, unlink("handle:gone")?))).await?;
    for n in 3..OLD {
        f.mutate(at(old, f.mutation(id, rename(n)?))).await?;
    }
    for n in OLD..OLD + NEW {
        f.mutate(at(now, f.mutation(id, rename(n)?))).await?;
    }
    let gone = [key("default", "handle:gone")?];
    equal(&f.store.histories.ended_ownerships(&gone).await?[0].0.len(), &1, "a former owner")?;

    let by = Shortening { retention: 90 * DAY, now };
    let policies = Arc::new(Policies { history_retention: by.retention, ..free() });
    let mut place = None;
    loop {
        let part = f.store.histories.shorten_history(&Tenant::DEFAULT, by, place).await?;
        for user in part.users {
            let again = f.mutation(user, UserChange::Reindex);
            f.store
                .mutations
                .mutate(at(now, Mutation { policies: policies.clone(), ..again }))
                .await?;
        }
        place = part.next;
        if place.is_none() {
            break;
        }
    }
    let since = std::time::Instant::now();
    loop {
        let history = f.store.histories.history(&Tenant::DEFAULT, id, None, 1_000).await?;
        let events = history.ok_or("the user is gone")?.events;
        check_history(&f.get(id).await?.ok_or("the user is gone")?, &events)?;
        let left = events.iter().filter(|event| event.time < now).count();
        equal(&(events.len() - left), &(NEW as usize), "events that are kept")?;
        let ended = f.store.histories.ended_ownerships(&gone).await?;
        if left == 0 && ended[0].0.is_empty() {
            return Ok(());
        }
        ensure(since.elapsed() < PATIENCE, format!("{left} events are left"))?;
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}
