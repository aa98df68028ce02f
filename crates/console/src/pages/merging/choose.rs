//! Choosing the user to merge with: by an identifier, an id, or a search.

use askama::Template;
use axum::extract::{Path, Query};
use http::StatusCode;
use polynym_access::Role;
use polynym_client::Client;
use polynym_proto::v1;
use serde::Deserialize;

use super::subject;
use crate::failure::Failure;
use crate::form::Form;
use crate::frame::Frame;
use crate::pages::render::{Page, redirect, render};
use crate::pages::search::filter_of;
use crate::session::ShortId;
use crate::views::UserView;
use crate::views::reading::{self, Reading};
use crate::visit::Visit;

/// The users of a page.
const PAGE_SIZE: i32 = 25;

#[derive(Template)]
#[template(path = "pages/merging/choose.html")]
struct ChoosePage {
    frame: Frame,
    user: UserView,
    typed: String,
    error: String,
    found: Option<Found>,
}

/// The users that a search found.
struct Found {
    search: ShortId,
    users: Vec<UserView>,
    next: String,
    hint: String,
}

/// The query of the page.
#[derive(Deserialize)]
pub struct Parameters {
    search: Option<ShortId>,
    #[serde(default)]
    after: String,
}

/// The page, with the results of a search if there was one.
pub async fn page(
    visit: Visit,
    Path((tenant, id)): Path<(String, String)>,
    Query(Parameters { search, after }): Query<Parameters>,
) -> Page {
    visit.require(Role::Registrar)?;
    let client = visit.client(&tenant);
    let user = UserView::of(&subject(&client, &id).await?.user);
    let (mut typed, mut found) = (String::new(), None);
    if let Some(search) = search {
        typed = visit.session.queries.get(search).ok_or(Failure::SearchGone)?;
        found = Some(matching(&client, &typed, &user.id, search, after).await?);
    }
    let frame = visit.frame(&tenant);
    Ok(render(&ChoosePage { frame, user, typed, error: String::new(), found }))
}

/// Leads to the preview if the text names one user, else to the results of a search.
pub async fn submit(visit: Visit, Path((tenant, id)): Path<(String, String)>, form: Form) -> Page {
    visit.require(Role::Registrar)?;
    let client = visit.client(&tenant);
    let text = form.get("other");
    let frame = visit.frame(&tenant);
    let users = format!("{}/users", frame.home());
    let other = match reading::read(text, &visit.context.region) {
        Reading::Id(other) => Ok(other),
        Reading::Identifier(typed) => owner(&client, typed.message).await?.ok_or_else(|| {
            format!("Nobody owns this {}. Type another one, or a name.", typed.description)
        }),
        Reading::Filter(_) | Reading::Words(_) if text.is_empty() => {
            Err("Type an identifier, an id or a name of the other user.".to_owned())
        }
        Reading::Filter(_) | Reading::Words(_) => {
            let search = visit.session.queries.add(text);
            return Ok(redirect(&format!("{users}/{id}/merge?search={search}")));
        }
    };
    let error = match other {
        Ok(other) if other == id => "This is the same user already. Name another one.".to_owned(),
        Ok(other) => return Ok(redirect(&format!("{users}/{id}/merge/{other}"))),
        Err(error) => error,
    };
    let user = UserView::of(&subject(&client, &id).await?.user);
    let page = ChoosePage { frame, user, typed: text.to_owned(), error, found: None };
    let mut response = render(&page);
    *response.status_mut() = StatusCode::UNPROCESSABLE_ENTITY;
    Ok(response)
}

/// The id of the user who owns an identifier.
async fn owner(client: &Client, identifier: v1::Identifier) -> Result<Option<String>, Failure> {
    let request = v1::ResolveIdentityRequest {
        identifier: Some(identifier),
        show_disabled: true,
        read_mask: Some(prost_types::FieldMask { paths: vec!["user_id".to_owned()] }),
        ..Default::default()
    };
    match client.directory().resolve_identity(request).await {
        Ok(answer) => Ok(answer.user.map(|user| user.user_id)),
        Err(error) if error.reason() == "IDENTITY_NOT_FOUND" => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// The users that a text matches, without the user itself.
async fn matching(
    client: &Client,
    text: &str,
    id: &str,
    search: ShortId,
    after: String,
) -> Result<Found, Failure> {
    let filter = match reading::read(text, "") {
        Reading::Filter(filter) => filter,
        _ => filter_of(text),
    };
    let paths = ["user_id", "display_name", "state", "identities"];
    let request = v1::SearchUsersRequest {
        filter,
        page_size: PAGE_SIZE,
        page_token: after,
        read_mask: Some(prost_types::FieldMask { paths: paths.map(str::to_owned).into() }),
        ..Default::default()
    };
    let page = client.directory().search_users(request).await?;
    let others = page.users.iter().filter(|user| user.user_id != id);
    let users = others.map(UserView::of).collect();
    Ok(Found { search, users, next: page.next_page_token, hint: page.hint })
}
