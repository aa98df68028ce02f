//! Counts the users of a search, within bounds.

use super::{PageBuilder, paths, view_to_read};
use crate::error::Error;
use crate::model::policies::Policies;
use crate::search::{AccessPath, Field, Filter};
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

/// The path whose index entries are as many as the users that match, if there is one. An order by
/// an attribute leaves out users without it.
pub(super) fn path_to_count(
    filter: &Filter,
    order_by: Option<&Field>,
    policies: &Policies,
) -> Result<Option<AccessPath>, Error> {
    if order_by.is_some_and(|field| field.attribute().is_some()) {
        return Ok(None);
    }
    let mut all = paths(filter, None, policies)?.into_iter().chain([AccessPath::All]);
    Ok(all.find(|path| filter.is_counted_by(path)))
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
