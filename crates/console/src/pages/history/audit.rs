//! The audit: who did what, over all users of a tenant, the newest first; or what one caller did,
//! or what belonged to an operation.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use http::StatusCode;
use locality_uuid::LocalityId;
use polynym_client::Client;
use polynym_presentation::event;
use serde::Deserialize;

use super::asked::Asked;
use super::period::{PAGE_SIZE, Period};
use super::wanted::Wanted;
use super::{audit_live, user};
use crate::pages::user::choose;
use crate::prelude::*;
use crate::short_id::ShortId;
use crate::views::audit::{Day, Lines};
use crate::views::person::People;

/// The time for which a page goes on to read events. After that it offers to continue.
const READ_TIME: Duration = Duration::from_secs(2);
/// The events of the first call, and the most of one.
const FIRST_PAGE: i32 = 40;
const LARGEST_PAGE: i32 = 1_000;
/// The most lines of a page.
const MAX_LINES: usize = 2 * PAGE_SIZE as usize;

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

impl Changes {
    /// Their callers: some of them.
    fn callers(&self) -> Vec<String> {
        let lines = self.days.iter().flat_map(|day| &day.lines);
        let callers: BTreeSet<_> = lines.map(|line| &line.caller).collect();
        callers.into_iter().take(PAGE_SIZE as usize).cloned().collect()
    }
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
    /// The name of the only user.
    user_name: String,
    /// The callers of the page.
    callers: Vec<String>,
    /// The users whom the typed name of a user may mean.
    choice: Choice,
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

/// Leads to the changes of what is asked for, or shows the users whom a name may mean.
pub async fn submit(visit: Visit, Path(tenant): Path<String>, form: Form) -> Page {
    visit.require(Role::Viewer)?;
    let frame = visit.frame(&tenant);
    let path = format!("{}/audit", frame.home());
    let mut asked = Asked::of_form(&form);
    if asked.period.problem().is_some() {
        let (status, choice) = (StatusCode::UNPROCESSABLE_ENTITY, Choice::default());
        return Ok(render_with_status(&AuditPage::form(frame, asked, path, choice), status));
    }
    if let Ok(id) = asked.user.parse::<LocalityId>() {
        asked.user = id.to_string();
    } else if !asked.user.is_empty() {
        let choice = Choice::find(&visit, &tenant, &asked.user).await;
        match &choice.users[..] {
            [one] => asked.user.clone_from(&one.id),
            _ => {
                let problem = choice.problem.as_ref();
                let status = problem.map_or(StatusCode::OK, |problem| problem.status);
                let page = AuditPage::form(frame, asked, path, choice);
                return Ok(render_with_status(&page, status));
            }
        }
    }
    Ok(redirect(&asked.address(&visit, &path)))
}

impl AuditPage {
    /// The form as it was sent, without changes: a field is to be corrected or chosen.
    fn form(frame: Frame, asked: Asked, path: String, choice: Choice) -> Self {
        let request = asked.request(&frame.tenant).unwrap_or_default();
        Self {
            user_name: asked.user.clone(),
            callers: Vec::new(),
            changes: Changes::default(),
            is_first: true,
            next: String::new(),
            live: String::new(),
            period: asked.period.clone(),
            commands: commands(&frame.tenant, &request.events),
            frame,
            asked,
            path,
            choice,
        }
    }

    /// Whether the changes are not read yet.
    fn is_open(&self) -> bool {
        self.choice.is_open() || self.period.problem().is_some()
    }
}

/// The users whom a name in the form may mean.
#[derive(Default)]
struct Choice {
    users: Vec<UserView>,
    problem: Option<Problem>,
}

impl Choice {
    async fn find(visit: &Visit, tenant: &str, text: &str) -> Self {
        match choose::anyone(visit, tenant, text).await {
            Ok(users) => Self { users, problem: None },
            Err(problem) => Self { users: Vec::new(), problem: Some(problem) },
        }
    }

    /// Whether the changes are not read yet.
    const fn is_open(&self) -> bool {
        !self.users.is_empty() || self.problem.is_some()
    }
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
    let mut wanted = asked.request(&tenant)?;
    wanted.events.page_token = after;
    let commands = match &*asked.user {
        "" => commands(&tenant, &wanted.events),
        id => user::commands(&tenant, id, &wanted.history()),
    };
    let client = visit.client(&tenant);
    let user_name = async {
        match &*asked.user {
            "" => String::new(),
            id => People::read(&client, [id]).await.person(id).name,
        }
    };
    let changes = async {
        // The stream begins before the list is read, so that no change is missed in between. A
        // change may come twice.
        let live = match is_first && live == "on" {
            true => audit_live::token(&client, &wanted).await?,
            false => String::new(),
        };
        Ok::<_, Failure>((live, read(&client, wanted).await?))
    };
    let (user_name, changes) = tokio::join!(user_name, changes);
    let (live, changes) = changes?;
    let next = match &*changes.token {
        "" => String::new(),
        token => format!("{path}?{}", Period::default().next(token)),
    };
    Ok(render(&AuditPage {
        frame: visit.frame(&tenant),
        period: asked.period.clone(),
        asked,
        user_name,
        callers: changes.callers(),
        changes,
        path,
        is_first,
        next,
        live,
        choice: Choice::default(),
        commands,
    }))
}

/// Reads events until a page is full, or for some time. Those of one operation are one line. Each
/// call reads as many as the lines before had, so that a page takes few calls.
pub async fn read(client: &Client, mut wanted: Wanted) -> Result<Changes, Failure> {
    let (began, mut lines, mut changes) = (Instant::now(), Lines::default(), Changes::default());
    let is_search = {
        let v1::ListEventsRequest { types, caller, operation_id, reason, .. } = &wanted.events;
        !types.is_empty() || [caller, operation_id, reason].iter().any(|text| !text.is_empty())
    };
    wanted.events.page_size = FIRST_PAGE;
    loop {
        let answer = wanted.page(client).await?;
        let request = &mut wanted.events;
        let mut more = lines.clone();
        more.add(&answer, request.operation_id.is_empty());
        if request.page_size > PAGE_SIZE && more.count() > MAX_LINES {
            request.page_size = PAGE_SIZE;
            continue;
        }
        let new = more.count() - lines.count();
        request.page_size = next_size(answer.events.len(), new, more.count());
        lines = more;
        if is_search {
            changes.events_read += answer.events_read;
        }
        changes.unreadable += answer.unreadable_user_ids.len();
        let is_last = answer.next_page_token.is_empty();
        request.page_token = answer.next_page_token;
        if is_last || lines.count() >= PAGE_SIZE as usize || began.elapsed() > READ_TIME {
            changes.token = std::mem::take(&mut request.page_token);
            changes.days = lines.days(is_last);
            return Ok(changes);
        }
    }
}

/// The events to read next for a page with `lines`, after these events made `new` ones.
fn next_size(events: usize, new: usize, lines: usize) -> i32 {
    let missing = (PAGE_SIZE as usize).saturating_sub(lines);
    let size = (events * missing).checked_div(new).unwrap_or(LARGEST_PAGE as usize);
    i32::try_from(size).unwrap_or(LARGEST_PAGE).clamp(PAGE_SIZE, LARGEST_PAGE)
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
