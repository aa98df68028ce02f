//! A user: identities, attributes, merged users, and what can be done.

use locality_uuid::LocalityId;
use polynym_client::{Client, Kind};
use polynym_proto::v1::{CountUnreadRequest, GetUserRequest};
use serde::Deserialize;

use super::merged::{self, MergedView};
use super::namesakes;
use super::shared_parts::{self, Part};
use crate::prelude::*;
use crate::views::identity::IdentityView;
use crate::views::person::{People, Person};
use crate::views::user::AttributeView;

#[derive(Template)]
#[template(path = "pages/user/page.html")]
struct UserPage {
    frame: Frame,
    user: UserView,
    identities: Part<IdentityView>,
    attributes: Part<AttributeView>,
    /// A message about the change that was just made; may be empty.
    done: String,
    /// The operation by which that can be undone; empty if it cannot.
    operation: String,
    /// The id of the merged user that was asked for; empty if it is this one.
    merged_from: String,
    /// A user that was just merged into this one.
    just_merged: Option<Person>,
    /// The user from whom this one was just separated.
    just_unmerged: Option<Person>,
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
    #[serde(default)]
    done: String,
    /// The operation of that change.
    #[serde(default)]
    operation: String,
    /// The id of a user that was just merged into this one.
    #[serde(default)]
    merged: String,
    /// The id of the user from whom this one was just separated.
    #[serde(default)]
    unmerged: String,
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
    let answer = match answer {
        Err(error) if error.kind() == Kind::NotFound && shown.done == "purged" => {
            return Ok(render(&PurgedPage { frame: visit.frame(&tenant) }));
        }
        answer => answer?,
    };
    let mut user = answer.user.as_ref().map(UserView::of).ok_or(Failure::NotFound)?;
    if let Ok(own) = user.id.parse() {
        visit.session.seen.add(&tenant, own);
    }
    let namesakes = match &*shown.done {
        "created" | "renamed" if may_view => namesakes::of(&client, &user).await,
        _ => Vec::new(),
    };
    let identities = std::mem::take(&mut user.identities);
    let attributes = std::mem::take(&mut user.attributes);
    let cli = ["user", "get", &request.user_id, "--tenant", &tenant];
    let commands = Commands::from_request(&cli, &request);
    Ok(render(&UserPage {
        frame: visit.frame(&tenant),
        identities: Part::new(identities, shown.identities),
        attributes: Part::new(attributes, shown.attributes),
        done: shared_parts::done(&shown.done),
        operation: shown.operation,
        just_merged: merged::just_merged(&merged, &shown.merged),
        just_unmerged: just_unmerged(&client, &shown.unmerged).await,
        merged_from: answer.merged_from,
        merged,
        namesakes,
        unread,
        commands,
        user,
    }))
}

/// The user with the id in an address from whom another was just separated.
async fn just_unmerged(client: &Client, id: &str) -> Option<Person> {
    id.parse::<LocalityId>().ok()?;
    Some(People::read(client, [id]).await.person(id))
}

/// The number of unread notices; 0 if the caller may not know.
async fn unread(client: &Client, id: &str, may_view: bool) -> i32 {
    if !may_view {
        return 0;
    }
    let request = CountUnreadRequest { user_id: id.to_owned(), ..Default::default() };
    client.inbox().count_unread(request).await.map_or(0, |answer| answer.unread)
}
