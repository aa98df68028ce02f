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
    /// The path of the search.
    here: String,
    pairs: Vec<PairView>,
    /// The number of the first pair, of the page after, and of all pairs.
    first: usize,
    next: Option<usize>,
    count: usize,
    found: Arc<Found>,
    time: Option<Time>,
}

impl List {
    /// The pairs from the number `first` on.
    pub fn new(frame: &Frame, id: ShortId, found: Arc<Found>, first: usize) -> Self {
        let home = frame.home();
        let rest = found.pairs.iter().skip(first);
        Self {
            users: format!("{home}/users"),
            here: format!("{home}/duplicates/{id}"),
            pairs: rest.take(PAGE_SIZE).cloned().collect(),
            first,
            next: Some(first + PAGE_SIZE).filter(|next| *next < found.pairs.len()),
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
