//! A user: identities, attributes, merged users, and what can be done.

use polynym_client::{Client, Kind};
use polynym_proto::v1::{CountUnreadRequest, GetUserRequest};
use serde::Deserialize;

use super::merged::{self, MergedView};
use super::namesakes;
use super::shared_parts::Part;
use super::undo;
use crate::prelude::*;
use crate::session::Message;
use crate::views::identity::IdentityView;
use crate::views::user::AttributeView;

#[derive(Template)]
#[template(path = "pages/user/page.html")]
struct UserPage {
    frame: Frame,
    user: UserView,
    identities: Part<IdentityView>,
    attributes: Part<AttributeView>,
    /// The id of the merged user that was asked for; empty if it is this one.
    merged_from: String,
    /// The users that were merged into this one.
    merged: Vec<MergedView>,
    /// Other users of the name that the user just got.
    namesakes: Vec<UserView>,
    /// The number of unread notices.
    unread: i32,
    commands: Commands,
}

#[derive(Template)]
#[template(path = "pages/user/purged.html")]
struct PurgedPage {
    frame: Frame,
}

/// The query of the page.
#[derive(Default, Deserialize)]
pub struct Shown {
    /// The first identity to show.
    #[serde(default)]
    identities: usize,
    /// The first attribute to show.
    #[serde(default)]
    attributes: usize,
}

/// The page of a user.
pub async fn page(
    visit: Visit,
    Path((tenant, id)): Path<(String, String)>,
    Query(shown): Query<Shown>,
) -> Page {
    let request = GetUserRequest { tenant: tenant.clone(), user_id: id, ..Default::default() };
    let client = visit.client(&tenant);
    let directory = client.directory();
    let may_view = visit.caller.role >= Role::Viewer;
    let (answer, merged, unread) = tokio::join!(
        directory.get_user(request.clone()),
        merged::users(&client, &request.user_id, may_view),
        unread(&client, &request.user_id, may_view),
    );
    let mut message = visit.message();
    let done = message.as_ref().map(|message| message.code);
    let answer = match answer {
        Err(error) if error.kind() == Kind::NotFound && done == Some("purged") => {
            return Ok(render(&PurgedPage { frame: visit.frame(&tenant) }));
        }
        answer => answer?,
    };
    let mut user = answer.user.as_ref().map(UserView::of).ok_or(Failure::NotFound)?;
    if let Ok(own) = user.id.parse() {
        visit.session.seen.add(&tenant, own);
    }
    let namesakes = match done {
        Some("created" | "renamed") if may_view => namesakes::of(&client, &user).await,
        _ => Vec::new(),
    };
    if let Some(message) = &mut message {
        check_undo(&visit, &client, &tenant, message).await;
    }
    let identities = std::mem::take(&mut user.identities);
    let attributes = std::mem::take(&mut user.attributes);
    let cli = ["user", "get", &request.user_id, "--tenant", &tenant];
    let commands = Commands::from_request(&cli, &request);
    Ok(render(&UserPage {
        frame: visit.frame(&tenant).with_message(message),
        identities: Part::new(identities, shown.identities),
        attributes: Part::new(attributes, shown.attributes),
        merged_from: answer.merged_from,
        merged,
        namesakes,
        unread,
        commands,
        user,
    }))
}

/// Removes the undo of a message unless it would undo something: a form can be sent again after its
/// change was undone, and a tenant may keep no history.
async fn check_undo(visit: &Visit, client: &Client, tenant: &str, message: &mut Message) {
    let Some((_, operation)) = &message.undo else { return };
    let is_open = visit.caller.role >= Role::Admin
        && undo::would_undo(client, tenant, operation).await.unwrap_or(false);
    if !is_open {
        message.undo = None;
    }
}

/// The number of unread notices; 0 if the caller may not know.
async fn unread(client: &Client, id: &str, may_view: bool) -> i32 {
    if !may_view {
        return 0;
    }
    let request = CountUnreadRequest { user_id: id.to_owned(), ..Default::default() };
    client.inbox().count_unread(request).await.map_or(0, |answer| answer.unread)
}
