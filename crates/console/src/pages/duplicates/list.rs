//! The pairs that a search found, page by page.

use std::sync::Arc;

use crate::prelude::*;
use crate::short_id::ShortId;
use crate::views::duplicates::{Found, PairView};

/// The pairs of a page.
const PAGE_SIZE: usize = 25;
/// The pairs that a search keeps.
const MAX_PAIRS: i32 = 1_000;

/// The page of a search.
#[derive(Template)]
#[template(path = "pages/duplicates/results.html")]
pub struct ResultsPage {
    pub frame: Frame,
    pub min_score: i32,
    /// The pairs; none while the search runs.
    pub list: Option<List>,
    pub commands: Commands,
}

/// A page of pairs.
#[derive(Template)]
#[template(path = "partials/pairs.html")]
pub struct List {
    /// The path of the users.
    users: String,
    pairs: Vec<PairView>,
    pager: Pager,
    /// The pairs before the page, and all pairs.
    before: usize,
    count: usize,
    found: Arc<Found>,
    time: Option<Time>,
}

impl List {
    /// A page of the pairs.
    pub fn new(frame: &Frame, id: ShortId, found: Arc<Found>, page: &Trail) -> Self {
        let home = frame.home();
        let before = page.rows_before().min(found.pairs.len());
        let pairs: Vec<_> = found.pairs.iter().skip(before).take(PAGE_SIZE).cloned().collect();
        let has_more = before.saturating_add(pairs.len()) < found.pairs.len();
        // The rows before a page are its position: the token only says that there is a page.
        let next = if has_more { "next" } else { "" };
        Self {
            users: format!("{home}/users"),
            pager: page.pager(&format!("{home}/duplicates/{id}"), pairs.len(), next),
            pairs,
            before,
            count: found.pairs.len(),
            time: Time::of(Some(&found.time.into())),
            found,
        }
    }
}

/// The call of a search.
pub fn request(tenant: &str, min_score: i32) -> v1::FindDuplicatesRequest {
    v1::FindDuplicatesRequest { tenant: tenant.to_owned(), min_score, max_pairs: MAX_PAIRS }
}

/// The calls that do the same.
pub fn commands(tenant: &str, min_score: i32) -> Commands {
    let score = min_score.to_string();
    let cli = ["user", "duplicates", "--min-score", &score, "--tenant", tenant];
    let request = request(tenant, min_score);
    Commands::from_request(&cli, &request)
}
