//! The feed of events. A store may report that it cannot have one, such as a cluster behind foreign
//! routers: then it has no cases.

use std::sync::Arc;
use std::time::Duration;

use polynym_directory::{
    Error, Event, Mutation, NewUser, PageLimit, ResumeToken, Tenant, Update, User, UserChange,
    Value,
};

use super::fixture::assertions::{ensure, equal};
use super::fixture::factory::Failure;
use super::fixture::{Fixture, draft, link, request, tenant, unlink};

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
        let page = feed.events(&Tenant::DEFAULT, &position, ARRIVAL_TIMEOUT).await?;
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
        let page = feed.events(&Tenant::DEFAULT, token, ARRIVAL_TIMEOUT).await?;
        let (event, _) = page.events.first().ok_or(NO_EVENT)?;
        equal(&facts(event), &wanted[n], "the next event")?;
    }
    Ok(())
}

/// An idle feed answers after its timeout and then returns later events.
pub async fn an_idle_feed_answers_in_time(f: Fixture) -> Result<(), Failure> {
    let feed = &f.store.feed;
    let Some(start) = end_of_feed(&f).await? else { return Ok(()) };
    let idle = feed.events(&Tenant::DEFAULT, &start, Duration::from_millis(50)).await?;
    ensure(idle.events.is_empty(), "an unexpected event")?;
    let joe = f.create(&["handle:joe"]).await?;
    let page = feed.events(&Tenant::DEFAULT, &idle.resume_token, ARRIVAL_TIMEOUT).await?;
    equal(&facts(&page.events.first().ok_or(NO_EVENT)?.0), &(joe.id, 1), "the event")
}

/// A feed has the events of its tenant alone, also for those who read it after a restart. The
/// events of others move its position on.
pub async fn a_feed_has_the_events_of_its_tenant(f: Fixture) -> Result<(), Failure> {
    let Some(start) = end_of_feed(&f).await? else { return Ok(()) };
    let other = tenant("other")?;
    f.store.feed.events(&other, &start, Duration::ZERO).await?;
    let joe = f.create(&["handle:joe"]).await?;
    let ann = f.mutate(Mutation { tenant: other.clone(), ..f.creation(&["handle:ann"])? }).await?;
    changed(&f, &joe).await?;

    let seen = events_after(&f, start.clone(), 3).await?;
    equal(&all_facts(&seen), &[1, 2, 3].map(|n| (joe.id, n)).to_vec(), "the tenant's events")?;
    let only_anns = async |f: &Fixture| -> Result<ResumeToken, Failure> {
        let (mut position, mut seen) = (start.clone(), Vec::new());
        while seen.is_empty() {
            let page = f.store.feed.events(&other, &position, ARRIVAL_TIMEOUT).await?;
            position = page.resume_token;
            seen.extend(page.events.iter().map(|(event, _)| facts(event)));
        }
        equal(&seen, &vec![(ann.id, 1)], "the other tenant's events")?;
        Ok(position)
    };
    only_anns(&f).await?;
    let f = f.reopen().await?;
    let position = only_anns(&f).await?;
    let idle = f.store.feed.events(&other, &position, Duration::from_millis(50)).await?;
    ensure(idle.events.is_empty(), "an event of another tenant")?;
    f.change(&joe, link("handle:third")?).await?;
    let idle = f.store.feed.events(&other, &idle.resume_token, Duration::from_millis(50)).await?;
    ensure(idle.events.is_empty(), "an event of another tenant")
}

/// The next `count` events after a position, without repeated ones.
async fn events_after(
    f: &Fixture,
    mut position: ResumeToken,
    count: usize,
) -> Result<Vec<Arc<Event>>, Failure> {
    let mut seen: Vec<Arc<Event>> = Vec::new();
    while seen.len() < count {
        let page = f.store.feed.events(&Tenant::DEFAULT, &position, ARRIVAL_TIMEOUT).await?;
        ensure(!page.events.is_empty(), NO_EVENT)?;
        position = page.resume_token;
        for (event, _) in page.events {
            if !seen.iter().any(|other| facts(other) == facts(&event)) {
                seen.push(event);
            }
        }
    }
    Ok(seen)
}

fn all_facts(events: &[Arc<Event>]) -> Vec<(locality_uuid::LocalityId, u64)> {
    events.iter().map(|event| facts(event)).collect()
}

/// A user that is created again after its purge has all events of its new history, for those who
/// have seen the former one, too.
pub async fn a_user_created_again_has_all_events(f: Fixture) -> Result<(), Failure> {
    let Some(start) = end_of_feed(&f).await? else { return Ok(()) };
    f.store.feed.events(&Tenant::DEFAULT, &start, Duration::ZERO).await?;
    let joe = f.create(&["handle:joe"]).await?;
    changed(&f, &joe).await?;
    let seen = events_after(&f, start, 3).await?;
    equal(&all_facts(&seen), &[1, 2, 3].map(|n| (joe.id, n)).to_vec(), "the events")?;

    let Some(start) = end_of_feed(&f).await? else { return Ok(()) };
    f.apply(f.mutation(joe.id, UserChange::Purge)).await?;
    let again = NewUser { identities: vec![draft("handle:joe")?], ..NewUser::default() };
    f.apply(f.mutation(joe.id, UserChange::Create(again))).await?;
    f.change(&joe, link("handle:other")?).await?;
    let seen = events_after(&f, start, 2).await?;
    equal(&all_facts(&seen), &[1, 2].map(|n| (joe.id, n)).to_vec(), "the new events")
}

/// A write of a user that adds no event sends none, whether or not the reader of the feed knows the
/// user.
pub async fn a_write_without_an_event_sends_none(f: Fixture) -> Result<(), Failure> {
    let joe = f.create(&["handle:joe"]).await?;
    changed(&f, &joe).await?;
    let Some(start) = end_of_feed(&f).await? else { return Ok(()) };
    f.apply(f.mutation(joe.id, UserChange::Reindex)).await?;
    let ann = f.create(&["handle:ann"]).await?;
    let page = f.store.feed.events(&Tenant::DEFAULT, &start, ARRIVAL_TIMEOUT).await?;
    let (event, _) = page.events.first().ok_or(NO_EVENT)?;
    equal(&facts(event), &(ann.id, 1), "the first event")?;
    let f = f.reopen().await?;
    let page = f.store.feed.events(&Tenant::DEFAULT, &start, ARRIVAL_TIMEOUT).await?;
    let (event, _) = page.events.first().ok_or(NO_EVENT)?;
    equal(&facts(event), &(ann.id, 1), "the first event after a restart")
}

/// The creation of a user with `count` attributes of `bytes` each.
fn with_attributes(f: &Fixture, count: usize, bytes: usize) -> Mutation {
    let attribute = |n| (format!("attribute {n}"), Value::String("x".repeat(bytes)));
    let attributes = (0..count).map(attribute).collect();
    f.mutation(f.ids.next_id(), UserChange::Create(NewUser { attributes, ..NewUser::default() }))
}

/// Events of any size have the names of attributes in the feed and in histories, also for those who
/// have not written them.
pub async fn events_have_the_names_of_attributes(f: Fixture) -> Result<(), Failure> {
    let Some(start) = end_of_feed(&f).await? else { return Ok(()) };
    f.mutate(with_attributes(&f, 3, 10)).await?;
    let large = [1, 2].map(|n| Mutation {
        request: request(&n.to_string(), n),
        ..with_attributes(&f, 60, 1_000)
    });
    let mut users = Vec::new();
    for outcome in f.store.mutations.mutate_all(large.to_vec()).await {
        users.push(outcome?.into_user()?);
    }
    f.mutate(with_attributes(&f, 60, 1_000)).await?;
    let paths = ["attributes".to_owned()];
    let removal = Update::from_mask(Some(&paths), String::new(), Default::default())?;
    f.change(&users[0], UserChange::Update(removal)).await?;

    let f = f.reopen().await?;
    let seen = events_after(&f, start, 5).await?;
    for (event, fields) in seen.iter().zip([3, 60, 60, 60, 60]) {
        equal(&event.changes.fields.len(), &fields, "fields of an event")?;
        let has_name = |path: &str| path.starts_with("attributes.attribute ");
        ensure(event.changes.fields.iter().all(|field| has_name(&field.path)), "a name")?;
        let (limit, tenant) = (PageLimit::unlimited(), Tenant::DEFAULT);
        let history = f.store.histories.history(&tenant, event.user, None, limit).await?;
        let events = history.ok_or("the user is gone")?.events;
        ensure(events.contains(&**event), "the event in the history of its user")?;
    }
    Ok(())
}
