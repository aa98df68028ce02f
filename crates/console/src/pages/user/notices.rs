//! The inbox of a user: its notices, and sending, reading and deleting them.

use std::time::{Duration, SystemTime};

use polynym_client::Error;
use polynym_presentation::time;
use prost_types::Timestamp;
use serde::Deserialize;
use v1::notice_result::Result as Outcome;
use v1::recipient::Recipient as To;
use v1::{
    DeleteNoticeRequest, ListNoticesRequest, MarkReadRequest, NoticeContent, Recipient,
    SendNoticeRequest,
};

use super::shared_parts::{ROWS, user_id};
use crate::change::{done, problem};
use crate::prelude::*;
use crate::views::user::attribute;

/// The characters of a text that are shown before it is opened.
const SHORT: usize = 500;
/// The maximum life of a notice that can be typed, in days.
const MAX_DAYS: u64 = 3_650;

#[derive(Template)]
#[template(path = "pages/user/inbox.html")]
struct InboxPage {
    frame: Frame,
    user: UserView,
    shown: Shown,
    notices: Vec<NoticeView>,
    /// The time of the latest notice on the page, for marking those up to it.
    latest: String,
    pager: Pager,
    /// The address of this page.
    here: String,
    unread: i32,
    commands: Commands,
}

#[derive(Template)]
#[template(path = "pages/user/send.html")]
struct SendPage {
    frame: Frame,
    user: UserView,
    draft: Draft,
    commands: Commands,
}

/// A notice.
struct NoticeView {
    id: String,
    time: Option<Time>,
    sender: String,
    subject: String,
    body: String,
    /// Whether the text goes on.
    is_cut: bool,
    /// The attributes, each in a line, of a notice that is open.
    attributes: Vec<String>,
    is_read: bool,
    expires: Option<Time>,
}

/// The query of the inbox.
#[derive(Default, Deserialize)]
pub struct Shown {
    #[serde(default)]
    after: Trail,
    /// Whether only unread notices are shown.
    #[serde(default)]
    unread: bool,
    /// The notice that is shown as a whole.
    #[serde(default)]
    open: String,
}

/// The inbox.
pub async fn page(
    visit: Visit,
    Path((tenant, id)): Path<(String, String)>,
    Query(shown): Query<Shown>,
) -> Page {
    visit.require(Role::Viewer)?;
    let client = visit.client(&tenant);
    let user = problem::get(&client, &id).await?;
    let request = ListNoticesRequest {
        tenant: tenant.clone(),
        user_id: user.user_id.clone(),
        unread_only: shown.unread,
        page_size: i32::try_from(ROWS).unwrap_or(0),
        page_token: shown.after.token().to_owned(),
    };
    let count = v1::CountUnreadRequest { user_id: user.user_id.clone(), ..Default::default() };
    let inbox = client.inbox();
    let (list, count) =
        tokio::join!(inbox.list_notices(request.clone()), inbox.count_unread(count));
    let (list, count) = (list?, count?);
    let latest = list.notices.first().and_then(|notice| notice.send_time.as_ref());
    let frame = visit.frame(&tenant);
    let begin = format!("{}/users/{}/inbox?unread={}", frame.home(), user.user_id, shown.unread);
    Ok(render(&InboxPage {
        frame,
        pager: shown.after.pager(&begin, list.notices.len(), &list.next_page_token),
        here: shown.after.address(&begin),
        notices: list.notices.iter().map(|notice| NoticeView::of(notice, &shown.open)).collect(),
        latest: time::text(latest),
        unread: count.unread,
        commands: list_commands(&tenant, &request, shown.unread),
        user: UserView::of(&user),
        shown,
    }))
}

impl NoticeView {
    fn of(notice: &v1::Notice, open: &str) -> Self {
        let is_open = notice.notice_id == open;
        let end = notice.body.char_indices().nth(SHORT).map(|(end, _)| end).filter(|_| !is_open);
        let attributes = notice.attributes.iter().filter(|_| is_open);
        let mut attributes: Vec<_> =
            attributes.map(|(name, value)| format!("{name}: {}", attribute(value))).collect();
        attributes.sort();
        Self {
            id: notice.notice_id.clone(),
            time: Time::of(notice.send_time.as_ref()),
            sender: notice.sender.clone(),
            subject: notice.subject.clone(),
            body: notice.body[..end.unwrap_or(notice.body.len())].to_owned(),
            is_cut: end.is_some() || (!is_open && !notice.attributes.is_empty()),
            attributes,
            is_read: notice.read,
            expires: Time::of(notice.expire_time.as_ref()),
        }
    }
}

fn list_commands(tenant: &str, request: &ListNoticesRequest, unread: bool) -> Commands {
    let mut cli = vec!["inbox", "list", &request.user_id, "--tenant", tenant];
    if unread {
        cli.push("--unread");
    }
    let request = ListNoticesRequest { page_token: String::new(), ..request.clone() };
    Commands::from_request(&cli, &request)
}

/// Marks a notice as read, or all up to the latest one that the person saw.
pub async fn mark_read(change: UserChange) -> Page {
    let is_all = change.form.has("all");
    let request = MarkReadRequest {
        user_id: change.id.clone(),
        notice_ids: if is_all { Vec::new() } else { vec![change.field("notice")] },
        up_to_time: change.form.get("latest").parse().ok().filter(|_| is_all),
        ..Default::default()
    };
    let outcome = change.client().inbox().mark_read(request).await;
    to_inbox(&change, outcome, "read")
}

/// Deletes a notice.
pub async fn delete(change: UserChange) -> Page {
    let request = DeleteNoticeRequest {
        user_id: change.id.clone(),
        notice_id: change.field("notice"),
        ..Default::default()
    };
    let outcome = change.client().inbox().delete_notice(request).await;
    to_inbox(&change, outcome, "removed-notice")
}

/// Leads to the inbox. A notice that is gone already is no failure.
fn to_inbox<A>(change: &UserChange, outcome: Result<A, Error>, name: &'static str) -> Page {
    match outcome {
        Err(error) if error.reason() != "NOTICE_NOT_FOUND" => Err(error.into()),
        _ => {
            let path = format!("{}/users/{}", change.home(), user_id(&change.id)?);
            Ok(change.visit.done(&format!("{path}/inbox"), done(name)))
        }
    }
}

/// The form of a new notice.
pub async fn send_page(form: UserForm) -> Page {
    show(form).await
}

/// Sends a notice.
pub async fn send(change: UserChange) -> Page {
    let request = match request(&change.tenant, &change.id, &change.form) {
        Ok(request) => request,
        Err(problem) => return change.correct(problem, show).await,
    };
    let answer = match change.client().inbox().send_notice(change.call(request)?).await {
        Ok(answer) => answer,
        Err(error) => return change.refuse(error, show).await,
    };
    match answer.results.into_iter().find_map(|result| result.result) {
        Some(Outcome::Error(error)) => {
            change.correct(Problem::form("", &error.message), show).await
        }
        _ => {
            let inbox = format!("{}/inbox", change.user_path(&change.id));
            Ok(change.visit.done(&inbox, done("sent")))
        }
    }
}

/// The request of a form.
fn request(tenant: &str, id: &str, form: &Form) -> Result<SendNoticeRequest, Problem> {
    let wrong = || Problem::form("days", "Type a number of days from 1 to 3650.");
    let days = match form.get("days") {
        "" => None,
        text => Some(text.parse::<u64>().map_err(|_| wrong())?),
    };
    if days.is_some_and(|days| !(1..=MAX_DAYS).contains(&days)) {
        return Err(wrong());
    }
    // A form that is sent twice has the same time if it is sent on one day.
    let end = |days: u64| Timestamp::from(midnight() + Duration::from_secs((days + 1) * 86_400));
    Ok(SendNoticeRequest {
        tenant: tenant.to_owned(),
        recipients: vec![Recipient { recipient: Some(To::UserId(id.to_owned())) }],
        notice: Some(NoticeContent {
            subject: form.get("subject").to_owned(),
            body: form.get("body").replace("\r\n", "\n"),
            expire_time: days.map(end),
            ..Default::default()
        }),
        request_id: form.get("request_id").to_owned(),
    })
}

/// The last midnight in UTC.
fn midnight() -> SystemTime {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    SystemTime::UNIX_EPOCH + Duration::from_secs(since.as_secs() / 86_400 * 86_400)
}

async fn show(form: UserForm) -> Page {
    let (frame, user) = (form.frame(), UserView::of(&form.user));
    let UserForm { tenant, draft, .. } = form;
    let commands = send_commands(&tenant, &user.id, &draft.form);
    let status = draft.status();
    Ok(render_with_status(&SendPage { frame, user, draft, commands }, status))
}

/// The calls that do the same, with an example if nothing is typed.
fn send_commands(tenant: &str, id: &str, form: &Form) -> Commands {
    let subject = Some(form.get("subject")).filter(|text| !text.is_empty());
    let subject = subject.unwrap_or("Terms have changed");
    let (body, days) = (form.get("body"), form.get("days"));
    let flags = [format!("--subject={subject}"), format!("--body={body}")];
    let expires = format!("--expires={days}d");
    let mut cli = vec!["inbox", "send", id, &flags[0], "--tenant", tenant];
    if !body.is_empty() {
        cli.push(&flags[1]);
    }
    if !days.is_empty() {
        cli.push(&expires);
    }
    let typed = Form::of(&[("subject", subject), ("body", body), ("days", days)]);
    let request = request(tenant, id, &typed).unwrap_or_default();
    Commands::from_request(&cli, &request)
}
