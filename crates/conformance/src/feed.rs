//! The feed of events. A store may report that it cannot have one, such as a cluster behind foreign
//! routers: then it has no cases.

use std::time::Duration;

use polynym_directory::stores::ResumeToken;
use polynym_directory::{Error, Event, User};

use super::fixture::assertions::{ensure, equal};
use super::fixture::factory::Failure;
use super::fixture::{Fixture, link, unlink};

/// The maximum time until an event arrives.
const ARRIVAL_TIMEOUT: Duration = Duration::from_secs(20);
const NO_EVENT: &str = "the feed has stopped";

fn facts(event: &Event) -> (locality_uuid::LocalityId, u64) {
    (event.user, event.sequence)
}

async fn changed(f: &Fixture, user: &User) -> Result<User, Failure> {
    let linked = f.change(user, link("handle:other")?).await?;
    Ok(f.change(&linked, unlink("handle:other")?).await?)
}

/// The position at the end of the feed; `None` if the store cannot have a feed.
async fn end_of_feed(f: &Fixture) -> Result<Option<ResumeToken>, Failure> {
    match f.store.feed.position().await {
        Err(Error::WatchUnsupported) => Ok(None),
        position => Ok(Some(position?)),
    }
}

/// A feed resumes after each of its events. It may repeat an event.
pub async fn a_feed_resumes_after_each_event(f: Fixture) -> Result<(), Failure> {
    let feed = &f.store.feed;
    let joe = f.create(&["handle:joe"]).await?;
    let Some(start) = end_of_feed(&f).await? else { return Ok(()) };
    let ann = f.create(&["handle:ann"]).await?;
    changed(&f, &joe).await?;
    let wanted = [(ann.id, 1), (joe.id, 2), (joe.id, 3)];

    let (mut position, mut seen, mut tokens) = (start.clone(), Vec::new(), vec![start]);
    while seen.len() < wanted.len() {
        let page = feed.events(&position, ARRIVAL_TIMEOUT).await?;
        ensure(!page.events.is_empty(), NO_EVENT)?;
        position = page.resume_token;
        for (event, after) in page.events {
            if !seen.contains(&facts(&event)) {
                seen.push(facts(&event));
                tokens.push(after);
            }
        }
    }
    equal(&seen, &wanted.to_vec(), "the events in the order of their commits")?;
    for (n, token) in tokens.iter().enumerate().take(wanted.len()) {
        let page = feed.events(token, ARRIVAL_TIMEOUT).await?;
        let (event, _) = page.events.first().ok_or(NO_EVENT)?;
        equal(&facts(event), &wanted[n], "the next event")?;
    }
    Ok(())
}

/// An idle feed answers after its timeout and then returns later events.
pub async fn an_idle_feed_answers_in_time(f: Fixture) -> Result<(), Failure> {
    let feed = &f.store.feed;
    let Some(start) = end_of_feed(&f).await? else { return Ok(()) };
    let idle = feed.events(&start, Duration::from_millis(50)).await?;
    ensure(idle.events.is_empty(), "an unexpected event")?;
    let joe = f.create(&["handle:joe"]).await?;
    let page = feed.events(&idle.resume_token, ARRIVAL_TIMEOUT).await?;
    equal(&facts(&page.events.first().ok_or(NO_EVENT)?.0), &(joe.id, 1), "the event")
}
