//! Counts the users of a search, within bounds.

use super::{PageBuilder, view_to_read};
use crate::error::Error;
use crate::search::{AccessPath, Filter};
use crate::service::Directory;
use crate::service::context::RequestContext;
use crate::stores::{ANSWER_BYTES, PageLimit, View};

/// The most users that an index counts.
const MAX_COUNT: usize = 10_000;
/// The most users that are read to be counted.
const MAX_READ: usize = 500;

/// A number of users, within bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UserCount {
    /// The users that were counted.
    pub users: usize,
    /// Whether there may be more.
    pub has_more: bool,
}

impl UserCount {
    /// All users.
    pub(super) const fn exact(users: usize) -> Self {
        Self { users, has_more: false }
    }
}

impl Directory {
    /// Counts the users that match a filter: by the index that `path` reads, or else by reading
    /// them along the path.
    pub(super) async fn count_matches(
        &self,
        context: &RequestContext<'_>,
        filter: &Filter,
        path: AccessPath,
    ) -> Result<UserCount, Error> {
        if filter.is_counted_by(&path) {
            let store = &self.backend.search;
            let entries = store.probe(&context.tenant, &path, MAX_COUNT + 1).await?;
            return Ok(UserCount { users: entries.min(MAX_COUNT), has_more: entries > MAX_COUNT });
        }
        let (view, rest) = view_to_read(filter.clone(), &path, View::Basic);
        let limit = PageLimit::new(MAX_READ, ANSWER_BYTES);
        let mut page = PageBuilder::new(limit, MAX_READ, path, view, None);
        let has_more = self.fill_page(context, &rest, &mut page).await?;
        Ok(UserCount { users: page.users.len(), has_more })
    }
}
