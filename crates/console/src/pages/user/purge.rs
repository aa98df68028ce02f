//! Purging a user: the preview, and the confirmation by its name or id.

use askama::Template;
use axum::body::Body;
use axum::extract::Path;
use http::Response;
use polynym_access::Role;
use polynym_client::Kind;
use polynym_proto::v1;
use v1::PurgeUserRequest;

use super::shared_parts::to_user;
use crate::change::{Draft, Problem, Sent, problem};
use crate::failure::Failure;
use crate::form::Form;
use crate::frame::Frame;
use crate::render::{Page, render_with_status};
use crate::views::{Commands, UserView};
use crate::visit::Visit;

/// The maximum number of users in the preview.
const MAX_IDS: usize = 25;

#[derive(Template)]
#[template(path = "pages/user/purge.html")]
struct PurgePage {
    frame: Frame,
    user: UserView,
    draft: Draft,
    /// The users that were merged into it, which go too.
    merged: Vec<String>,
    /// The number of further ones.
    more: usize,
    commands: Commands,
}

/// The preview.
pub async fn page(visit: Visit, Path((tenant, id)): Path<(String, String)>) -> Page {
    visit.require(Role::Admin)?;
    let user = problem::get(&visit.client(&tenant), &id).await?;
    let draft = Draft::of(&user, Form::default());
    show(&visit, &tenant, &user, draft).await
}

/// Purges the user if the confirmation is right.
pub async fn purge(visit: Visit, Path((tenant, id)): Path<(String, String)>, form: Form) -> Page {
    visit.require(Role::Admin)?;
    let sent = Sent::new(visit, tenant, form)?;
    if let Some(wrong) = confirmation(&sent, &id).await? {
        let (user, draft) = sent.wrong(wrong, &id).await?;
        return show(&sent.visit, &sent.tenant, &user, draft).await;
    }
    let request = PurgeUserRequest {
        user_id: id.clone(),
        etag: sent.field("etag"),
        request_id: sent.field("request_id"),
        ..Default::default()
    };
    match sent.client().admin().purge_user(sent.call(request)?).await {
        Ok(_) => Ok(to_user(&sent, &id, "purged")),
        Err(error) => {
            let (user, draft) = sent.refused(error, &id).await?;
            show(&sent.visit, &sent.tenant, &user, draft).await
        }
    }
}

/// What is wrong with the confirmation. Nothing if the user is gone: the form was sent twice.
async fn confirmation(sent: &Sent, id: &str) -> Result<Option<Problem>, Failure> {
    let user = match problem::get(&sent.client(), id).await {
        Err(Failure::Call(error)) if error.kind() == Kind::NotFound => return Ok(None),
        user => user?,
    };
    let typed = sent.form.get("confirmation");
    let is_right =
        typed == user.user_id || (!typed.is_empty() && typed == user.display_name.trim());
    let message = "This is neither the name nor the id of the user: nothing was purged.";
    Ok((!is_right).then(|| Problem::form("confirmation", message)))
}

async fn show(visit: &Visit, tenant: &str, user: &v1::User, draft: Draft) -> Page {
    let request = PurgeUserRequest {
        tenant: tenant.to_owned(),
        user_id: user.user_id.clone(),
        validate_only: true,
        ..Default::default()
    };
    let preview = visit.client(tenant).admin().purge_user(request.clone()).await?;
    let mut merged = preview.user_ids;
    merged.retain(|id| *id != user.user_id);
    let more = merged.len().saturating_sub(MAX_IDS);
    merged.truncate(MAX_IDS);
    Ok(page_of(visit, tenant, user, draft, (merged, more), &request))
}

fn page_of(
    visit: &Visit,
    tenant: &str,
    user: &v1::User,
    draft: Draft,
    (merged, more): (Vec<String>, usize),
    request: &PurgeUserRequest,
) -> Response<Body> {
    let cli = ["user", "purge", &user.user_id, "--dry-run", "--tenant", tenant];
    let commands = Commands::from_request(&cli, request);
    let status = draft.status();
    let (frame, user) = (visit.frame(tenant), UserView::of(user));
    render_with_status(&PurgePage { frame, user, draft, merged, more, commands }, status)
}
