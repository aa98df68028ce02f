//! A user: identities, attributes, and what can be done.

use askama::Template;
use axum::extract::Path;
use polynym_proto::v1::GetUserRequest;

use super::render::{Page, render};
use crate::failure::Failure;
use crate::frame::Frame;
use crate::views::{Commands, UserView};
use crate::visit::Visit;

#[derive(Template)]
#[template(path = "pages/user.html")]
struct UserPage {
    frame: Frame,
    user: UserView,
    /// The id of the merged user that was asked for; empty if it is this one.
    merged_from: String,
    commands: Commands,
}

/// The page of a user.
pub async fn page(visit: Visit, Path((tenant, id)): Path<(String, String)>) -> Page {
    let request = GetUserRequest { tenant: tenant.clone(), user_id: id, ..Default::default() };
    let answer = visit.client(&tenant).directory().get_user(request.clone()).await?;
    let user = answer.user.as_ref().map(UserView::of).ok_or(Failure::NotFound)?;
    let cli = ["user", "get", &request.user_id, "--tenant", &tenant];
    let commands = Commands::new(&cli, "DirectoryService/GetUser", "GetUserRequest", &request);
    let frame = visit.frame(&tenant);
    Ok(render(&UserPage { frame, user, merged_from: answer.merged_from, commands }))
}
