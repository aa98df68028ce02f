//! Searches: choose a path, and read pages of users by it.

mod counting;
pub(super) mod matching_users;
mod no_match;

use std::collections::BTreeSet;

use locality_uuid::LocalityId;

pub use self::counting::UserCount;
use super::Directory;
use super::context::RequestContext;
use crate::encoded::encoded_user::EncodedUser;
use crate::error::{Error, Invalid};
use crate::model::policies::Policies;
use crate::model::user::User;
use crate::search::{
    AccessPath, Field, Filter, PageToken, Position, SearchedUser, parse_order_by, query_hash,
};
use crate::service::read_size::ReadSize;
use crate::service::scan_pace::Pace;
use crate::size::size;
use crate::stores::{ANSWER_BYTES, Consistency, PageLimit, View};

/// Users in a page by default, and at most (AIP-158).
const DEFAULT_PAGE: usize = 50;
const MAX_PAGE: usize = 1_000;
/// Index entries that one probe counts.
const PROBE_LIMIT: usize = 101;
/// Access paths that are probed. A filter may have more.
const MAX_PROBES: usize = 16;
/// Users in the first read of the store, and in any later one.
const FIRST_READ: usize = 64;
const MAX_READ: usize = 200;
/// Users that are read for one page.
const READ_LIMIT: usize = 100_000;
/// Users that cannot be read, after which a page ends.
const MAX_UNREADABLE: usize = 1_000;

/// A search.
#[derive(Clone, Copy, Debug, Default)]
pub struct SearchRequest<'a> {
    /// The filter; empty for all users.
    pub filter: &'a str,
    /// The field that orders the users; may be empty.
    pub order_by: &'a str,
    /// Users in the page; 0 for the default.
    pub page_size: i32,
    /// The token of the page; empty for the first.
    pub page_token: &'a str,
    /// Whether to probe even a single path, for the plan.
    pub explain: bool,
    /// Whether to count the users of all pages.
    pub count: bool,
    /// The part of users that the caller needs. The answer may contain more.
    pub view: View,
}

/// A page of users.
#[derive(Clone, Debug)]
pub struct Page {
    /// The users that match, in the order of the access path.
    pub users: Vec<EncodedUser>,
    /// The token of the next page; empty after the last.
    pub next_page_token: String,
    /// The users of all pages, if they were to be counted.
    pub count: Option<UserCount>,
    /// The plan of the search.
    pub plan: Plan,
    /// The reason why no user matches, if none does and a simple reason is known; else empty.
    pub hint: String,
    /// Users whose records cannot be read: whether they match is not known.
    pub unreadable: Vec<LocalityId>,
}

/// The plan of a search.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The condition that the store evaluated.
    pub path: AccessPath,
    /// The probed paths, and the number of index entries of each, at most 101.
    pub probes: Vec<(AccessPath, usize)>,
    /// Users that the store read for this page.
    pub read: usize,
    /// The users among them that match.
    pub matched: usize,
}

impl Directory {
    /// A page of the users that match a filter. It ends early before it exceeds [`ANSWER_BYTES`],
    /// or once 100,000 users were read.
    ///
    /// # Errors
    /// [`Error::Invalid`], [`Error::TenantNotFound`], [`Error::Unavailable`].
    pub async fn search(
        &self,
        context: &RequestContext<'_>,
        request: SearchRequest<'_>,
    ) -> Result<Page, Error> {
        self.search_within(READ_LIMIT, context, request).await
    }

    /// [`Directory::search`] with another limit of users that are read.
    pub async fn search_within(
        &self,
        read_limit: usize,
        context: &RequestContext<'_>,
        request: SearchRequest<'_>,
    ) -> Result<Page, Error> {
        let size = page_size(request.page_size)?;
        let field = parse_order_by(request.order_by)?;
        let filter = self.parse_filter(request.filter).await?;
        let policies = self.policies(&context.tenant).await?;
        let paths = paths(&filter, field.as_ref(), &policies)?;

        let query = query_hash(&context.tenant, request.filter, request.order_by);
        let now = context.now.time;
        let (path, probes, after) = match request.page_token {
            "" => {
                let (path, probes) = self.choose(context, paths, request.explain).await?;
                (path, probes, None)
            }
            text => {
                let token = PageToken::decode(&self.backend.token_key, text, query, now)?;
                // After a change of rules, the same filter may have other paths.
                if token.path != AccessPath::All && !paths.contains(&token.path) {
                    return Err(stale_token());
                }
                (token.path, Vec::new(), Some(token.position))
            }
        };

        let is_first = request.page_token.is_empty();
        let (view, rest) = view_to_read(filter.clone(), &path, request.view);
        let limit = PageLimit::new(size, ANSWER_BYTES);
        let count_path = request.count.then(|| path.clone());
        let mut page = PageBuilder::new(limit, read_limit, path, view, after);
        let has_more = self.fill_page(context, &rest, &mut page).await?;
        let count = match count_path {
            Some(_) if is_first && !has_more => Some(UserCount::exact(page.users.len())),
            Some(path) => {
                let asked = (&filter, field.as_ref());
                let path = self.path_to_count(context, asked, &policies, path).await?;
                let shown = page.users.len();
                self.count_matches(context, &filter, path, shown).await.ok()
            }
            None => None,
        };
        let hint = match is_first && page.users.is_empty() && !has_more {
            true => self.no_match_hint(context, &filter, &policies).await?,
            false => String::new(),
        };
        let next = has_more.then(|| page.token()).flatten();
        let next_token = next.map(|token| token.encode(&self.backend.token_key, query, now));
        let next_page_token = next_token.unwrap_or_default();
        Ok(Page { next_page_token, hint, count, ..page.build(probes) })
    }

    /// A filter by the rules of the store.
    pub(super) async fn parse_filter(&self, text: &str) -> Result<Filter, Error> {
        let (current, next) = self.stored_rules(Consistency::Latest).await?;
        let rules: Vec<_> = [current].into_iter().chain(next).collect();
        Filter::parse(text, &rules)
    }

    /// The path with the fewest index entries, equalities before others; all users if there is no
    /// path.
    async fn choose(
        &self,
        context: &RequestContext<'_>,
        mut paths: Vec<AccessPath>,
        explain: bool,
    ) -> Result<(AccessPath, Vec<(AccessPath, usize)>), Error> {
        paths.truncate(MAX_PROBES);
        if paths.len() == 1 && !explain {
            return Ok((paths.remove(0), Vec::new()));
        }
        let mut probes = Vec::with_capacity(paths.len());
        for path in paths {
            let count = self.backend.search.probe(&context.tenant, &path, PROBE_LIMIT).await?;
            probes.push((path, count));
            if count == 0 {
                break;
            }
        }
        let fewest = probes.iter().min_by_key(|(path, count)| (*count, !path.is_equality()));
        let path = fewest.map_or(AccessPath::All, |(path, _)| path.clone());
        Ok((path, probes))
    }

    /// Reads users until the page is full. Returns whether there may be more.
    async fn fill_page(
        &self,
        context: &RequestContext<'_>,
        filter: &Filter,
        page: &mut PageBuilder,
    ) -> Result<bool, Error> {
        let (tenant, search) = (&context.tenant, &self.backend.search);
        let mut pace = Pace::default();
        let mut read_size = ReadSize::new(page.limit.items().min(FIRST_READ - 1) + 1, MAX_READ);
        loop {
            let limit = read_size.users().min(page.read_limit - page.read).max(1);
            let after = page.after.as_ref();
            let batch = search.search(tenant, &page.path, after, limit, page.view).await?;
            let bytes = batch.readable().map(|found| size(&found.user)).sum();
            read_size.adapt(batch.users.len(), bytes);
            for found in batch.users {
                pace.rest().await;
                if page.limit.items() == 0 {
                    return Ok(true);
                }
                let found = match found {
                    Ok(found) => found,
                    Err(id) => {
                        page.pass_unreadable(id);
                        continue;
                    }
                };
                let is_match =
                    !found.user.state.is_purge_due(context.now) && filter.matches(&found.user);
                if is_match && !page.push(&found) {
                    return Ok(true);
                }
                page.count_read(&found.user);
            }
            let Some(next) = batch.next else {
                page.unreadable.extend(page.passed.drain(..));
                return Ok(false);
            };
            page.pass(Some(next));
            if page.is_full() {
                return Ok(true);
            }
        }
    }
}

/// Collects a page.
struct PageBuilder {
    limit: PageLimit,
    read_limit: usize,
    path: AccessPath,
    /// The part of users to read.
    view: View,
    /// The last user that was read.
    after: Option<Position>,
    users: Vec<EncodedUser>,
    unreadable: BTreeSet<LocalityId>,
    /// Those after the last user that was read: if the page ends before the next one, they are of
    /// the next page.
    passed: Vec<LocalityId>,
    read: usize,
}

impl PageBuilder {
    fn new(
        limit: PageLimit,
        read_limit: usize,
        path: AccessPath,
        view: View,
        after: Option<Position>,
    ) -> Self {
        let (users, unreadable) = (Vec::new(), BTreeSet::new());
        let passed = Vec::new();
        Self { limit, read_limit, path, view, after, users, unreadable, passed, read: 0 }
    }

    fn is_full(&self) -> bool {
        self.limit.items() == 0
            || self.read >= self.read_limit
            || self.unreadable.len() >= MAX_UNREADABLE
    }

    /// Counts and names a user that cannot be read.
    fn pass_unreadable(&mut self, id: LocalityId) {
        self.passed.push(id);
        self.read += 1;
    }

    /// Moves behind a position, and the users before it.
    fn pass(&mut self, position: Option<Position>) {
        self.after = position;
        self.unreadable.extend(self.passed.drain(..));
    }

    /// Counts a user that was read, and moves behind it.
    fn count_read(&mut self, user: &User) {
        self.pass(self.path.position_of_found(user));
        self.read += 1;
    }

    /// Adds a user that matches. Returns false if it does not fit.
    fn push(&mut self, found: &SearchedUser) -> bool {
        let user = found.encoded();
        let fits = self.limit.take(user.as_bytes().len());
        self.users.extend(Some(user).filter(|_| fits));
        fits
    }

    /// The token of the next page.
    fn token(&self) -> Option<PageToken> {
        Some(PageToken { path: self.path.clone(), position: self.after.clone()? })
    }

    /// The page without token, hint and count.
    fn build(self, probes: Vec<(AccessPath, usize)>) -> Page {
        let plan = Plan { path: self.path, probes, read: self.read, matched: self.users.len() };
        let unreadable = self.unreadable.into_iter().collect();
        let (next_page_token, hint) = (String::new(), String::new());
        Page { users: self.users, next_page_token, count: None, plan, hint, unreadable }
    }
}

/// The part of users to read, and the filter to apply to them. If the path is an equality of an
/// attribute, the filter omits it, so that attributes need not be read.
fn view_to_read(filter: Filter, path: &AccessPath, wanted: View) -> (View, Filter) {
    if path.view(wanted) == View::Full {
        return (View::Full, filter);
    }
    let rest = match path.field().and_then(Field::attribute) {
        Some(_) => filter.rest(path),
        None => filter.clone(),
    };
    if rest.attributes().is_empty() { (View::Basic, rest) } else { (View::Full, filter) }
}

/// The paths that the indexes of the tenant allow.
fn paths(
    filter: &Filter,
    order_by: Option<&Field>,
    policies: &Policies,
) -> Result<Vec<AccessPath>, Error> {
    let ordered = order_by.and_then(Field::attribute);
    if filter.attributes().into_iter().chain(ordered).any(|name| policies.is_index_changing(name)) {
        return Err(Error::IndexChanging);
    }
    if ordered.is_some_and(|name| !policies.indexes(name)) {
        let rule = "the tenant defines this attribute as not indexed";
        return Err(Error::invalid(Invalid::Field, "order_by", rule));
    }
    let is_indexed = |field: &Field| field.attribute().is_none_or(|name| policies.indexes(name));
    let mut paths =
        order_by.map_or_else(|| filter.access_paths(), |field| filter.ordered_paths(field));
    paths.retain(|path| path.field().is_none_or(is_indexed));
    Ok(paths)
}

/// The size of the requested page.
pub(super) fn page_size(size: i32) -> Result<usize, Error> {
    page_size_within(size, DEFAULT_PAGE, MAX_PAGE)
}

/// The size of the requested page: `default` for 0, and at most `max`.
pub(super) fn page_size_within(size: i32, default: usize, max: usize) -> Result<usize, Error> {
    match usize::try_from(size) {
        Ok(0) => Ok(default),
        Ok(size) => Ok(size.min(max)),
        Err(_) => Err(Error::invalid(Invalid::Field, "page_size", "must not be negative")),
    }
}

fn stale_token() -> Error {
    let message =
        "no longer fits the indexes or the rules, which have changed: begin again without one";
    Error::invalid(Invalid::PageToken, "page_token", message)
}
