//! The audit: who did what, over all users of a tenant, the newest first; or what one caller did,
//! or what belonged to an operation.

use std::time::{Duration, Instant};

use askama::Template;
use axum::extract::{Path, Query};
use polynym_access::Role;
use polynym_client::Client;
use polynym_presentation::event;
use polynym_proto::v1;
use serde::Deserialize;

use super::asked::Asked;
use super::audit_live;
use super::period::{PAGE_SIZE, Period};
use crate::failure::Failure;
use crate::form::Form;
use crate::frame::Frame;
use crate::render::{Page, redirect, render};
use crate::short_id::ShortId;
use crate::views::Commands;
use crate::views::audit::{Day, Lines};
use crate::visit::Visit;
use crate::words::filters;

/// The time for which a page goes on to read events. After that it offers to continue.
const READ_TIME: Duration = Duration::from_secs(2);
/// The events that one call reads of an operation.
const LARGEST_PAGE: i32 = 1_000;

/// Changes of all users.
#[derive(Default)]
pub struct Changes {
    pub days: Vec<Day>,
    /// The token of the next page; empty after the last.
    pub token: String,
    /// The events that were searched for those asked for.
    pub events_read: i64,
    /// The number of users that cannot be read.
    pub unreadable: usize,
}

/// The query of the audit.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Position {
    /// The token of the page.
    after: String,
    /// `on` if the page follows the changes.
    live: String,
}

#[derive(Template)]
#[template(path = "pages/history/audit.html")]
struct AuditPage {
    frame: Frame,
    asked: Asked,
    period: Period,
    changes: Changes,
    /// The address of the first page.
    path: String,
    is_first: bool,
    /// The address of the next page; empty after the last.
    next: String,
    /// The token after which changes are followed; empty if they are not.
    live: String,
    commands: Commands,
}

/// All changes.
pub async fn all(
    visit: Visit,
    Path(tenant): Path<String>,
    Query(position): Query<Position>,
) -> Page {
    let path = format!("{}/audit", visit.frame(&tenant).home());
    show(visit, tenant, path, Asked::default(), position).await
}

/// Leads to the changes of what is asked for.
pub async fn submit(visit: Visit, Path(tenant): Path<String>, form: Form) -> Page {
    visit.require(Role::Viewer)?;
    let audit = format!("{}/audit", visit.frame(&tenant).home());
    Ok(redirect(&Asked::of_form(&form).address(&visit, &audit)))
}

/// Leads to the changes without a field of what is asked for.
pub async fn without(
    visit: Visit,
    Path((tenant, id, field)): Path<(String, ShortId, String)>,
) -> Page {
    visit.require(Role::Viewer)?;
    let audit = format!("{}/audit", visit.frame(&tenant).home());
    let asked = Asked::kept(&visit, id)?.without(&field);
    Ok(redirect(&asked.address(&visit, &audit)))
}

/// The changes that were asked for.
pub async fn page(
    visit: Visit,
    Path((tenant, id)): Path<(String, ShortId)>,
    Query(position): Query<Position>,
) -> Page {
    let asked = Asked::kept(&visit, id)?;
    let path = format!("{}/audit/{id}", visit.frame(&tenant).home());
    show(visit, tenant, path, asked, position).await
}

async fn show(
    visit: Visit,
    tenant: String,
    path: String,
    asked: Asked,
    Position { after, live }: Position,
) -> Page {
    visit.require(Role::Viewer)?;
    let is_first = after.is_empty();
    let request = v1::ListEventsRequest { page_token: after, ..asked.request(&tenant)? };
    let commands = commands(&tenant, &request);
    let client = visit.client(&tenant);
    // The stream begins before the list is read, so that no change is missed in between. A change
    // may come twice.
    let live = match is_first && live == "on" {
        true => audit_live::token(&client, &request).await?,
        false => String::new(),
    };
    let changes = read(&client, request).await?;
    let next = match &*changes.token {
        "" => String::new(),
        token => format!("{path}?{}", Period::default().next(token)),
    };
    let (frame, period) = (visit.frame(&tenant), asked.period.clone());
    Ok(render(&AuditPage { frame, asked, period, changes, path, is_first, next, live, commands }))
}

/// Reads events until a page is full, or for some time. Those of one operation are one line.
pub async fn read(client: &Client, mut request: v1::ListEventsRequest) -> Result<Changes, Failure> {
    let (began, mut lines, mut changes) = (Instant::now(), Lines::default(), Changes::default());
    let texts = [&request.caller, &request.operation_id, &request.reason];
    let is_search = !request.types.is_empty() || texts.iter().any(|text| !text.is_empty());
    request.page_size = PAGE_SIZE;
    loop {
        let answer = client.directory().list_events(request.clone()).await?;
        let mut more = lines.clone();
        more.add(&answer, request.operation_id.is_empty());
        if request.page_size > PAGE_SIZE && more.count() > PAGE_SIZE as usize {
            request.page_size = PAGE_SIZE;
            continue;
        }
        // Many changes of one operation follow each other.
        let is_one_operation = more.count() == lines.count();
        request.page_size = if is_one_operation { LARGEST_PAGE } else { PAGE_SIZE };
        lines = more;
        if is_search {
            changes.events_read += answer.events_read;
        }
        changes.unreadable += answer.unreadable_user_ids.len();
        request.page_token = answer.next_page_token;
        let is_last = request.page_token.is_empty();
        if is_last || lines.count() >= PAGE_SIZE as usize || began.elapsed() > READ_TIME {
            changes.token = request.page_token;
            changes.days = lines.days(is_last);
            return Ok(changes);
        }
    }
}

/// The calls that list the same.
pub fn commands(tenant: &str, request: &v1::ListEventsRequest) -> Commands {
    let mut cli = vec!["tenant", "events", "--tenant", tenant];
    let [from, to] = [&request.from, &request.to].map(|time| time.map(|time| time.to_string()));
    let kind = request.types.first().and_then(|kind| v1::EventType::try_from(*kind).ok());
    let kind = kind.map(event::name);
    let texts = [
        ("--caller", &request.caller),
        ("--operation", &request.operation_id),
        ("--reason", &request.reason),
    ];
    for (flag, text) in texts.into_iter().filter(|(_, text)| !text.is_empty()) {
        cli.extend([flag, text]);
    }
    for (flag, text) in [("--from", &from), ("--to", &to), ("--type", &kind)] {
        cli.extend(text.iter().flat_map(|text| [flag, text.as_str()]));
    }
    Commands::from_request(&cli, request)
}
