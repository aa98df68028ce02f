//! Moving an identity to another user: choose the user, look at the result, move.

use v1::MoveIdentityRequest;

use super::choose::candidates;
use super::identity;
use crate::change::problem;
use crate::prelude::*;
use crate::views::identity::{parse, text};

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
pub async fn transfer(change: UserChange) -> Page {
    let to = change.field("to_id");
    if to.is_empty() {
        return choose(change).await;
    }
    if !change.form.has("apply") {
        return preview(change, &to).await;
    }
    let request = request(&change.tenant, [&change.id, &to], &change.form);
    match change.client().registry().move_identity(change.undoable(request)?).await {
        Ok(_) => Ok(change.to_user(&to, "moved")),
        Err(error) => {
            let (user, draft) = change.refused(error, &to).await?;
            show(&change, Some(&user), Vec::new(), draft).await
        }
    }
}

fn request(tenant: &str, [from, to]: [&str; 2], form: &Form) -> MoveIdentityRequest {
    MoveIdentityRequest {
        tenant: tenant.to_owned(),
        from_user_id: from.to_owned(),
        to_user_id: to.to_owned(),
        identifier: parse(form.get("identity")),
        etag: form.get("etag").to_owned(),
        request_id: form.get("request_id").to_owned(),
        validate_only: false,
    }
}

/// Finds the user who gets the identity.
async fn choose(change: UserChange) -> Page {
    let users = match candidates(&change.visit, &change.tenant, change.form.get("user")).await {
        Ok(users) => users,
        Err(problem) => return change.correct(problem, identity::show).await,
    };
    match &users[..] {
        [one] => preview(change, &one.id).await,
        _ => {
            let draft = Draft::new(change.form.clone());
            show(&change, None, users, draft).await
        }
    }
}

/// Shows what moving the identity would do.
async fn preview(change: UserChange, to: &str) -> Page {
    let client = change.client();
    let user = problem::get(&client, to).await?;
    let draft = Draft::of(&user, change.form.clone());
    let request = MoveIdentityRequest {
        validate_only: true,
        ..request(&change.tenant, [&change.id, &user.user_id], &change.form.typed())
    };
    let draft = match client.registry().move_identity(request).await {
        Ok(_) => draft,
        Err(error) => match Problem::of_call(&client, &error).await {
            Some(problem) => draft.with(problem),
            None => return Err(error.into()),
        },
    };
    show(&change, Some(&user), Vec::new(), draft).await
}

async fn show(
    change: &UserChange,
    to: Option<&v1::User>,
    users: Vec<UserView>,
    draft: Draft,
) -> Page {
    let from = problem::get(&change.client(), &change.id).await?;
    let (tenant, form) = (&change.tenant, &change.form);
    let identity = change.field("identity");
    let mut all = from.identities.iter();
    let found = all.find(|one| text(one.identifier.as_ref()) == identity);
    let status = draft.status();
    let page = MovePage {
        frame: change.visit.frame(tenant),
        from: UserView::of(&from),
        to: to.map(UserView::of),
        is_verified: found.is_some_and(|one| one.verify_time.is_some()),
        commands: to.map(|to| commands(tenant, [&from.user_id, &to.user_id], form)),
        identity,
        users,
        draft,
    };
    Ok(render_with_status(&page, status))
}

fn commands(tenant: &str, users: [&str; 2], form: &Form) -> Commands {
    let [from, to] = users;
    let cli = ["identity", "move", from, to, form.get("identity"), "--tenant", tenant];
    Commands::from_request(&cli, &request(tenant, users, &form.typed()))
}
