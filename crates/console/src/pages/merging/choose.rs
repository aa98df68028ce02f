//! Choosing the user to merge with: by an identifier, an id, or a search.

use http::StatusCode;
use serde::Deserialize;

use super::subject::subject;
use crate::pages::user::choose::candidates;
use crate::prelude::*;
use crate::short_id::ShortId;

#[derive(Template)]
#[template(path = "pages/merging/choose.html")]
struct ChoosePage {
    frame: Frame,
    user: UserView,
    /// The submitted text.
    text: String,
    /// The users that it means.
    others: Vec<UserView>,
    problem: Option<Problem>,
}

/// The query of the page.
#[derive(Deserialize)]
pub struct Found {
    /// The short id of what was typed.
    search: Option<ShortId>,
}

/// The form. What was typed leads to the preview if it means one user, else to a choice.
pub async fn page(
    visit: Visit,
    Path((tenant, id)): Path<(String, String)>,
    Query(Found { search }): Query<Found>,
) -> Page {
    visit.require(Role::Registrar)?;
    let user = UserView::of(&subject(&visit.client(&tenant), &id).await?.user);
    let (mut text, mut found) = (String::new(), Ok(Vec::new()));
    if let Some(search) = search {
        text = visit.session.queries.get(search).ok_or(Failure::SearchGone)?;
        found = others(&visit, &tenant, &text, &user.id).await;
    }
    let frame = visit.frame(&tenant);
    let (others, problem) = match found {
        Ok(others) if others.len() == 1 => {
            let (home, other) = (frame.home(), &others[0].id);
            return Ok(redirect(&format!("{home}/users/{}/merge/{other}", user.id)));
        }
        Ok(others) => (others, None),
        Err(problem) => (Vec::new(), Some(problem)),
    };
    let status = problem.as_ref().map_or(StatusCode::OK, |problem| problem.status);
    Ok(render_with_status(&ChoosePage { frame, user, text, others, problem }, status))
}

/// Keeps what was typed, and leads to what it means.
pub async fn submit(visit: Visit, Path((tenant, id)): Path<(String, String)>, form: Form) -> Page {
    visit.require(Role::Registrar)?;
    let search = visit.session.queries.add(form.get("other"));
    let home = visit.frame(&tenant).home();
    Ok(redirect(&format!("{home}/users/{id}/merge?search={search}")))
}

/// The users that a text means, without the user itself.
async fn others(
    visit: &Visit,
    tenant: &str,
    text: &str,
    id: &str,
) -> Result<Vec<UserView>, Problem> {
    let mut others = candidates(visit, tenant, text).await?;
    others.retain(|other| other.id != id);
    if others.is_empty() {
        return Err(Problem::form("other", "This is the same user already. Name another one."));
    }
    Ok(others)
}
