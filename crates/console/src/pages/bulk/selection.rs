//! Users who are selected in a list: to change them together, or to merge two.

use std::collections::BTreeSet;

use locality_uuid::LocalityId;

use crate::change::Sent;
use crate::failure::Failure;
use crate::form::{Form, Path};
use crate::render::{Page, redirect};
use crate::short_id::ShortId;
use crate::visit::Visit;

/// The maximum number of selected users: the session keeps their ids.
const MAX_USERS: usize = 1_000;

/// Keeps the selected users, and leads to the form of a bulk change or to the merge.
pub async fn submit(visit: Visit, Path(tenant): Path<String>, form: Form) -> Page {
    let sent = Sent::new(visit, tenant, form)?;
    let mut seen = BTreeSet::new();
    let mut ids: Vec<_> = sent.form.all("user").filter_map(id).collect();
    ids.retain(|id| seen.insert(id.clone()));
    let home = sent.home();
    match (&ids[..], sent.form.has("merge")) {
        ([], _) => Err(wrong("Select users first: tick the boxes beside their names.")),
        ([one, other], true) => Ok(redirect(&format!("{home}/users/{one}/merge/{other}"))),
        (_, true) => Err(wrong("Select exactly two users to merge them.")),
        (all, false) if all.len() > MAX_USERS => Err(wrong("Select at most 1,000 users.")),
        (all, false) => {
            let selection = sent.visit.session.queries.add(&all.join(" "));
            Ok(redirect(&format!("{home}/bulk/new?selection={selection}")))
        }
    }
}

/// Leads to the bulk changes: the address is one of a form.
pub async fn back(visit: Visit, Path(tenant): Path<String>) -> Page {
    Ok(redirect(&format!("{}/bulk", visit.frame(&tenant).home())))
}

/// The ids of the selected users of a form; none if a filter finds its users.
///
/// # Errors
/// The session does not have them any more.
pub fn of_form(visit: &Visit, form: &Form) -> Result<Option<Vec<String>>, Failure> {
    let selection = form.get("selection");
    if selection.is_empty() {
        return Ok(None);
    }
    let text = selection.parse().ok().and_then(|selection| visit.session.queries.get(selection));
    let ids = text.and_then(|text| text.split(' ').map(id).collect());
    let message = "The selection has expired: select the users again.";
    ids.map(Some).ok_or_else(|| wrong(message))
}

/// Keeps the list of a bulk change.
pub fn keep(visit: &Visit, bulk: &str, ids: &[String]) -> ShortId {
    visit.session.queries.add(&format!("{bulk} {}", ids.join(" ")))
}

/// The address of a bulk change, with the selection that is its list.
pub fn address(home: &str, bulk: &str, selection: Option<ShortId>) -> String {
    // An id of a bulk change has no character to be escaped.
    match selection {
        Some(selection) => format!("{home}/bulk/{bulk}?selection={selection}"),
        None => format!("{home}/bulk/{bulk}"),
    }
}

/// The ids of the list of a bulk change, if the session still has it.
pub fn of_bulk(visit: &Visit, bulk: &str, selection: ShortId) -> Option<Vec<String>> {
    let text = visit.session.queries.get(selection)?;
    text.strip_prefix(bulk)?.strip_prefix(' ')?.split(' ').map(id).collect()
}

fn id(text: &str) -> Option<String> {
    Some(text.parse::<LocalityId>().ok()?.to_string())
}

fn wrong(message: &str) -> Failure {
    Failure::Form(message.to_owned())
}
