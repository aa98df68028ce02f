//! The history of a tenant itself: changes of its policies, its deletion, and purged users.

use askama::Template;
use axum::extract::{Path, Query};
use polynym_access::Role;
use polynym_proto::v1;
use v1::tenant_event::Change;

use super::{PAGE_SIZE, Period};
use crate::frame::Frame;
use crate::pages::render::{Page, render};
use crate::views::event::{ChangeView, cut};
use crate::views::{Commands, Time};
use crate::visit::Visit;

/// The maximum characters of a policy.
const MAX_VALUE: usize = 500;

#[derive(Template)]
#[template(path = "pages/history/tenant.html")]
struct TenantHistoryPage {
    frame: Frame,
    period: Period,
    events: Vec<TenantEventView>,
    next: String,
    commands: Commands,
}

/// An event of a tenant.
struct TenantEventView {
    kind: &'static str,
    time: Option<Time>,
    caller: String,
    method: String,
    request_id: String,
    reason: String,
    operation: String,
    /// The id of a purged user.
    user: String,
    changes: Vec<ChangeView>,
}

/// The page.
pub async fn page(visit: Visit, Path(tenant): Path<String>, Query(period): Query<Period>) -> Page {
    visit.require(Role::Viewer)?;
    let request = v1::ListTenantHistoryRequest {
        tenant: tenant.clone(),
        from: period.begin()?,
        to: period.end()?,
        page_size: PAGE_SIZE,
        page_token: period.after.clone(),
    };
    let answer = visit.client(&tenant).admin().list_tenant_history(request.clone()).await?;
    let [from, to] = [&request.from, &request.to].map(|time| time.map(|time| time.to_string()));
    let mut cli = vec!["tenant", "history", "--tenant", &tenant];
    for (flag, text) in [("--from", &from), ("--to", &to)] {
        cli.extend(text.iter().flat_map(|text| [flag, text.as_str()]));
    }
    let method = "AdminService/ListTenantHistory";
    let commands = Commands::new(&cli, method, "ListTenantHistoryRequest", &request);
    let token = answer.next_page_token;
    let next = if token.is_empty() { token } else { period.next(&token) };
    let events = answer.events.iter().map(TenantEventView::of).collect();
    Ok(render(&TenantHistoryPage { frame: visit.frame(&tenant), period, events, next, commands }))
}

impl TenantEventView {
    fn of(event: &v1::TenantEvent) -> Self {
        let (mut user, mut changes) = (String::new(), Vec::new());
        let kind = match &event.change {
            None => "changed",
            Some(Change::Created(_)) => "created",
            Some(Change::PoliciesChanged(change)) => {
                changes = policies(change);
                "policies changed"
            }
            Some(Change::DeletionBegun(mark)) if mark.delete_users => "deletion begun, with users",
            Some(Change::DeletionBegun(_)) => "deletion begun",
            Some(Change::DeletionCancelled(_)) => "deletion cancelled: it had users",
            Some(Change::Deleted(mark)) if mark.delete_users => "deleted, with its users",
            Some(Change::Deleted(_)) => "deleted",
            Some(Change::UserPurged(purge)) => {
                user.clone_from(&purge.user_id);
                "user purged"
            }
        };
        Self {
            kind,
            time: Time::of(event.time.as_ref()),
            caller: event.caller.clone(),
            method: event.method.clone(),
            request_id: event.request_id.clone(),
            reason: event.reason.clone(),
            operation: event.operation_id.clone(),
            user,
            changes,
        }
    }
}

/// The policies that changed, as JSON has them.
fn policies(change: &v1::PoliciesChange) -> Vec<ChangeView> {
    let json = |policies: Option<&v1::Policies>| {
        let policies = policies?;
        polynym_lines::json::from_message("polynym.v1.Policies", policies).ok()
    };
    let (before, after) = (json(change.before.as_ref()), json(change.after.as_ref()));
    let value = |policies: &Option<serde_json::Value>, path: &str| {
        let found = policies.as_ref().and_then(|policies| policies.get(camel(path)));
        let mut text = match found {
            None | Some(serde_json::Value::Null) => String::new(),
            Some(serde_json::Value::String(text)) => text.clone(),
            Some(other) => other.to_string(),
        };
        cut(&mut text, MAX_VALUE);
        text
    };
    let view = |path: &String| ChangeView {
        name: path.replace('_', " "),
        before: value(&before, path),
        after: value(&after, path),
    };
    change.paths.iter().map(view).collect()
}

/// The name of a field in JSON: `hide_unverified` is `hideUnverified`.
fn camel(path: &str) -> String {
    let mut words = path.split('_');
    let first = words.next().unwrap_or_default().to_owned();
    words.fold(first, |name, word| {
        let (head, tail) = word.split_at(word.len().min(1));
        name + &head.to_uppercase() + tail
    })
}
