//! The page of events: those since its address was made, and with scripts those that follow.

use std::time::Duration;

use askama::Template;
use axum::extract::RawQuery;
use polynym_access::Role;
use polynym_client::Client;
use polynym_presentation::event::{self, KINDS};
use polynym_proto::v1::watch_response::Kind;
use polynym_proto::v1::{Event, EventType, WatchRequest};
use tokio::time::timeout;

use super::query::Selection;
use crate::failure::Failure;
use crate::form::Path;
use crate::frame::Frame;
use crate::render::{Page, render};
use crate::views::Commands;
use crate::views::event::{EventView, user_ids, views};
use crate::views::person::People;
use crate::visit::Visit;
use crate::words::filters;

/// The events of a page.
const PAGE_SIZE: usize = 25;
/// The time without another event after which the page is shown.
const PAUSE: Duration = Duration::from_millis(250);

#[derive(Template)]
#[template(path = "pages/events/events.html")]
struct EventsPage {
    frame: Frame,
    selection: Selection,
    /// The events, newest first.
    events: Vec<EventView>,
    /// Whether there are more than the page shows.
    has_more: bool,
    /// The token to resume after these events.
    token: String,
    commands: Commands,
}

impl EventsPage {
    fn is_chosen(&self, kind: &EventType) -> bool {
        self.selection.kinds.contains(kind)
    }

    /// The query of the page that goes on after these events.
    fn query(&self) -> String {
        self.selection.query(&self.token, self.selection.is_live)
    }

    /// The same with or without following.
    fn live(&self) -> String {
        self.selection.query(&self.token, true)
    }

    fn still(&self) -> String {
        self.selection.query(&self.token, false)
    }
}

/// The events since the token of the address; without one, those from now on.
pub async fn page(visit: Visit, Path(tenant): Path<String>, RawQuery(query): RawQuery) -> Page {
    visit.require(Role::Viewer)?;
    let selection = Selection::read(&query.unwrap_or_default());
    let request = selection.request(&tenant);
    let client = visit.client(&tenant);
    let (mut events, token) = read(&client, request.clone()).await?;
    events.reverse();
    let people = People::read(&client, user_ids(&events)).await;
    let commands = commands(&selection, &tenant, request);
    Ok(render(&EventsPage {
        frame: visit.frame(&tenant),
        has_more: events.len() == PAGE_SIZE,
        selection,
        events: views(&events, &people),
        token,
        commands,
    }))
}

/// The events after a token that are there already, and the token after them.
async fn read(client: &Client, request: WatchRequest) -> Result<(Vec<Event>, String), Failure> {
    let is_resumed = !request.resume_token.is_empty();
    let mut answers = client.directory().watch(request).await?;
    // The first answer has no event.
    let first = answers.message().await?;
    let mut token = first.map(|answer| answer.resume_token).unwrap_or_default();
    let mut events = Vec::new();
    while is_resumed && events.len() < PAGE_SIZE {
        let Ok(answer) = timeout(PAUSE, answers.message()).await else { break };
        let Some(answer) = answer? else { break };
        token = answer.resume_token;
        match answer.kind {
            Some(Kind::Event(event)) => events.push(event),
            _ => break,
        }
    }
    Ok((events, token))
}

/// The calls that follow the same events.
fn commands(selection: &Selection, tenant: &str, request: WatchRequest) -> Commands {
    let kinds: Vec<_> = selection.kinds.iter().map(|kind| event::name(*kind)).collect();
    let mut cli = vec!["watch", "--tenant", tenant];
    cli.extend(kinds.iter().flat_map(|kind| ["--type", kind]));
    if !selection.user.is_empty() {
        cli.extend(["--user", &selection.user]);
    }
    let request = WatchRequest { resume_token: String::new(), ..request };
    Commands::from_request(&cli, &request)
}
