//! Lines of the audit as a stream for scripts: changes as they happen, with names.

use std::sync::Arc;

use askama::Template;
use axum::body::Body;
use axum::extract::{RawQuery, State};
use http::{HeaderMap, Response};
use polynym_client::Client;
use polynym_proto::v1;

use super::asked::Asked;
use super::wanted::Wanted;
use crate::console::Shared;
use crate::failure::Failure;
use crate::form::Path;
use crate::frame::Frame;
use crate::pages::events::{EventLines, follow_events};
use crate::render::html;
use crate::short_id::ShortId;
use crate::views::audit::{Day, Lines};
use crate::views::event::user_ids;
use crate::views::person::People;
use crate::visit::Visit;
use crate::words::filters;

#[derive(Template)]
#[template(path = "partials/audit_lines.html")]
struct LinesPart {
    frame: Frame,
    days: Vec<Day>,
}

/// The lines of the changes that are asked for.
struct AuditLines(Wanted);

/// The call that follows the kinds of changes that are asked for.
fn watch(wanted: &Wanted) -> v1::WatchRequest {
    let (tenant, types) = (wanted.events.tenant.clone(), wanted.events.types.clone());
    let user_ids = Some(wanted.user_id.clone()).filter(|id| !id.is_empty());
    v1::WatchRequest {
        tenant,
        types,
        user_ids: user_ids.into_iter().collect(),
        ..Default::default()
    }
}

/// The token from which on changes are followed: now.
pub async fn token(client: &Client, wanted: &Wanted) -> Result<String, Failure> {
    let mut answers = client.directory().watch(watch(wanted)).await?;
    let first = answers.message().await?;
    Ok(first.map(|answer| answer.resume_token).unwrap_or_default())
}

/// All changes.
pub async fn all(
    State(shared): State<Arc<Shared>>,
    visit: Result<Visit, Failure>,
    Path(tenant): Path<String>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Result<Response<Body>, Failure> {
    let asked = Ok(Asked::default());
    stream(shared, visit, tenant, (asked, query), &headers).await
}

/// The changes that are asked for.
pub async fn some(
    State(shared): State<Arc<Shared>>,
    visit: Result<Visit, Failure>,
    Path((tenant, id)): Path<(String, ShortId)>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Result<Response<Body>, Failure> {
    let asked = visit.as_ref().map_or(Ok(Asked::default()), |visit| Asked::kept(visit, id));
    stream(shared, visit, tenant, (asked, query), &headers).await
}

async fn stream(
    shared: Arc<Shared>,
    visit: Result<Visit, Failure>,
    tenant: String,
    (asked, query): (Result<Asked, Failure>, Option<String>),
    headers: &HeaderMap,
) -> Result<Response<Body>, Failure> {
    let request = asked.and_then(|asked| asked.request(&tenant));
    let mut watched = request.as_ref().map(watch).unwrap_or_default();
    let query = query.unwrap_or_default();
    let mut pairs = url::form_urlencoded::parse(query.as_bytes());
    if let Some((_, token)) = pairs.find(|(name, _)| name == "after") {
        watched.resume_token = token.into_owned();
    }
    let (visit, lines) = match (visit, request) {
        (Ok(visit), Ok(request)) => (Ok(visit), AuditLines(request)),
        (Err(failure), _) | (_, Err(failure)) => (Err(failure), AuditLines(Default::default())),
    };
    follow_events(shared, visit, tenant, (watched, lines), headers).await
}

impl EventLines for AuditLines {
    async fn lines(&self, visit: &Visit, tenant: &str, mut events: Vec<v1::Event>) -> String {
        events.retain(|event| self.0.has(event));
        if events.is_empty() {
            return String::new();
        }
        // The newest come first.
        events.reverse();
        let display_names = People::display_names(&visit.client(tenant), user_ids(&events)).await;
        let page = v1::ListEventsResponse { events, display_names, ..Default::default() };
        let mut lines = Lines::default();
        lines.add(&page, self.0.events.operation_id.is_empty());
        let part = LinesPart { frame: visit.frame(tenant), days: lines.days(true) };
        html(&part).unwrap_or_default()
    }
}
