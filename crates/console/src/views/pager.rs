//! Pages of lists. The address of a page has the tokens of the pages before it, so that a reader
//! can go back, also by the address alone.

use std::borrow::Cow;

use polynym_proto::v1;
use serde::Deserialize;
use url::form_urlencoded::{self, Serializer};

/// The pages that an address names: the last ones.
const MAX_STEPS: usize = 8;

/// The way to a page of a list; empty for the first.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(from = "String")]
pub struct Trail(Vec<Step>);

/// A page after the first.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Step {
    /// The pages before it.
    pages: usize,
    /// The rows before it.
    rows: usize,
    token: String,
}

/// The links to other pages. An empty one leads nowhere.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Pager {
    /// The rows of the page, such as `26 to 50`; empty without rows.
    pub rows: String,
    pub first: String,
    pub previous: String,
    pub next: String,
}

/// Reads what an address says. What is no trail leads to the first page.
impl From<String> for Trail {
    fn from(text: String) -> Self {
        let steps = form_urlencoded::parse(text.as_bytes()).take(MAX_STEPS).map(step);
        Self(steps.collect::<Option<_>>().unwrap_or_default())
    }
}

fn step((position, token): (Cow<'_, str>, Cow<'_, str>)) -> Option<Step> {
    let (pages, rows) = position.split_once('.')?;
    Some(Step { pages: pages.parse().ok()?, rows: rows.parse().ok()?, token: token.into_owned() })
}

impl Trail {
    /// The token of the page; empty for the first.
    pub fn token(&self) -> &str {
        self.0.last().map_or("", |step| &step.token)
    }

    /// The rows before the page.
    pub fn rows(&self) -> usize {
        self.0.last().map_or(0, |step| step.rows)
    }

    /// The address of the page. `first` is that of the first page.
    pub fn address(&self, first: &str) -> String {
        address_of(first, &self.0)
    }

    /// The links of a page with this number of rows. `address` is that of the first page; `next` is
    /// the token of the next page, and empty for the last.
    pub fn pager(&self, address: &str, rows: usize, next: &str) -> Pager {
        let pages = self.0.last().map_or(0, |step| step.pages);
        let end = self.rows().saturating_add(rows);
        let further = Step { pages: pages.saturating_add(1), rows: end, token: next.to_owned() };
        let next = match next {
            "" => String::new(),
            _ => address_of(address, &[&self.0[..], &[further]].concat()),
        };
        let (first, previous) = match &self.0[..] {
            [] => (String::new(), String::new()),
            [only] if only.pages > 1 => (address.to_owned(), String::new()),
            [before @ .., _] => (address.to_owned(), address_of(address, before)),
        };
        Pager { rows: shown(self.rows(), end, next.is_empty()), first, previous, next }
    }
}

impl Pager {
    /// The same links, with the number of all rows unless the page is the last.
    #[must_use]
    pub fn with_count(self, count: Option<&v1::UserCount>) -> Self {
        let count = count.filter(|_| !self.next.is_empty() && !self.rows.is_empty());
        let rows = match count {
            None => self.rows,
            Some(v1::UserCount { users, has_more: false }) => format!("{} of {users}", self.rows),
            Some(v1::UserCount { users, .. }) => format!("{} of over {users}", self.rows),
        };
        Self { rows, ..self }
    }
}

/// The address of the page at the end of the way.
fn address_of(address: &str, steps: &[Step]) -> String {
    let kept = &steps[steps.len().saturating_sub(MAX_STEPS)..];
    if kept.is_empty() {
        return address.to_owned();
    }
    let mut trail = Serializer::new(String::new());
    for Step { pages, rows, token } in kept {
        trail.append_pair(&format!("{pages}.{rows}"), token);
    }
    let query = Serializer::new(String::new()).append_pair("after", &trail.finish()).finish();
    let separator = if address.contains('?') { '&' } else { '?' };
    format!("{address}{separator}{query}")
}

/// The rows after the first `before` ones, in words.
fn shown(before: usize, end: usize, is_last: bool) -> String {
    match (before, is_last) {
        _ if before == end => String::new(),
        (0, true) => format!("{end} in all"),
        (_, true) => format!("{} to {end} of {end}", before.saturating_add(1)),
        (_, false) => format!("{} to {end}", before.saturating_add(1)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The trail in an address.
    fn trail(address: &str) -> Trail {
        let query = address.split_once('?').map_or("", |(_, query)| query);
        let mut pairs = form_urlencoded::parse(query.as_bytes());
        let after = pairs.find(|(name, _)| name == "after").map(|(_, value)| value.into_owned());
        Trail::from(after.unwrap_or_default())
    }

    #[test]
    fn a_reader_goes_on_and_back() {
        let mut addresses = vec!["/list?t=a".to_owned()];
        for page in 1..=20 {
            let pager = trail(&addresses[page - 1]).pager("/list?t=a", 25, &format!("to&{page}="));
            addresses.push(pager.next);
        }
        for page in (13..=20).rev() {
            let own = trail(&addresses[page]);
            assert_eq!((own.token(), own.rows()), (&*format!("to&{page}="), page * 25));
            let pager = own.pager("/list?t=a", 25, "");
            assert_eq!(pager.rows, format!("{} to {1} of {1}", page * 25 + 1, page * 25 + 25));
            assert_eq!(trail(&pager.previous).token(), format!("to&{}=", page - 1));
        }
        let pager = trail(&addresses[2]).pager("/list?t=a", 25, "on");
        assert_eq!((&*pager.first, &*pager.rows), ("/list?t=a", "51 to 75"));
        assert_eq!(trail(&pager.previous), trail(&addresses[1]));
        let second = trail(&addresses[1]).pager("/list?t=a", 25, "on");
        assert_eq!((&second.previous, &second.first), (&addresses[0], &addresses[0]));
    }

    #[test]
    fn beyond_the_pages_of_an_address_the_first_page_is_left() {
        let mut address = "/list".to_owned();
        for page in 1..=20 {
            address = trail(&address).pager("/list", 1, &format!("{page}")).next;
        }
        for _ in 1..MAX_STEPS {
            address = trail(&address).pager("/list", 1, "").previous;
        }
        let pager = trail(&address).pager("/list", 1, "");
        assert_eq!((&*pager.first, &*pager.previous), ("/list", ""));
    }

    #[test]
    fn what_is_no_trail_is_the_first_page() {
        for text in ["", "nonsense", "1=a", "x.y=a", "1.1=a&b", "99999999999999999999.1=a"] {
            assert_eq!(Trail::from(text.to_owned()), Trail::default(), "{text}");
        }
        assert_eq!(Trail::default().pager("/list", 0, ""), Pager::default());
        assert_eq!(Trail::default().pager("/list", 3, "").rows, "3 in all");
    }

    #[test]
    fn the_number_of_all_rows_is_named() {
        let shown = |next, users, has_more| {
            let count = v1::UserCount { users, has_more };
            Trail::default().pager("/list", 25, next).with_count(Some(&count)).rows
        };
        assert_eq!(shown("on", 218, false), "1 to 25 of 218");
        assert_eq!(shown("on", 500, true), "1 to 25 of over 500");
        assert_eq!(shown("", 25, false), "25 in all");
    }
}
