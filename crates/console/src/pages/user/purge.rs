//! Purging a user: the preview, and the confirmation by its name or id.

use polynym_client::Kind;
use polynym_proto::v1::PurgeUserRequest;

use crate::change::problem;
use crate::prelude::*;

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
    show(UserForm::new(visit, tenant, &id, Form::default()).await?).await
}

/// Purges the user if the confirmation is right.
pub async fn purge(visit: Visit, Path((tenant, id)): Path<(String, String)>, form: Form) -> Page {
    visit.require(Role::Admin)?;
    let change = UserChange::new(visit, tenant, id, form)?;
    if let Some(wrong) = confirmation(&change).await? {
        return change.correct(wrong, show).await;
    }
    let request = PurgeUserRequest {
        user_id: change.id.clone(),
        etag: change.field("etag"),
        request_id: change.field("request_id"),
        ..Default::default()
    };
    let outcome = change.client().admin().purge_user(change.call(request)?).await;
    change.finish(outcome, "purged", show).await
}

/// What is wrong with the confirmation. Nothing if the user is gone: the form was sent twice.
async fn confirmation(change: &UserChange) -> Result<Option<Problem>, Failure> {
    let user = match problem::get(&change.client(), &change.id).await {
        Err(Failure::Call(error)) if error.kind() == Kind::NotFound => return Ok(None),
        user => user?,
    };
    let typed = change.form.get("confirmation");
    let is_right =
        typed == user.user_id || (!typed.is_empty() && typed == user.display_name.trim());
    let message = "This is neither the name nor the id of the user: nothing was purged.";
    Ok((!is_right).then(|| Problem::form("confirmation", message)))
}

async fn show(form: UserForm) -> Page {
    let (frame, user, client) = (form.frame(), UserView::of(&form.user), form.client());
    let UserForm { tenant, draft, .. } = form;
    let cli = ["user", "purge", &user.id, "--dry-run", "--tenant", &tenant];
    let request = PurgeUserRequest {
        tenant: tenant.clone(),
        user_id: user.id.clone(),
        validate_only: true,
        ..Default::default()
    };
    let commands = Commands::from_request(&cli, &request);
    let mut merged = client.admin().purge_user(request).await?.user_ids;
    merged.retain(|id| *id != user.id);
    let more = merged.len().saturating_sub(MAX_IDS);
    merged.truncate(MAX_IDS);
    let status = draft.status();
    Ok(render_with_status(&PurgePage { frame, user, draft, merged, more, commands }, status))
}
