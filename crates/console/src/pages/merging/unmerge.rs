//! What undoing a merge brings back, and undoing it.

use askama::Template;
use http::StatusCode;
use polynym_access::Role;
use polynym_presentation::change::label;
use polynym_proto::v1;
use uuid::Uuid;
use v1::UnmergeUsersRequest;
use v1::unmerge_users_response::NotRestored;

use super::merge::named;
use super::subject::subject;
use crate::change::Version;
use crate::context::with_reason;
use crate::failure::Failure;
use crate::form::{Form, Path};
use crate::frame::Frame;
use crate::render::{Page, redirect, render, render_with_status};
use crate::session::Message;
use crate::views::event::EventView;
use crate::views::{Commands, UserView, identity};
use crate::visit::Visit;
use crate::words::filters;

#[derive(Template)]
#[template(path = "pages/merging/unmerge.html")]
struct UnmergePage {
    frame: Frame,
    user: UserView,
    /// The merged user, as it would be.
    restored: UserView,
    not_restored: Vec<String>,
    seen: Version,
    /// Whether the user changed after the person looked, and what.
    is_stale: bool,
    changes: Vec<EventView>,
    request_id: Uuid,
    reason: String,
    commands: Commands,
}

/// Leads to the user's page, which lists the users that were merged into it.
pub async fn merged(visit: Visit, Path((tenant, id)): Path<(String, String)>) -> Page {
    Ok(redirect(&format!("{}/users/{id}#merged", visit.frame(&tenant).home())))
}

type Ids = (String, String, String);

/// What undoing a merge brings back.
pub async fn page(visit: Visit, Path((tenant, id, other)): Path<Ids>) -> Page {
    visit.require(Role::Registrar)?;
    Ok(render(&preview(&visit, &tenant, &id, &other).await?))
}

/// Undoes a merge, unless the user has changed since the person looked.
pub async fn apply(visit: Visit, Path((tenant, id, other)): Path<Ids>, form: Form) -> Page {
    visit.require(Role::Registrar)?;
    let client = visit.client(&tenant);
    let seen = Version::from_form(&form, "");
    let request = UnmergeUsersRequest {
        primary_user_id: id.clone(),
        secondary_user_id: other.clone(),
        etag: seen.etag.clone(),
        request_id: form.get("request_id").to_owned(),
        ..Default::default()
    };
    match client.registry().unmerge_users(with_reason(request, form.get("reason"))?).await {
        Ok(answer) => {
            let path = format!("{}/users/{other}", visit.frame(&tenant).home());
            let primary = subject(&client, &id).await.ok().map(|subject| subject.user);
            let people = vec![named(&other, answer.user.as_ref()), named(&id, primary.as_ref())];
            Ok(visit.done(&path, Message { people, ..Message::done("unmerged", "") }))
        }
        Err(error) if error.reason() == "ETAG_MISMATCH" => {
            let changes = seen.changes_since(&client, &id).await;
            let reason = form.get("reason").to_owned();
            let page = preview(&visit, &tenant, &id, &other).await?;
            Ok(render_with_status(
                &UnmergePage { is_stale: true, changes, reason, ..page },
                StatusCode::CONFLICT,
            ))
        }
        Err(error) => Err(error.into()),
    }
}

async fn preview(
    visit: &Visit,
    tenant: &str,
    id: &str,
    other: &str,
) -> Result<UnmergePage, Failure> {
    let client = visit.client(tenant);
    let user = subject(&client, id).await?.user;
    let request = UnmergeUsersRequest {
        tenant: tenant.to_owned(),
        primary_user_id: id.to_owned(),
        secondary_user_id: other.to_owned(),
        validate_only: true,
        ..Default::default()
    };
    let answer = client.registry().unmerge_users(request.clone()).await?;
    let cli = ["user", "unmerge", "--dry-run", id, other, "--tenant", tenant];
    Ok(UnmergePage {
        frame: visit.frame(tenant),
        seen: Version::of(&user),
        user: UserView::of(&user),
        restored: answer.user.as_ref().map(UserView::of).ok_or(Failure::NotFound)?,
        not_restored: answer.not_restored.iter().map(part).collect(),
        is_stale: false,
        changes: Vec::new(),
        request_id: Uuid::new_v4(),
        reason: String::new(),
        commands: Commands::from_request(&cli, &request),
    })
}

/// A part that cannot be restored, in words.
fn part(part: &NotRestored) -> String {
    match (&part.identifier, part.field.strip_prefix("primary.")) {
        (Some(_), _) => identity::text(part.identifier.as_ref()),
        (None, Some(field)) => format!("the {} of the user that stays", label(field)),
        (None, None) => label(&part.field),
    }
}
