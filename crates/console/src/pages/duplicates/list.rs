//! The pairs that a search found, page by page.

use std::collections::HashMap;
use std::sync::Arc;

use polynym_client::Client;

use crate::prelude::*;
use crate::short_id::ShortId;
use crate::views::duplicates::{Found, PairView};
use crate::views::identity;
use crate::views::person::People;
use crate::views::text::cut;

/// The pairs of a page.
const PAGE_SIZE: usize = 25;
/// The characters of an identity.
const CONTACT_CHARACTERS: usize = 60;
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
    /// Whether a search with a lower score may find others.
    can_be_lower: bool,
    /// What tells users of the page apart: an identity of each.
    contacts: HashMap<String, String>,
}

impl List {
    /// A page of the pairs of a search, each user with an identity.
    pub async fn read(
        client: &Client,
        frame: &Frame,
        (id, min_score): (ShortId, i32),
        found: Arc<Found>,
        page: &Trail,
    ) -> Self {
        let mut list = Self::new(frame, (id, min_score), found, page);
        let ids = list.pairs.iter().flat_map(|pair| &pair.ids).map(String::as_str);
        let users = People::users(client, ids).await.unwrap_or_default();
        let contact = |user: &v1::User| Some((user.user_id.clone(), contact(user)?));
        list.contacts = users.iter().filter_map(contact).collect();
        list
    }

    /// The identity of a user that tells it from others of its name; empty if it is not known.
    fn contact(&self, id: &str) -> &str {
        self.contacts.get(id).map_or("", String::as_str)
    }

    fn new(
        frame: &Frame,
        (id, min_score): (ShortId, i32),
        found: Arc<Found>,
        page: &Trail,
    ) -> Self {
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
            can_be_lower: min_score > 1,
            contacts: HashMap::new(),
        }
    }
}

/// The address or the number of a user, or else another identity.
fn contact(user: &v1::User) -> Option<String> {
    let all = || user.identities.iter().map(|own| own.identifier.as_ref());
    let of = |kind: &str| all().find(|own| identity::kind(*own) == kind);
    let own = of("email").or_else(|| of("phone")).or_else(|| all().next())?;
    Some(cut(identity::value(own), CONTACT_CHARACTERS))
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
