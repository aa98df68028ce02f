//! Pages of lists. The address of a page has the tokens of the pages before it, so that a reader
//! can go back, also by the address alone.

use std::borrow::Cow;

use polynym_proto::v1;
use serde::Deserialize;
use url::form_urlencoded::{self, Serializer};

/// The maximum number of pages in an address: the page itself, and those before it.
const MAX_STEPS: usize = 8;

/// The maximum bytes of the tokens in an address: proxies refuse those of 8 KiB.
const MAX_BYTES: usize = 4 << 10;

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
    /// The rows of the page in words, such as `26 to 50`; empty without rows.
    pub range: String,
    /// The rows up to the end of the page.
    end: usize,
    pub first: String,
    pub previous: String,
    pub next: String,
}

/// Parses the query parameter of an address. An invalid one means the first page.
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
    pub fn rows_before(&self) -> usize {
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
        let end = self.rows_before().saturating_add(rows);
        let step = Step { pages: pages.saturating_add(1), rows: end, token: next.to_owned() };
        let next = match next {
            "" => String::new(),
            _ => address_of(address, &[&self.0[..], &[step]].concat()),
        };
        let (first, previous) = match &self.0[..] {
            [] => (String::new(), String::new()),
            // The address does not have the page before.
            [only] if only.pages > 1 => (address.to_owned(), String::new()),
            [before @ .., _] => (address.to_owned(), address_of(address, before)),
        };
        let range = range(self.rows_before(), end, next.is_empty());
        Pager { range, end, first, previous, next }
    }
}

impl Pager {
    /// The same links of a page that is the only one, though it may not have all rows.
    #[must_use]
    pub fn of_first(self, is_cut: bool) -> Self {
        match is_cut && self.next.is_empty() {
            true => Self { range: format!("the first {}", self.end), ..self },
            false => self,
        }
    }

    /// The same links, with the number of all rows if it is more than the page tells.
    #[must_use]
    pub fn with_count(self, count: Option<&v1::UserCount>) -> Self {
        let is_news = |users: i32| usize::try_from(users).is_ok_and(|users| users > self.end);
        let count = count.filter(|count| is_news(count.users) && !self.range.is_empty());
        let Some(v1::UserCount { users, has_more }) = count else { return self };
        let bound = if *has_more { "at least " } else { "" };
        Self { range: format!("{} of {bound}{users}", self.range), ..self }
    }
}

/// The address of the page of the last step.
fn address_of(address: &str, steps: &[Step]) -> String {
    let mut kept = &steps[steps.len().saturating_sub(MAX_STEPS)..];
    let bytes = |steps: &[Step]| steps.iter().map(|step| step.token.len()).sum::<usize>();
    while kept.len() > 1 && bytes(kept) > MAX_BYTES {
        kept = &kept[1..];
    }
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
fn range(before: usize, end: usize, is_last: bool) -> String {
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
            assert_eq!((own.token(), own.rows_before()), (&*format!("to&{page}="), page * 25));
            let pager = own.pager("/list?t=a", 25, "");
            assert_eq!(pager.range, format!("{} to {1} of {1}", page * 25 + 1, page * 25 + 25));
            assert_eq!(trail(&pager.previous).token(), format!("to&{}=", page - 1));
        }
        let pager = trail(&addresses[2]).pager("/list?t=a", 25, "on");
        assert_eq!((&*pager.first, &*pager.range), ("/list?t=a", "51 to 75"));
        assert_eq!(trail(&pager.previous), trail(&addresses[1]));
        let second = trail(&addresses[1]).pager("/list?t=a", 25, "on");
        assert_eq!((&second.previous, &second.first), (&addresses[0], &addresses[0]));
    }

    #[test]
    fn going_back_past_the_trail_leads_to_the_first_page() {
        let mut address = "/list".to_owned();
        for page in 1..=20 {
            address = trail(&address).pager("/list", 1, &format!("{page}")).next;
        }
        for _ in 1..MAX_STEPS {
            address = trail(&address).pager("/list", 1, "").previous;
        }
        let pager = trail(&address).pager("/list", 1, "");
        assert_eq!((&*pager.first, &*pager.previous), ("/list", ""));
        for page in 1..=20 {
            address = trail(&address).pager("/list", 1, &format!("{page:0700}")).next;
        }
        assert!((3_000..5_000).contains(&address.len()), "{}", address.len());
    }

    #[test]
    fn an_invalid_trail_is_the_first_page() {
        for text in ["", "nonsense", "1=a", "x.y=a", "1.1=a&b", "99999999999999999999.1=a"] {
            assert_eq!(Trail::from(text.to_owned()), Trail::default(), "{text}");
        }
        assert_eq!(Trail::default().pager("/list", 0, ""), Pager::default());
        assert_eq!(Trail::default().pager("/list", 3, "").range, "3 in all");
    }

    #[test]
    fn the_number_of_all_rows_is_named() {
        let shown = |next, users, has_more| {
            let count = v1::UserCount { users, has_more };
            Trail::default().pager("/list", 25, next).with_count(Some(&count)).range
        };
        assert_eq!(shown("on", 218, false), "1 to 25 of 218");
        assert_eq!(shown("on", 500, true), "1 to 25 of at least 500");
        assert_eq!(shown("on", 2, true), "1 to 25");
        assert_eq!(shown("", 25, false), "25 in all");
    }
}
