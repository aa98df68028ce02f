//! The users that an operation changed, such as those of an import.

use std::time::{Duration, Instant};

use polynym_presentation::event;

use super::period::Period;
use crate::prelude::*;
use crate::views::person::Person;

/// The users of a page.
const PAGE_SIZE: usize = 50;
/// The least events of a call.
const MIN_READ: usize = 10;
/// The time for which a page goes on to read changes. After that it offers to continue.
const READ_TIME: Duration = Duration::from_secs(2);

#[derive(Template)]
#[template(path = "pages/history/operation_users.html")]
struct UsersPage {
    frame: Frame,
    operation: String,
    /// The name of the file that it imported; empty if it is not known.
    name: String,
    rows: Vec<Row>,
    is_first: bool,
    /// The query of the next page; empty after the last.
    next: String,
    commands: Commands,
}

/// A user, and what the operation did to it.
struct Row {
    person: Person,
    /// The kinds of changes, the newest first.
    kinds: Vec<&'static str>,
    /// The time of the newest change.
    time: Option<Time>,
}

/// The page.
pub async fn page(
    visit: Visit,
    Path((tenant, operation)): Path<(String, String)>,
    Query(Period { after, .. }): Query<Period>,
) -> Page {
    visit.require(Role::Viewer)?;
    let is_first = after.is_empty();
    let request = v1::ListEventsRequest {
        tenant: tenant.clone(),
        operation_id: operation.clone(),
        page_size: PAGE_SIZE as i32,
        page_token: after,
        ..Default::default()
    };
    let commands = super::audit::commands(&tenant, &request);
    let client = visit.client(&tenant);
    let (mut rows, mut request, began) = (Vec::new(), request, Instant::now());
    let token = loop {
        // Each event adds one user at most. Those of few users at the end are read at once, too.
        request.page_size = PAGE_SIZE.saturating_sub(rows.len()).max(MIN_READ) as i32;
        let answer = client.directory().list_events(request.clone()).await?;
        answer.events.iter().for_each(|event| add(&mut rows, event, &answer));
        request.page_token = answer.next_page_token;
        let is_done = rows.len() >= PAGE_SIZE || began.elapsed() > READ_TIME;
        if is_done || request.page_token.is_empty() {
            break request.page_token;
        }
    };
    let next = if token.is_empty() { token } else { Period::default().next(&token) };
    let frame = visit.frame(&tenant);
    let name = visit.import_name(&tenant, &operation);
    Ok(render(&UsersPage { frame, operation, name, rows, is_first, next, commands }))
}

/// Adds a change to its user.
fn add(rows: &mut Vec<Row>, event: &v1::Event, page: &v1::ListEventsResponse) {
    let kind = event::word(event);
    if let Some(row) = rows.iter_mut().find(|row| row.person.id == event.user_id) {
        if !row.kinds.contains(&kind) {
            row.kinds.push(kind);
        }
        return;
    }
    let unknown = Person::unknown(&event.user_id);
    let name = page.display_names.get(&event.user_id).filter(|name| !name.is_empty());
    let person = name.map_or(unknown.clone(), |name| Person { name: name.clone(), ..unknown });
    rows.push(Row { person, kinds: vec![kind], time: Time::of(event.time.as_ref()) });
}
