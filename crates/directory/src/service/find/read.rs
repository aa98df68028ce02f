//! Finds users by a text. The users of all its readings are one list, in pages.

use std::collections::{BTreeSet, HashSet};
use std::time::Duration;

use locality_uuid::LocalityId;
use prost::Message;
use tokio::time::timeout;

use super::exact::{ExactMatches, Finding, FoundUser, id};
use super::reading::{Readings, begun_names, candidates, similar_names};
use super::request::FindRequest;
use super::way::{Reading, Search, Way};
use crate::error::Error;
use crate::search::{Filter, query_hash};
use crate::service::Directory;
use crate::service::context::RequestContext;
use crate::service::search::matching_users::{Part, PartRequest};
use crate::stores::{ANSWER_BYTES, Consistency, PageLimit};
use crate::tokens::sealed::{SealedToken, TokenPayload};

/// The maximum number of users that one search reads for a page.
const READ_LIMIT: usize = 1_000;
const MAX_SUGGESTIONS: usize = 8;
/// The time that a page which has users already gives to a further search.
const FURTHER_SEARCH_TIMEOUT: Duration = Duration::from_secs(3);

/// A page of the users that a text finds.
#[derive(Clone, Debug, Default)]
pub struct FindPage {
    /// The users, the likeliest first.
    pub matches: Vec<FoundUser>,
    /// All ways in which the text was read.
    pub tried: Vec<Reading>,
    /// If the text finds nobody as it is: words of names that it may have been meant to have.
    pub suggestions: Vec<String>,
    /// Users whose records cannot be read: whether the text finds them is not known.
    pub unreadable: BTreeSet<LocalityId>,
    /// The token of the next page; empty after the last.
    pub next_page_token: String,
    /// The number of identifiers that nobody owns. They count as misses of the caller.
    pub misses: usize,
}

/// The position after a page.
#[derive(Clone, PartialEq, Message)]
struct Cursor {
    /// The number of shown users with the identifiers or the id.
    #[prost(uint32, tag = "3")]
    exact: u32,
    /// The index of the present search.
    #[prost(uint32, tag = "4")]
    searches: u32,
    /// The cursor of the present search.
    #[prost(bytes = "vec", tag = "5")]
    position: Vec<u8>,
}

impl TokenPayload for Cursor {
    const KIND: u64 = 0x706f_6c79_6e79_6d0a;
    const OTHER_QUERY: &'static str =
        "belongs to another text, or policies have changed: begin again without one";
}

impl Directory {
    /// A page of the users that a text finds, each once.
    ///
    /// # Errors
    /// [`Error::Invalid`], [`Error::TenantNotFound`], [`Error::IndexChanging`],
    /// [`Error::Unavailable`].
    pub async fn find_users(
        &self,
        context: &RequestContext<'_>,
        request: FindRequest<'_>,
    ) -> Result<FindPage, Error> {
        let size = request.check()?;
        let policies = self.policies(&context.tenant).await?;
        let (rules, _) = self.stored_rules(Consistency::Latest).await?;
        let regions = request.regions(&policies);
        let mut readings = match request.identifiers_only {
            true => Readings::of_identifiers(request.text, &regions, rules),
            false => Readings::new(request.text, &regions, &policies, rules),
        };
        readings.identifiers.truncate(self.limits.batch);
        let (key, now) = (&self.backend.token_key, context.now.time);
        // Tokens count in the readings, which change with policies and rules.
        let tried = readings.tried();
        let query = query_hash(&context.tenant, request.text, &shape(&tried));
        let is_first = request.page_token.is_empty();
        let cursor = SealedToken::open_page(key, request.page_token, query, now)?;

        let finding = Finding { directory: self, context, rules, readings, request };
        let mut page = FindPage::default();
        let limit = PageLimit::new(size, ANSWER_BYTES);
        let next = finding.fill(&mut page, limit, cursor.unwrap_or_default()).await?;
        if is_first {
            page.tried = tried;
        }
        if is_first && next.is_none() && page.matches.is_empty() {
            finding.add_similar(&mut page, limit).await?;
        }
        let seal = |payload: Cursor| SealedToken { query, issued: now, payload }.seal(key);
        page.next_page_token = next.map(seal).unwrap_or_default();
        Ok(page)
    }
}

impl Finding<'_> {
    /// Fills a page from a cursor on. Returns that of the next page, if there may be more users.
    async fn fill(
        &self,
        page: &mut FindPage,
        mut limit: PageLimit,
        cursor: Cursor,
    ) -> Result<Option<Cursor>, Error> {
        let ExactMatches { users: exact, misses, failure } = self.exact_matches().await?;
        page.misses = misses;
        let shown = exact.iter().map(|found| id(&found.user)).collect::<Result<HashSet<_>, _>>()?;
        let mut next = cursor;
        for found in exact.into_iter().skip(next.exact as usize) {
            if !limit.take(found.user.as_bytes().len()) {
                return Ok(Some(next));
            }
            next.exact += 1;
            page.matches.push(found);
        }

        let searches = &self.readings.searches;
        for (n, search) in searches.iter().enumerate().skip(next.searches as usize) {
            next.searches = n as u32;
            if limit.items() == 0 {
                return Ok(Some(next));
            }
            // Who types a whole identifier means no longer number.
            if search.reading.way == Way::AttributeStart && !shown.is_empty() {
                continue;
            }
            let earlier = searches[..n].iter().map(|search| &search.filter);
            let filter = search.filter.clone().excluding(earlier);
            let read = self.read(&filter, &next.position, limit);
            let part = match page.matches.is_empty() {
                true => read.await?,
                // A page with users does not wait for an unavailable shard.
                false => match timeout(FURTHER_SEARCH_TIMEOUT, read).await {
                    Err(_) | Ok(Err(Error::Unavailable(_))) => return Ok(Some(next)),
                    Ok(part) => part?,
                },
            };
            limit = part.limit;
            page.unreadable.extend(part.unreadable);
            for user in part.users {
                if !shown.contains(&id(&user)?) {
                    let reasons = self.readings.searches_of(&user)?;
                    page.matches.push(FoundUser { user, reasons, merged_from: None });
                }
            }
            next.position.clear();
            if let Some(position) = part.next {
                next.position = position;
                return Ok(Some(next));
            }
        }
        match failure {
            Some(error) if page.matches.is_empty() => Err(error),
            _ => Ok(None),
        }
    }

    /// Adds users whose names have words that begin like those of the text, or are like them, and
    /// these words.
    async fn add_similar(&self, page: &mut FindPage, limit: PageLimit) -> Result<(), Error> {
        let has_words = |search: &Search| search.reading.way == Way::Name;
        let text = self.request.text;
        if !self.readings.searches.iter().any(has_words) {
            return Ok(());
        }
        if let Some(Search { reading, filter, .. }) = begun_names(text) {
            self.add_all(page, (reading, &filter), limit).await?;
            if !page.matches.is_empty() {
                return Ok(());
            }
        }
        let candidates = candidates(text);
        if candidates.is_empty() {
            return Ok(());
        }
        let store = &self.directory.backend.search;
        let mut known = store.known_words(&self.context.tenant, &candidates).await?;
        let Some(Search { reading, filter, .. }) = similar_names(text, &known) else {
            return Ok(());
        };
        self.add_all(page, (reading, &filter), limit).await?;
        known.truncate(MAX_SUGGESTIONS);
        page.suggestions = known;
        Ok(())
    }

    /// Adds the users whom a filter finds, with a reading, which is noted as tried if it finds any.
    async fn add_all(
        &self,
        page: &mut FindPage,
        (reading, filter): (Reading, &Filter),
        limit: PageLimit,
    ) -> Result<(), Error> {
        let found = |user| FoundUser { user, reasons: vec![reading.clone()], merged_from: None };
        page.matches = self.read(filter, &[], limit).await?.users.into_iter().map(found).collect();
        page.tried.extend((!page.matches.is_empty()).then_some(reading));
        Ok(())
    }

    /// Reads a part of the users that a filter finds.
    async fn read(&self, filter: &Filter, cursor: &[u8], limit: PageLimit) -> Result<Part, Error> {
        let (read_limit, view) = (READ_LIMIT, self.view());
        let request = PartRequest { filter, cursor, limit, read_limit, view };
        self.directory.matching_part(self.context, request).await
    }
}

/// The readings as a text, for the hash of a query.
fn shape(readings: &[Reading]) -> String {
    let shape = |Reading { way, value, region, attribute }: &Reading| {
        format!("{way:?}\0{value}\0{region}\0{attribute}\0")
    };
    readings.iter().map(shape).collect()
}
