//! The audit: who did what, over all users of a tenant, the newest first; or what one caller did,
//! or what belonged to an operation.

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
use crate::views::Commands;
use crate::views::audit::{Day, Lines};
use crate::visit::Visit;

/// The time for which a page goes on to read events. After that it offers to continue.
const READ_TIME: Duration = Duration::from_secs(2);
/// The prefix of a kept query for changes. Kept searches do not have it.
const MARK: &str = "changes?";

/// Changes of all users.
#[derive(Default)]
pub struct Changes {
    pub days: Vec<Day>,
    /// The token of the next page; empty after the last.
    pub token: String,
    /// The events that were read.
    pub events_read: i64,
    /// The number of users that cannot be read.
    pub unreadable: usize,
}

/// The fields of the form, as typed.
#[derive(Default)]
struct Asked {
    caller: String,
    operation: String,
    reason: String,
    period: Period,
}

#[derive(Template)]
#[template(path = "pages/history/audit.html")]
struct AuditPage {
    frame: Frame,
    asked: Asked,
    period: Period,
    changes: Changes,
    /// The address of the first page.
    first: String,
    /// The address of the next page; empty after the last.
    next: String,
    commands: Commands,
}

/// All changes.
pub async fn all(
    visit: Visit,
    Path(tenant): Path<String>,
    Query(Period { after, .. }): Query<Period>,
) -> Page {
    let path = format!("{}/audit", visit.frame(&tenant).home());
    show(visit, tenant, path, Asked::default(), after).await
}

/// Keeps what is asked for under a short id: a caller may have the name of a person.
pub async fn submit(visit: Visit, Path(tenant): Path<String>, form: Form) -> Page {
    visit.require(Role::Viewer)?;
    let names = ["caller", "operation", "reason", "from", "to", "kind"];
    let fields = names.map(|name| (name, form.get(name)));
    let given = fields.into_iter().filter(|(_, value)| !value.is_empty());
    let query = Serializer::new(String::new()).extend_pairs(given).finish();
    let home = visit.frame(&tenant).home();
    if query.is_empty() {
        return Ok(redirect(&format!("{home}/audit")));
    }
    let id = visit.session.queries.add(&format!("{MARK}{query}"));
    Ok(redirect(&format!("{home}/audit/{id}")))
}

/// The changes that were asked for.
pub async fn page(
    visit: Visit,
    Path((tenant, id)): Path<(String, ShortId)>,
    Query(Period { after, .. }): Query<Period>,
) -> Page {
    let kept = visit.session.queries.get(id);
    let query = kept.as_deref().and_then(|text| text.strip_prefix(MARK));
    let asked = Asked::read(query.ok_or(Failure::SearchGone)?);
    let path = format!("{}/audit/{id}", visit.frame(&tenant).home());
    show(visit, tenant, path, asked, after).await
}

async fn show(visit: Visit, tenant: String, path: String, asked: Asked, after: String) -> Page {
    visit.require(Role::Viewer)?;
    let request = v1::ListEventsRequest {
        tenant: tenant.clone(),
        from: asked.period.begin()?,
        to: asked.period.end()?,
        types: asked.period.types(),
        caller: asked.caller.clone(),
        operation_id: asked.operation.clone(),
        reason: asked.reason.clone(),
        page_token: after,
        page_size: PAGE_SIZE,
    };
    let commands = commands(&tenant, &request);
    let first = if request.page_token.is_empty() { String::new() } else { path.clone() };
    let changes = read(&visit.client(&tenant), request).await?;
    let next = match &*changes.token {
        "" => String::new(),
        token => format!("{path}?{}", Period::default().next(token)),
    };
    let (frame, period) = (visit.frame(&tenant), asked.period.clone());
    Ok(render(&AuditPage { frame, asked, period, changes, first, next, commands }))
}

impl Asked {
    /// The fields in a kept query.
    fn read(query: &str) -> Self {
        let mut asked = Self::default();
        for (name, value) in form_urlencoded::parse(query.as_bytes()) {
            let field = match &*name {
                "caller" => &mut asked.caller,
                "operation" => &mut asked.operation,
                "reason" => &mut asked.reason,
                "from" => &mut asked.period.from,
                "to" => &mut asked.period.to,
                _ => &mut asked.period.kind,
            };
            *field = value.into_owned();
        }
        asked
    }

    fn is_filter(&self) -> bool {
        let texts = [&self.caller, &self.operation, &self.reason];
        self.period.is_filter() || texts.iter().any(|text| !text.is_empty())
    }
}

/// Reads events until a page is full, or for some time. Those of one operation are one line.
pub async fn read(client: &Client, mut request: v1::ListEventsRequest) -> Result<Changes, Failure> {
    let (began, mut lines, mut changes) = (Instant::now(), Lines::default(), Changes::default());
    request.page_size = PAGE_SIZE;
    loop {
        let answer = client.directory().list_events(request.clone()).await?;
        changes.events_read += answer.events_read;
        changes.unreadable += answer.unreadable_user_ids.len();
        lines.add(&answer, request.operation_id.is_empty());
        request.page_token = answer.next_page_token;
        let is_full = lines.count() >= PAGE_SIZE as usize || began.elapsed() > READ_TIME;
        if is_full || request.page_token.is_empty() {
            changes.token = request.page_token;
            changes.days = lines.days();
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
