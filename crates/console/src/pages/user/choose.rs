//! Finding a user, such as the one to whom an identity is to be linked or moved.

use polynym_client::{Client, Error};
use serde::Deserialize;
use v1::{FindUsersRequest, FindWay, FoundUser, SearchUsersRequest, State};

use crate::change::problem::sentence;
use crate::prelude::*;
use crate::short_id::ShortId;
use crate::views::reading::{self, Reading};

/// The maximum number of users to choose from.
const MAX_USERS: i32 = 10;

#[derive(Template)]
#[template(path = "pages/user/choose.html")]
struct ChoosePage {
    frame: Frame,
    /// The short id of the search for the identifier.
    search: ShortId,
    identifier: String,
    /// The submitted text.
    text: String,
    users: Vec<UserView>,
    problem: Option<Problem>,
}

/// The query of the page.
#[derive(Deserialize)]
pub struct Found {
    search: ShortId,
}

/// The form: which user is to get the identifier of a search.
pub async fn page(
    visit: Visit,
    Path(tenant): Path<String>,
    Query(Found { search }): Query<Found>,
) -> Page {
    visit.require(Role::Registrar)?;
    show(&visit, &tenant, search, "", Vec::new(), None)
}

/// Leads to the form of the user that was found, or shows those that match.
pub async fn find(visit: Visit, Path(tenant): Path<String>, form: Form) -> Page {
    visit.require(Role::Registrar)?;
    let search = form.get("search").parse().map_err(|_| Failure::SearchGone)?;
    let text = form.get("user");
    let users = match candidates(&visit, &tenant, text).await {
        Ok(users) => users,
        Err(problem) => return show(&visit, &tenant, search, text, Vec::new(), Some(problem)),
    };
    match &users[..] {
        [one] => {
            let home = visit.frame(&tenant).home();
            Ok(redirect(&format!("{home}/users/{}/link?search={search}", one.id)))
        }
        _ => show(&visit, &tenant, search, text, users, None),
    }
}

fn show(
    visit: &Visit,
    tenant: &str,
    search: ShortId,
    text: &str,
    users: Vec<UserView>,
    problem: Option<Problem>,
) -> Page {
    let identifier = visit.session.queries.get(search).ok_or(Failure::SearchGone)?;
    let (frame, text) = (visit.frame(tenant), text.to_owned());
    let status = problem.as_ref().map_or(http::StatusCode::OK, |problem| problem.status);
    let page = ChoosePage { frame, search, identifier, text, users, problem };
    Ok(render_with_status(&page, status))
}

/// The users that a text or a filter finds.
///
/// # Errors
/// No user matches, or the text is wrong.
pub async fn candidates(visit: &Visit, tenant: &str, text: &str) -> Result<Vec<UserView>, Problem> {
    users(visit, tenant, text, false).await
}

/// The users that a text or a filter finds, also deleted ones.
///
/// # Errors
/// No user matches, or the text is wrong.
pub async fn anyone(visit: &Visit, tenant: &str, text: &str) -> Result<Vec<UserView>, Problem> {
    users(visit, tenant, text, true).await
}

async fn users(
    visit: &Visit,
    tenant: &str,
    text: &str,
    with_deleted: bool,
) -> Result<Vec<UserView>, Problem> {
    let wrong = |message: &str| Problem::form("user", message);
    if text.is_empty() {
        return Err(wrong("Type an id, an identifier, or words of a name."));
    }
    let client = visit.client(tenant);
    let region = &visit.context.region;
    let found = match reading::read(text, region) {
        Reading::Filter(filter) => search(&client, filter).await,
        _ => find_by_text(&client, text, region, with_deleted).await,
    };
    let users = match found {
        Ok(users) => users,
        Err(error) => {
            let problem = Problem::of_call(&client, &error).await;
            return Err(problem.unwrap_or_else(|| wrong(&sentence(&error))));
        }
    };
    if users.is_empty() {
        return Err(wrong("No user matches this."));
    }
    Ok(users.iter().map(UserView::of).collect())
}

/// The users whom a text finds, without those of similar names, those who gave it up, and deleted
/// ones unless they are wanted. If the text identifies users by identifier or id, these alone.
async fn find_by_text(
    client: &Client,
    text: &str,
    region: &str,
    with_deleted: bool,
) -> Result<Vec<v1::User>, Error> {
    let request = FindUsersRequest {
        text: text.to_owned(),
        region: region.to_owned(),
        page_size: MAX_USERS,
        read_mask: Some(read_mask()),
        ..Default::default()
    };
    let mut found = client.directory().find_users(request).await?.matches;
    let has = |found: &FoundUser, ways: &[FindWay]| {
        found.reasons.iter().any(|reading| ways.contains(&reading.way()))
    };
    let whole = [FindWay::Identifier, FindWay::UserId, FindWay::Attribute];
    let is_identified = |found: &FoundUser| has(found, &whole);
    found.retain(|found| {
        let is_deleted = found.user.as_ref().is_none_or(|user| user.state() == State::Deleted);
        (with_deleted || !is_deleted)
            && !has(found, &[FindWay::SimilarName, FindWay::HeldIdentifier])
    });
    if found.iter().any(is_identified) {
        found.retain(is_identified);
    }
    Ok(found.into_iter().filter_map(|found| found.user).collect())
}

async fn search(client: &Client, filter: String) -> Result<Vec<v1::User>, Error> {
    let request = SearchUsersRequest {
        filter,
        page_size: MAX_USERS,
        read_mask: Some(read_mask()),
        ..Default::default()
    };
    Ok(client.directory().search_users(request).await?.users)
}

fn read_mask() -> prost_types::FieldMask {
    let paths = ["user_id", "display_name", "state", "identities"];
    prost_types::FieldMask { paths: paths.map(str::to_owned).into() }
}
