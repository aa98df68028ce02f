//! Saved searches of a caller: the browser keeps a few for each tenant, so that they outlast the
//! session and the server keeps nothing.

use std::sync::Arc;

use http::header::SET_COOKIE;
use http::{HeaderMap, Response};
use serde::{Deserialize, Serialize};

use super::order::{Order, Ordered};
use crate::console::Shared;
use crate::cookies::{is_kept, kept_list, list_cookie};
use crate::prelude::*;
use crate::short_id::{ShortId, new_id};

const COOKIE: &str = "polynym_searches";
/// The maximum number of searches that a caller saves in a tenant.
const MAX_SEARCHES: usize = 20;
/// The maximum characters of a name.
const MAX_NAME: usize = 60;

/// A saved search.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SavedSearch {
    #[serde(rename = "i")]
    pub id: u32,
    /// The caller who saved it.
    #[serde(rename = "c")]
    caller: String,
    #[serde(rename = "n")]
    pub name: String,
    #[serde(rename = "t")]
    pub text: String,
    #[serde(rename = "o", default)]
    order: Order,
}

/// The saved searches in a browser, of all its callers, the oldest first.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SavedSearches(Vec<SavedSearch>);

impl SavedSearches {
    /// Those that a browser has for the tenant of the page.
    pub fn of(headers: &HeaderMap) -> Self {
        kept_list(headers, COOKIE)
    }

    /// Those of a caller, by name.
    pub fn of_caller(&self, caller: &str) -> Vec<SavedSearch> {
        let own = self.0.iter().filter(|saved| saved.caller == caller);
        let mut own: Vec<_> = own.take(MAX_SEARCHES).cloned().collect();
        own.sort_by_cached_key(|saved| saved.name.to_lowercase());
        own
    }

    /// The name of a search; empty if it is not saved.
    pub fn name_of(&self, caller: &str, text: &str) -> String {
        let is_it = |saved: &&SavedSearch| saved.caller == caller && saved.text == text;
        self.0.iter().find(is_it).map(|saved| saved.name.clone()).unwrap_or_default()
    }

    /// Adds a search. It replaces those of the caller with the name or the text. Searches of other
    /// callers of the browser make room for it.
    ///
    /// # Errors
    /// The name is invalid, or the caller has as many searches as there is room for.
    fn add(&mut self, new: SavedSearch) -> Result<(), Failure> {
        if new.name.is_empty() || new.name.chars().count() > MAX_NAME {
            return Err(Failure::Form(format!("Write a name of 1 to {MAX_NAME} characters.")));
        }
        let is_replaced = |saved: &SavedSearch| {
            saved.caller == new.caller && (saved.name == new.name || saved.text == new.text)
        };
        self.0.retain(|saved| !is_replaced(saved));
        if self.0.iter().filter(|saved| saved.caller == new.caller).count() >= MAX_SEARCHES {
            let message = "You have {MAX} saved searches in this tenant, which are as many as a \
                browser keeps. Remove one on the page “Search” first.";
            return Err(Failure::Form(message.replace("{MAX}", &MAX_SEARCHES.to_string())));
        }
        let caller = new.caller.clone();
        self.0.push(new);
        while !is_kept(self) {
            let Some(other) = self.0.iter().position(|saved| saved.caller != caller) else {
                return Err(Failure::Form(
                    "Your saved searches in this tenant are as long as a browser keeps them. \
                        Remove one on the page “Search” first, or save a shorter one."
                        .to_owned(),
                ));
            };
            self.0.remove(other);
        }
        Ok(())
    }

    /// The search of a caller with this id.
    fn get(&self, caller: &str, id: u32) -> Option<&SavedSearch> {
        self.0.iter().find(|saved| saved.id == id && saved.caller == caller)
    }

    fn kept(
        &self,
        shared: &Shared,
        tenant: &str,
        mut response: Response<axum::body::Body>,
    ) -> Page {
        let path = format!("{}/t/{tenant}", shared.base);
        if let Some(cookie) = list_cookie(COOKIE, self, &path) {
            response.headers_mut().append(SET_COOKIE, cookie);
        }
        Ok(response)
    }
}

/// A shorter id: a browser has few searches.
const fn short_of(id: ShortId) -> u32 {
    (id >> 32) as u32
}

/// Saves a search under a name, and returns to it.
pub async fn save(
    State(shared): State<Arc<Shared>>,
    visit: Visit,
    headers: HeaderMap,
    Path((tenant, id)): Path<(String, ShortId)>,
    Query(Ordered { order }): Query<Ordered>,
    form: Form,
) -> Page {
    visit.require(Role::Viewer)?;
    let text = visit.session.queries.get(id).ok_or(Failure::SearchGone)?;
    let name = form.get("name").replace(char::is_control, " ");
    let mut searches = SavedSearches::of(&headers);
    let caller = visit.caller.name.clone();
    searches.add(SavedSearch { id: short_of(new_id()), caller, name, text, order })?;
    let list = format!("{}/search/{id}", visit.frame(&tenant).home());
    searches.kept(&shared, &tenant, redirect(&order.address(&list)))
}

/// Leads to the results of a saved search.
pub async fn open(
    visit: Visit,
    headers: HeaderMap,
    Path((tenant, id)): Path<(String, u32)>,
) -> Page {
    visit.require(Role::Viewer)?;
    let searches = SavedSearches::of(&headers);
    let saved = searches.get(&visit.caller.name, id).ok_or(Failure::NotFound)?;
    let id = visit.session.queries.add(&saved.text);
    let list = format!("{}/search/{id}", visit.frame(&tenant).home());
    Ok(redirect(&saved.order.address(&list)))
}

/// Removes a saved search, and returns to the others.
pub async fn remove(
    State(shared): State<Arc<Shared>>,
    visit: Visit,
    headers: HeaderMap,
    Path((tenant, id)): Path<(String, u32)>,
) -> Page {
    visit.require(Role::Viewer)?;
    let mut searches = SavedSearches::of(&headers);
    let caller = &visit.caller.name;
    searches.0.retain(|saved| !(saved.id == id && saved.caller == *caller));
    searches.kept(&shared, &tenant, redirect(&format!("{}/", visit.frame(&tenant).home())))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn search(caller: &str, name: &str, text: &str) -> SavedSearch {
        let [caller, name, text] = [caller, name, text].map(str::to_owned);
        SavedSearch { id: short_of(new_id()), caller, name, text, order: Order::DisplayName }
    }

    #[test]
    fn searches_survive_their_cookie_and_others_do_not_count() {
        let mut searches = SavedSearches::default();
        let odd = r#"attributes."té; ,am" = "\"山\"""#;
        searches.add(search("ann", "Ünïcode; x=1", odd)).unwrap();
        let cookie = list_cookie(COOKIE, &searches, "/console/t/a").unwrap();
        let pair = cookie.to_str().unwrap().split(';').next().unwrap().to_owned();
        let mut headers = HeaderMap::new();
        headers.insert(http::header::COOKIE, pair.parse().unwrap());
        assert_eq!(SavedSearches::of(&headers), searches);
        assert_eq!(searches.name_of("ann", odd), "Ünïcode; x=1");
        assert!(searches.of_caller("bob").is_empty() && searches.get("bob", 1).is_none());
        headers.insert(http::header::COOKIE, format!("{COOKIE}=nonsense").parse().unwrap());
        assert_eq!(SavedSearches::of(&headers), SavedSearches::default());
    }

    #[test]
    fn a_name_or_a_text_is_saved_once() {
        let mut searches = SavedSearches::default();
        for (name, text) in [("red", "team = red"), ("Red", "team = red"), ("Red", "team = Red")] {
            searches.add(search("ann", name, text)).unwrap();
        }
        let own = searches.of_caller("ann");
        assert_eq!((own.len(), &*own[0].name, &*own[0].text), (1, "Red", "team = Red"));
        for wrong in ["", &"x".repeat(MAX_NAME + 1)] {
            assert!(searches.add(search("ann", wrong, "x")).is_err());
        }
    }

    #[test]
    fn a_browser_keeps_some_and_the_caller_s_own_stay() {
        let mut searches = SavedSearches::default();
        for n in 0..1_000 {
            let saved = searches.add(search("bob", &n.to_string(), &n.to_string()));
            assert_eq!(saved.is_ok(), n < MAX_SEARCHES);
        }
        for n in 0..1_000 {
            let text = format!("attributes.a{n} = \"{}\"", "山".repeat(20));
            let before = searches.clone();
            match searches.add(search("ann", &n.to_string(), &text)) {
                Ok(()) => assert!(is_kept(&searches)),
                Err(_) => searches = before,
            }
        }
        let own = searches.of_caller("ann").len();
        assert!((10..=MAX_SEARCHES).contains(&own), "{own}");
        assert!(searches.of_caller("bob").len() < MAX_SEARCHES);
    }
}
