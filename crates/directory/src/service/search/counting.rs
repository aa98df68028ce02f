//! Counts the users of a search, within bounds.

use super::{PageBuilder, paths, view_to_read};
use crate::error::Error;
use crate::model::policies::Policies;
use crate::search::{AccessPath, Field, Filter};
use crate::service::Directory;
use crate::service::context::RequestContext;
use crate::stores::{ANSWER_BYTES, PageLimit, View};

/// The maximum number of users that an index counts.
const INDEX_LIMIT: usize = 10_000;
/// The maximum number of users that are read to be counted.
const READ_LIMIT: usize = 500;

/// A number of users, within bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UserCount {
    /// The users that were counted.
    pub users: usize,
    /// Whether there may be more.
    pub has_more: bool,
}

impl UserCount {
    /// An exact number.
    pub(super) const fn exact(users: usize) -> Self {
        Self { users, has_more: false }
    }
}

impl Directory {
    /// The path to count the users that match: that whose index entries are as many, if there is
    /// one, or else that of an unordered search, which reads the fewest others. An order by an
    /// attribute leaves out users without it, and counts along its own path.
    pub(super) async fn path_to_count(
        &self,
        context: &RequestContext<'_>,
        (filter, order_by): (&Filter, Option<&Field>),
        policies: &Policies,
        own: AccessPath,
    ) -> Result<AccessPath, Error> {
        if order_by.is_some_and(|field| field.attribute().is_some()) {
            return Ok(own);
        }
        let all = paths(filter, None, policies)?;
        let counted = all.iter().chain([&AccessPath::All]).find(|path| filter.is_counted_by(path));
        match (counted, order_by) {
            (Some(path), _) => Ok(path.clone()),
            (None, None) => Ok(own),
            (None, Some(_)) => Ok(self.choose(context, all, false).await?.0),
        }
    }

    /// Counts the users that match a filter: by the index that `path` reads, or else by reading
    /// them along the path. There are `shown` ones at least.
    pub(super) async fn count_matches(
        &self,
        context: &RequestContext<'_>,
        filter: &Filter,
        path: AccessPath,
        shown: usize,
    ) -> Result<UserCount, Error> {
        if filter.is_counted_by(&path) {
            let store = &self.backend.search;
            let entries = store.probe(&context.tenant, &path, INDEX_LIMIT + 1).await?;
            return Ok(UserCount {
                users: entries.min(INDEX_LIMIT),
                has_more: entries > INDEX_LIMIT,
            });
        }
        let (view, rest) = view_to_read(filter.clone(), &path, View::Basic);
        let limit = PageLimit::new(READ_LIMIT, ANSWER_BYTES);
        let mut page = PageBuilder::new(limit, READ_LIMIT, path, view, None);
        let has_more = self.fill_page(context, &rest, &mut page).await?;
        Ok(UserCount { users: page.users.len().max(shown), has_more })
    }
}
