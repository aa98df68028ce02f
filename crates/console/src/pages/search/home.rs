//! The start page: the search box, the saved searches of the caller, and what goes on.

use http::HeaderMap;

use super::desk::Desk;
use super::saved::{SavedSearch, SavedSearches};
use crate::prelude::*;

#[derive(Template)]
#[template(path = "pages/home.html")]
struct HomePage {
    frame: Frame,
    saved: Vec<SavedSearch>,
    /// The panels; none for callers who may not view users.
    desk: Option<Desk>,
}

/// The page. A resolver gets the search box alone.
pub async fn page(visit: Visit, headers: HeaderMap, Path(tenant): Path<String>) -> Page {
    let frame = visit.frame(&tenant);
    if !frame.may_view() {
        return Ok(render(&HomePage { frame, saved: Vec::new(), desk: None }));
    }
    let saved = SavedSearches::of(&headers).of_caller(&visit.caller.name);
    let desk = Some(Desk::read(&visit, &tenant).await);
    Ok(render(&HomePage { frame, saved, desk }))
}
