//! Moving an identity to another user: choose the user, look at the result, move.

use askama::Template;
use axum::extract::Path;
use polynym_proto::v1;
use v1::MoveIdentityRequest;

use super::choose::candidates;
use super::identity;
use super::shared_parts::to_user;
use crate::change::{Draft, Problem, Sent, problem};
use crate::form::Form;
use crate::frame::Frame;
use crate::render::{Page, render_with_status};
use crate::views::identity::{parse, text};
use crate::views::{Commands, UserView};
use crate::visit::Visit;

#[derive(Template)]
#[template(path = "pages/user/move.html")]
struct MovePage {
    frame: Frame,
    from: UserView,
    identity: String,
    /// The user who gets it, once it is chosen.
    to: Option<UserView>,
    /// Whether the identity is verified, which it stays.
    is_verified: bool,
    /// The users to choose from.
    users: Vec<UserView>,
    draft: Draft,
    commands: Option<Commands>,
}

/// Moves an identity, after the user who gets it was chosen and the result was shown.
pub async fn transfer(
    visit: Visit,
    Path((tenant, id)): Path<(String, String)>,
    form: Form,
) -> Page {
    let sent = Sent::new(visit, tenant, form)?;
    let to = sent.field("to_id");
    if to.is_empty() {
        return choose(sent, id).await;
    }
    if !sent.form.has("apply") {
        return preview(sent, &id, &to).await;
    }
    let request = request(&sent, &id, &to, false);
    let error = match sent.client().registry().move_identity(sent.call(request)?).await {
        Ok(_) => return Ok(to_user(&sent, &to, "moved")),
        Err(error) => error,
    };
    let (user, draft) = sent.refused(error, &to).await?;
    show(&sent, &id, Some(&user), Vec::new(), draft).await
}

fn request(sent: &Sent, from: &str, to: &str, validate_only: bool) -> MoveIdentityRequest {
    let form = &sent.form;
    MoveIdentityRequest {
        tenant: sent.tenant.clone(),
        from_user_id: from.to_owned(),
        to_user_id: to.to_owned(),
        identifier: parse(form.get("identity")),
        etag: if validate_only { String::new() } else { sent.field("etag") },
        request_id: if validate_only { String::new() } else { sent.field("request_id") },
        validate_only,
    }
}

/// Finds the user who gets the identity.
async fn choose(sent: Sent, from: String) -> Page {
    let users = match candidates(&sent.visit, &sent.tenant, sent.form.get("user")).await {
        Ok(users) => users,
        Err(problem) => {
            let (user, draft) = sent.wrong(problem, &from).await?;
            return identity::show(&sent.visit, &sent.tenant, &user, draft).await;
        }
    };
    match &users[..] {
        [one] => {
            let to = one.id.clone();
            preview(sent, &from, &to).await
        }
        _ => {
            let draft = Draft::new(sent.form.clone());
            show(&sent, &from, None, users, draft).await
        }
    }
}

/// Shows what moving the identity would do.
async fn preview(sent: Sent, from: &str, to: &str) -> Page {
    let client = sent.client();
    let user = problem::get(&client, to).await?;
    let draft = Draft::of(&user, sent.form.clone());
    let request = request(&sent, from, &user.user_id, true);
    let draft = match client.registry().move_identity(request).await {
        Ok(_) => draft,
        Err(error) => match Problem::of_call(&client, &error).await {
            Some(problem) => draft.with(problem),
            None => return Err(error.into()),
        },
    };
    show(&sent, from, Some(&user), Vec::new(), draft).await
}

async fn show(
    sent: &Sent,
    from: &str,
    to: Option<&v1::User>,
    users: Vec<UserView>,
    draft: Draft,
) -> Page {
    let from = problem::get(&sent.client(), from).await?;
    let identity = sent.field("identity");
    let mut all = from.identities.iter();
    let found = all.find(|one| text(one.identifier.as_ref()) == identity);
    let status = draft.status();
    let commands = to.map(|to| commands(sent, &from.user_id, &to.user_id));
    let page = MovePage {
        frame: sent.visit.frame(&sent.tenant),
        from: UserView::of(&from),
        to: to.map(UserView::of),
        identity,
        is_verified: found.is_some_and(|one| one.verify_time.is_some()),
        users,
        draft,
        commands,
    };
    Ok(render_with_status(&page, status))
}

fn commands(sent: &Sent, from: &str, to: &str) -> Commands {
    let cli = ["identity", "move", from, to, sent.form.get("identity"), "--tenant", &sent.tenant];
    let request = MoveIdentityRequest {
        etag: String::new(),
        request_id: String::new(),
        ..request(sent, from, to, false)
    };
    Commands::from_request(&cli, &request)
}
