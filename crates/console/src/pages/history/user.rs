//! The history of a user: its changes, the newest first.

use askama::Template;
use http::StatusCode;
use polynym_access::Role;
use polynym_presentation::event;
use polynym_proto::v1;
use v1::list_history_request::User;

use super::period::{PAGE_SIZE, Period};
use crate::form::{Path, Query};
use crate::frame::Frame;
use crate::render::{Page, render_with_status};
use crate::views::event::{user_ids, views};
use crate::views::person::{People, merged_name};
use crate::views::{Commands, EventView, UserView};
use crate::visit::Visit;
use crate::words::filters;

#[derive(Template)]
#[template(path = "pages/history/user.html")]
struct HistoryPage {
    frame: Frame,
    /// The id of the user, also if it was merged.
    id: String,
    title: String,
    period: Period,
    events: Vec<EventView>,
    /// The query of the next page; empty after the last.
    next: String,
    commands: Commands,
}

/// The page.
pub async fn page(
    visit: Visit,
    Path((tenant, id)): Path<(String, String)>,
    Query(period): Query<Period>,
) -> Page {
    visit.require(Role::Viewer)?;
    let client = visit.client(&tenant);
    let is_wrong = period.problem().is_some();
    let request = v1::ListHistoryRequest {
        tenant: tenant.clone(),
        user: Some(User::UserId(id.clone())),
        from: period.begin().unwrap_or_default(),
        to: period.end().unwrap_or_default(),
        types: period.types(),
        page_size: PAGE_SIZE,
        page_token: period.after.clone(),
    };
    let get = v1::GetUserRequest { user_id: id.clone(), ..Default::default() };
    let directory = client.directory();
    // Of a period that is none, no changes are read.
    let list = async {
        match is_wrong {
            true => Ok(v1::ListHistoryResponse::default()),
            false => directory.list_history(request.clone()).await,
        }
    };
    let (answer, user) = tokio::join!(list, directory.get_user(get));
    let (answer, user) = (answer?, user?);
    let own = user.user.filter(|_| user.merged_from.is_empty());
    let title = match own {
        Some(user) => UserView::of(&user).title().to_owned(),
        None => merged_name(&client, &id).await.unwrap_or_else(|| id.clone()),
    };
    let commands = commands(&tenant, &id, &request);
    let next = answer.next_page_token;
    let next = if next.is_empty() { next } else { period.next(&next) };
    let others = user_ids(&answer.events).filter(|other| *other != id);
    let events = views(&answer.events, &People::read(&client, others).await);
    let frame = visit.frame(&tenant);
    let status = if is_wrong { StatusCode::UNPROCESSABLE_ENTITY } else { StatusCode::OK };
    let page = HistoryPage { frame, id, title, period, events, next, commands };
    Ok(render_with_status(&page, status))
}

/// The calls that list the same.
pub fn commands(tenant: &str, id: &str, request: &v1::ListHistoryRequest) -> Commands {
    let mut cli = vec!["user", "history", id, "--tenant", tenant];
    let [from, to] = [&request.from, &request.to].map(|time| time.map(|time| time.to_string()));
    for (flag, value) in [("--from", &from), ("--to", &to)] {
        cli.extend(value.iter().flat_map(|value| [flag, value.as_str()]));
    }
    let kind = request.types.first().and_then(|kind| v1::EventType::try_from(*kind).ok());
    let kind = kind.map(event::name);
    cli.extend(kind.iter().flat_map(|kind| ["--type", kind]));
    Commands::from_request(&cli, request)
}
