//! Disabling, enabling, deleting and restoring a user.

use askama::Template;
use axum::extract::Path;
use polynym_access::Role;
use polynym_client::Error;
use polynym_proto::v1;
use v1::{DeleteUserRequest, DisableUserRequest, EnableUserRequest, UndeleteUserRequest};

use super::shared_parts::{restorable_until, to_user};
use crate::change::{Draft, Sent, problem};
use crate::failure::Failure;
use crate::form::Form;
use crate::frame::Frame;
use crate::render::{Page, render_with_status};
use crate::views::{Commands, Time, UserView};
use crate::visit::Visit;

/// What is done with a user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    Disable,
    Enable,
    Delete,
    Undelete,
}

impl Action {
    pub const ALL: [Self; 4] = [Self::Disable, Self::Enable, Self::Delete, Self::Undelete];

    /// The last part of the address, and the command.
    pub const fn path(self) -> &'static str {
        match self {
            Self::Disable => "disable",
            Self::Enable => "enable",
            Self::Delete => "delete",
            Self::Undelete => "undelete",
        }
    }

    const fn verb(self) -> &'static str {
        match self {
            Self::Disable => "Disable user",
            Self::Enable => "Enable user",
            Self::Delete => "Delete user",
            Self::Undelete => "Restore user",
        }
    }

    const fn effect(self) -> &'static str {
        match self {
            Self::Disable => {
                "The user keeps its identifiers, but they no longer resolve. Enable the user to \
                 undo this."
            }
            Self::Enable => "The identifiers of the user resolve again.",
            Self::Delete => {
                "The identifiers of the user no longer resolve, and nobody else can take them \
                 until the user is purged."
            }
            Self::Undelete => {
                "The identifiers of the user resolve again, except those that others took in the \
                 meantime."
            }
        }
    }

    const fn is_destructive(self) -> bool {
        matches!(self, Self::Disable | Self::Delete)
    }

    const fn done(self) -> &'static str {
        match self {
            Self::Disable => "disabled",
            Self::Enable => "enabled",
            Self::Delete => "deleted",
            Self::Undelete => "restored",
        }
    }
}

#[derive(Template)]
#[template(path = "pages/user/lifecycle.html")]
struct LifecyclePage {
    frame: Frame,
    user: UserView,
    draft: Draft,
    action: Action,
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
        Ok(()) => Ok(to_user(&sent, &id, action.done())),
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
            registry.disable_user(sent.call(request)?).await.map(drop)
        }
        Action::Enable => {
            let request = EnableUserRequest { tenant, user_id, etag, request_id };
            registry.enable_user(sent.call(request)?).await.map(drop)
        }
        Action::Delete => {
            let request = DeleteUserRequest { tenant, user_id, etag, request_id };
            registry.delete_user(sent.call(request)?).await.map(drop)
        }
        Action::Undelete => {
            let request = UndeleteUserRequest { tenant, user_id, etag, request_id };
            registry.undelete_user(sent.call(request)?).await.map(drop)
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
        action,
        restorable,
    };
    Ok(render_with_status(&page, status))
}

fn commands(action: Action, tenant: &str, id: &str) -> Commands {
    let cli = ["user", action.path(), id, "--tenant", tenant];
    // The messages of all four have the same fields.
    let (tenant, user_id) = (tenant.to_owned(), id.to_owned());
    let request = DisableUserRequest { tenant, user_id, ..Default::default() };
    let name = match action {
        Action::Disable => "DisableUser",
        Action::Enable => "EnableUser",
        Action::Delete => "DeleteUser",
        Action::Undelete => "UndeleteUser",
    };
    Commands::new(&cli, &format!("RegistryService/{name}"), &request)
}
