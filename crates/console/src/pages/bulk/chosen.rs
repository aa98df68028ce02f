//! Users that somebody ticked in a list: to change them together, or to merge two.

use std::collections::BTreeSet;

use axum::extract::Path;
use locality_uuid::LocalityId;

use crate::change::Sent;
use crate::failure::Failure;
use crate::form::Form;
use crate::render::{Page, redirect};
use crate::short_id::ShortId;
use crate::visit::Visit;

/// The most users of a choice: the session keeps their ids.
const MAX_USERS: usize = 1_000;

/// Keeps a choice, and leads to what is to be done with it.
pub async fn choose(visit: Visit, Path(tenant): Path<String>, form: Form) -> Page {
    let sent = Sent::new(visit, tenant, form)?;
    let mut seen = BTreeSet::new();
    let mut ids: Vec<_> = sent.form.all("user").filter_map(id).take(MAX_USERS).collect();
    ids.retain(|id| seen.insert(id.clone()));
    let home = sent.home();
    match (&ids[..], sent.form.has("merge")) {
        ([], _) => Err(wrong("Choose users first: tick the boxes beside their names.")),
        ([one, other], true) => Ok(redirect(&format!("{home}/users/{one}/merge/{other}"))),
        (_, true) => Err(wrong("Choose two users to merge them.")),
        (_, false) => {
            let users = sent.visit.session.queries.add(&ids.join(" "));
            Ok(redirect(&format!("{home}/bulk/new?users={users}")))
        }
    }
}

/// Leads to the bulk changes: the address is one of a form.
pub async fn back(visit: Visit, Path(tenant): Path<String>) -> Page {
    Ok(redirect(&format!("{}/bulk", visit.frame(&tenant).home())))
}

/// The ids of the users of a choice.
///
/// # Errors
/// The session does not have it any more.
pub fn ids(visit: &Visit, users: ShortId) -> Result<Vec<String>, Failure> {
    let text = visit.session.queries.get(users).ok_or(Failure::SearchGone)?;
    let ids: Option<Vec<_>> = text.split(' ').map(id).collect();
    ids.ok_or(Failure::SearchGone)
}

fn id(text: &str) -> Option<String> {
    Some(text.parse::<LocalityId>().ok()?.to_string())
}

fn wrong(message: &str) -> Failure {
    Failure::Form(message.to_owned())
}
