//! Disabling, enabling, deleting and restoring a user.

use askama::Template;
use polynym_access::Role;
use polynym_client::Error;
use polynym_presentation::action::{Action, Words};
use polynym_proto::v1;
use v1::{DeleteUserRequest, DisableUserRequest, EnableUserRequest, UndeleteUserRequest};

use super::shared_parts::restorable_until;
use crate::change::{Draft, Sent, problem};
use crate::failure::Failure;
use crate::form::{Form, Path};
use crate::frame::Frame;
use crate::render::{Page, render_with_status};
use crate::views::{Commands, Time, UserView};
use crate::visit::Visit;
use crate::words::filters;

#[derive(Template)]
#[template(path = "pages/user/lifecycle.html")]
struct LifecyclePage {
    frame: Frame,
    user: UserView,
    draft: Draft,
    /// The title, such as `Disable user`.
    title: String,
    action: Words,
    /// Until when a deleted user can be restored.
    restorable: Option<Time>,
    commands: Commands,
}

/// The form.
pub async fn page(
    action: Action,
    visit: Visit,
    Path((tenant, id)): Path<(String, String)>,
) -> Page {
    visit.require(Role::Registrar)?;
    let user = problem::get(&visit.client(&tenant), &id).await?;
    show(action, &visit, &tenant, &user, Draft::of(&user, Form::default())).await
}

/// Carries out the action of a confirmed form.
pub async fn change(
    action: Action,
    visit: Visit,
    Path((tenant, id)): Path<(String, String)>,
    form: Form,
) -> Page {
    let sent = Sent::new(visit, tenant, form)?;
    match call(action, &sent, &id).await? {
        Ok(()) => Ok(sent.to_user(&id, action.words().done)),
        Err(error) => {
            let (user, draft) = sent.refused(error, &id).await?;
            show(action, &sent.visit, &sent.tenant, &user, draft).await
        }
    }
}

async fn call(action: Action, sent: &Sent, id: &str) -> Result<Result<(), Error>, Failure> {
    let (tenant, user_id) = (sent.tenant.clone(), id.to_owned());
    let (etag, request_id) = (sent.field("etag"), sent.field("request_id"));
    let registry = sent.client().registry();
    Ok(match action {
        Action::Disable => {
            let request = DisableUserRequest { tenant, user_id, etag, request_id };
            registry.disable_user(sent.undoable(request)?).await.map(drop)
        }
        Action::Enable => {
            let request = EnableUserRequest { tenant, user_id, etag, request_id };
            registry.enable_user(sent.undoable(request)?).await.map(drop)
        }
        Action::Delete => {
            let request = DeleteUserRequest { tenant, user_id, etag, request_id };
            registry.delete_user(sent.undoable(request)?).await.map(drop)
        }
        Action::Undelete => {
            let request = UndeleteUserRequest { tenant, user_id, etag, request_id };
            registry.undelete_user(sent.undoable(request)?).await.map(drop)
        }
    })
}

async fn show(action: Action, visit: &Visit, tenant: &str, user: &v1::User, draft: Draft) -> Page {
    let restorable = match action {
        Action::Delete => restorable_until(&visit.client(tenant)).await,
        _ => None,
    };
    let status = draft.status();
    let page = LifecyclePage {
        frame: visit.frame(tenant),
        commands: commands(action, tenant, &user.user_id),
        user: UserView::of(user),
        draft,
        title: format!("{} user", action.words().imperative()),
        action: action.words(),
        restorable,
    };
    Ok(render_with_status(&page, status))
}

fn commands(action: Action, tenant: &str, id: &str) -> Commands {
    let cli = ["user", action.words().name, id, "--tenant", tenant];
    // The messages of all four have the same fields.
    let (tenant, user_id) = (tenant.to_owned(), id.to_owned());
    let request = DisableUserRequest { tenant, user_id, ..Default::default() };
    Commands::new(&cli, action.words().method, &request)
}
