//! What a caller did, such as in an hour, and what belonged to an operation: the changes of all
//! users of a tenant.

use std::time::{Duration, Instant};

use askama::Template;
use axum::extract::{Path, Query};
use polynym_access::Role;
use polynym_client::Client;
use polynym_presentation::event;
use polynym_proto::v1;
use url::form_urlencoded::{self, Serializer};

use super::period::{PAGE_SIZE, Period};
use crate::failure::Failure;
use crate::form::Form;
use crate::frame::Frame;
use crate::render::{Page, redirect, render};
use crate::short_id::ShortId;
use crate::views::event::views;
use crate::views::{Commands, EventView};
use crate::visit::Visit;

/// The time for which a page goes on to read users. After that it offers to continue.
const READ_TIME: Duration = Duration::from_secs(2);
/// What a kept list of changes begins with, in contrast to a search.
const MARK: &str = "changes?";

/// Changes of all users.
#[derive(Default)]
pub struct Changes {
    pub events: Vec<EventView>,
    /// The token of the next page; empty after the last.
    pub token: String,
    /// The users that were read.
    pub users_read: i64,
    /// The number of users that cannot be read.
    pub unreadable: usize,
}

#[derive(Template)]
#[template(path = "pages/history/changes.html")]
struct ChangesPage {
    frame: Frame,
    /// The path of this page; empty if nothing was asked yet.
    path: String,
    caller: String,
    operation: String,
    period: Period,
    changes: Changes,
    next: String,
    commands: Option<Commands>,
}

/// The form alone.
pub async fn form(visit: Visit, Path(tenant): Path<String>) -> Page {
    visit.require(Role::Viewer)?;
    Ok(render(&ChangesPage {
        frame: visit.frame(&tenant),
        path: String::new(),
        caller: String::new(),
        operation: String::new(),
        period: Period::default(),
        changes: Changes::default(),
        next: String::new(),
        commands: None,
    }))
}

/// Keeps what is asked for under a short id: a caller may have the name of a person.
pub async fn submit(visit: Visit, Path(tenant): Path<String>, form: Form) -> Page {
    visit.require(Role::Viewer)?;
    let names = ["caller", "operation", "from", "to", "kind"];
    let fields = names.map(|name| (name, form.get(name)));
    let given = fields.into_iter().filter(|(_, value)| !value.is_empty());
    let query = Serializer::new(String::new()).extend_pairs(given).finish();
    let id = visit.session.queries.add(&format!("{MARK}{query}"));
    Ok(redirect(&format!("{}/changes/{id}", visit.frame(&tenant).home())))
}

/// The changes.
pub async fn page(
    visit: Visit,
    Path((tenant, id)): Path<(String, ShortId)>,
    Query(Period { after, .. }): Query<Period>,
) -> Page {
    visit.require(Role::Viewer)?;
    let kept = visit.session.queries.get(id);
    let query = kept.as_deref().and_then(|text| text.strip_prefix(MARK));
    let query = query.ok_or(Failure::SearchGone)?;
    let mut period = Period { after, ..Period::default() };
    let (mut caller, mut operation) = (String::new(), String::new());
    for (name, value) in form_urlencoded::parse(query.as_bytes()) {
        let field = match &*name {
            "caller" => &mut caller,
            "operation" => &mut operation,
            "from" => &mut period.from,
            "to" => &mut period.to,
            _ => &mut period.kind,
        };
        *field = value.into_owned();
    }
    let request = v1::ListEventsRequest {
        tenant: tenant.clone(),
        from: period.begin()?,
        to: period.end()?,
        types: period.types(),
        caller: caller.clone(),
        operation_id: operation.clone(),
        page_token: period.after.clone(),
        page_size: PAGE_SIZE,
    };
    let commands = Some(commands(&tenant, &request));
    let changes = read(&visit.client(&tenant), request).await?;
    let frame = visit.frame(&tenant);
    let path = format!("{}/changes/{id}", frame.home());
    let next = match &*changes.token {
        "" => String::new(),
        token => format!("{path}?{}", Period::default().next(token)),
    };
    Ok(render(&ChangesPage { frame, path, caller, operation, period, changes, next, commands }))
}

/// Reads users until a page is full, or for some time.
pub async fn read(client: &Client, mut request: v1::ListEventsRequest) -> Result<Changes, Failure> {
    let (began, mut users_read, mut unreadable, mut events) = (Instant::now(), 0, 0, Vec::new());
    loop {
        request.page_size = PAGE_SIZE - events.len() as i32;
        let answer = client.directory().list_events(request.clone()).await?;
        users_read += answer.users_read;
        unreadable += answer.unreadable_user_ids.len();
        events.extend(answer.events);
        request.page_token = answer.next_page_token;
        let is_full = events.len() >= PAGE_SIZE as usize || began.elapsed() > READ_TIME;
        if is_full || request.page_token.is_empty() {
            let events = views(&events);
            return Ok(Changes { events, token: request.page_token, users_read, unreadable });
        }
    }
}

/// The calls that list the same.
pub fn commands(tenant: &str, request: &v1::ListEventsRequest) -> Commands {
    let mut cli = vec!["tenant", "events", "--tenant", tenant];
    let [from, to] = [&request.from, &request.to].map(|time| time.map(|time| time.to_string()));
    let kind = request.types.first().and_then(|kind| v1::EventType::try_from(*kind).ok());
    let kind = kind.map(event::name);
    let texts = [("--caller", &request.caller), ("--operation", &request.operation_id)];
    for (flag, text) in texts.into_iter().filter(|(_, text)| !text.is_empty()) {
        cli.extend([flag, text]);
    }
    for (flag, text) in [("--from", &from), ("--to", &to), ("--type", &kind)] {
        cli.extend(text.iter().flat_map(|text| [flag, text.as_str()]));
    }
    Commands::from_request(&cli, request)
}
