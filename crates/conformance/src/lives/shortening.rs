//! Shorter retention of history.

use std::sync::Arc;
use std::time::Duration;

use polynym_directory::{
    Mutation, PageLimit, Policies, Shortening, Tenant, Timestamp, Update, UserChange, check_history,
};

use crate::fixture::assertions::{ensure, equal};
use crate::fixture::factory::Failure;
use crate::fixture::{DAY, Fixture, at, create, draft, key, no_holds, unlink};

/// The maximum time until a store has removed old events.
const REMOVAL_TIMEOUT: Duration = Duration::from_secs(120);
/// The number of old events: more than the user's own record holds.
const OLD_EVENTS: i64 = 19;
const NEW_EVENTS: i64 = 2;

fn rename(n: i64) -> Result<UserChange, Failure> {
    Ok(UserChange::Update(Update::from_mask(None, format!("Joe {n}"), Default::default())?))
}

pub async fn a_shorter_retention_removes_old_events(f: Fixture) -> Result<(), Failure> {
    let now = Timestamp::now();
    let old = now.minus(200 * DAY);
    let id = f.ids.next_id();
    f.mutate(at(old, f.mutation(id, create(&["handle:joe"])?))).await?;
    f.mutate(at(old, f.mutation(id, UserChange::Link(draft("handle:gone")?)))).await?;
    f.mutate(at(old, f.mutation(id, unlink("handle:gone")?))).await?;
    for n in 3..OLD_EVENTS {
        f.mutate(at(old, f.mutation(id, rename(n)?))).await?;
    }
    for n in OLD_EVENTS..OLD_EVENTS + NEW_EVENTS {
        f.mutate(at(now, f.mutation(id, rename(n)?))).await?;
    }
    let gone = [key("default", "handle:gone")?];
    equal(&f.store.histories.ended_ownerships(&gone).await?[0].0.len(), &1, "a former owner")?;

    let by = Shortening { retention: 90 * DAY, now };
    let policies = Arc::new(Policies { history_retention: by.retention, ..no_holds() });
    let mut cursor = None;
    loop {
        let part = f.store.histories.shorten_history(&Tenant::DEFAULT, by, cursor).await?;
        for user in part.users {
            let again = f.mutation(user, UserChange::Reindex);
            f.apply(at(now, Mutation { policies: policies.clone(), ..again })).await?;
        }
        cursor = part.next;
        if cursor.is_none() {
            break;
        }
    }
    let since = std::time::Instant::now();
    loop {
        let history =
            f.store.histories.history(&Tenant::DEFAULT, id, None, PageLimit::unlimited()).await?;
        let events = history.ok_or("the user is gone")?.events;
        check_history(&f.get(id).await?.ok_or("the user is gone")?, &events)?;
        let left = events.iter().filter(|event| event.time < now).count();
        equal(&(events.len() - left), &(NEW_EVENTS as usize), "events within the retention")?;
        let ended = f.store.histories.ended_ownerships(&gone).await?;
        if left == 0 && ended[0].0.is_empty() {
            return Ok(());
        }
        ensure(since.elapsed() < REMOVAL_TIMEOUT, format!("{left} events are left"))?;
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}
