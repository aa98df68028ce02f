//! Users who may be the same person: a search with its progress, and its pairs by pages.

mod list;
mod running;

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::routing::get;
use http::{Response, StatusCode};
use polynym_client::{Error, Kind};
use serde::Deserialize;

use self::list::{List, ResultsPage, commands};
use crate::console::Shared;
use crate::prelude::*;
use crate::session::Wanted;
use crate::short_id::ShortId;

/// The minimum score unless the person chooses another.
const MIN_SCORE: i32 = 50;

/// The pages, below those of a tenant.
pub fn router() -> Router<Arc<Shared>> {
    Router::new()
        .route("/duplicates", get(home).post(submit))
        .route("/duplicates/{id}", get(results))
}

#[derive(Template)]
#[template(path = "pages/duplicates/home.html")]
struct HomePage {
    frame: Frame,
    min_score: String,
    error: String,
    /// The id of the session's last search in this tenant, and when it ended.
    last: Option<(ShortId, Option<Time>)>,
    commands: Commands,
}

/// The form of a new search.
pub async fn home(visit: Visit, Path(tenant): Path<String>) -> Page {
    visit.require(Role::Admin)?;
    Ok(form(&visit, &tenant, MIN_SCORE.to_string(), String::new(), StatusCode::OK))
}

fn form(
    visit: &Visit,
    tenant: &str,
    min_score: String,
    error: String,
    status: StatusCode,
) -> Response<Body> {
    let last = visit.session.search.last().filter(|(_, wanted, _)| wanted.tenant == tenant);
    let last =
        last.map(|(id, _, found)| (id, found.and_then(|found| Time::of(Some(&found.time.into())))));
    let commands = commands(tenant, min_score.parse().unwrap_or(MIN_SCORE));
    let frame = visit.frame(tenant);
    render_with_status(&HomePage { frame, min_score, error, last, commands }, status)
}

/// Notes what to search for, and leads to the search.
pub async fn submit(visit: Visit, Path(tenant): Path<String>, fields: Form) -> Page {
    visit.require(Role::Admin)?;
    let typed = fields.get("min_score");
    match typed.parse() {
        Ok(min_score @ 1..=100) => {
            let home = visit.frame(&tenant).home();
            let id = visit.session.search.want(Wanted { tenant, min_score });
            Ok(redirect(&format!("{home}/duplicates/{id}")))
        }
        _ => {
            let error = "The minimum score is a number from 1 to 100.".to_owned();
            let status = StatusCode::UNPROCESSABLE_ENTITY;
            Ok(form(&visit, &tenant, typed.to_owned(), error, status))
        }
    }
}

/// The query of the results.
#[derive(Deserialize)]
pub struct Position {
    #[serde(default)]
    after: Trail,
}

/// What a search found. Searches first, if it has not: the page arrives piece by piece, and the
/// search ends if the browser leaves.
pub async fn results(
    State(shared): State<Arc<Shared>>,
    visit: Visit,
    Path((tenant, id)): Path<(String, ShortId)>,
    Query(Position { after }): Query<Position>,
) -> Page {
    visit.require(Role::Admin)?;
    let last = visit.session.search.last();
    let (_, wanted, found) = last
        .filter(|(known, wanted, _)| *known == id && wanted.tenant == tenant)
        .ok_or(Failure::SearchGone)?;
    let frame = visit.frame(&tenant);
    let list = match found {
        Some(found) => {
            let search = (id, wanted.min_score);
            Some(List::read(&visit.client(&tenant), &frame, search, found, &after).await)
        }
        None => None,
    };
    let is_found = list.is_some();
    let commands = commands(&tenant, wanted.min_score);
    let page = ResultsPage { frame, min_score: wanted.min_score, list, commands };
    if is_found {
        return Ok(render(&page));
    }
    match running::begin(&visit, &tenant, wanted.min_score).await {
        Ok(search) => search.respond(shared, &visit, id, &page),
        Err(error) if error.kind() == Kind::ResourceExhausted => {
            Ok(busy(&visit, &tenant, wanted.min_score, &error))
        }
        Err(error) => Err(error.into()),
    }
}

/// The form again, because the server has no room for another search.
fn busy(visit: &Visit, tenant: &str, min_score: i32, error: &Error) -> Response<Body> {
    let message = format!(
        "The server is busy: it runs two searches for duplicates at most, and one of each caller. \
         Try again in a moment. ({})",
        error.message()
    );
    let status = StatusCode::TOO_MANY_REQUESTS;
    form(visit, tenant, min_score.to_string(), message, status)
}
