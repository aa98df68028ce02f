//! Bounded reads of the users that a filter matches: for jobs, and for finding by a text.

use std::collections::BTreeSet;

use locality_uuid::LocalityId;

use super::{PageBuilder, paths, stale_token, view_to_read};
use crate::encoded::encoded_user::EncodedUser;
use crate::error::{Error, Invalid};
use crate::model::bulk::progress::BulkBatch;
use crate::search::{AccessPath, Filter, PageToken};
use crate::service::Directory;
use crate::service::context::RequestContext;
use crate::stores::{ANSWER_BYTES, PageLimit, View};

/// Users in a batch.
const BATCH_USERS: usize = 100;
/// Users that are read for a batch.
const READ_LIMIT: usize = 2_000;

/// A bounded read of the users that a filter finds by an index.
pub struct PartRequest<'p> {
    /// The filter. Without a path it finds nobody: all users are never read.
    pub filter: &'p Filter,
    /// The end of the part before; empty for the first.
    pub cursor: &'p [u8],
    /// The limit of the part.
    pub limit: PageLimit,
    /// Users that are read for it.
    pub read_limit: usize,
    /// The part of users that the caller needs. The answer may contain more.
    pub view: View,
}

/// A part of the users that a filter finds.
pub struct Part {
    /// The users.
    pub users: Vec<EncodedUser>,
    /// Users whose records cannot be read.
    pub unreadable: BTreeSet<LocalityId>,
    /// The limit of what follows.
    pub limit: PageLimit,
    /// The cursor of the next part, which is empty before the first user; none after the last part.
    pub next: Option<Vec<u8>>,
}

impl Directory {
    /// A part of the users that a filter finds by an index.
    ///
    /// # Errors
    /// [`Error::Invalid`] if the tenant's indexes no longer fit the cursor;
    /// [`Error::TenantNotFound`], [`Error::IndexChanging`], [`Error::Unavailable`].
    pub(crate) async fn matching_part(
        &self,
        context: &RequestContext<'_>,
        request: PartRequest<'_>,
    ) -> Result<Part, Error> {
        let PartRequest { filter, cursor, limit, read_limit, view } = request;
        let policies = self.policies(&context.tenant).await?;
        let paths = paths(filter, None, &policies)?;
        if paths.is_empty() {
            return Ok(Part { users: Vec::new(), unreadable: BTreeSet::new(), limit, next: None });
        }
        let (path, after) = match PageToken::from_bytes(cursor).filter(|_| !cursor.is_empty()) {
            None => (self.choose(context, paths, false).await?.0, None),
            Some(token) if paths.contains(&token.path) => (token.path, Some(token.position)),
            Some(_) => return Err(stale_token()),
        };
        let (view, rest) = view_to_read(filter.clone(), &path, view);
        let mut page = PageBuilder::new(limit, read_limit, path, view, after);
        let has_more = self.fill_page(context, &rest, &mut page).await?;
        // The first user may not fit into what is left of the limit.
        let end = || page.token().map_or_else(|| cursor.to_owned(), |token| token.to_bytes());
        let next = has_more.then(end);
        Ok(Part { users: page.users, unreadable: page.unreadable, limit: page.limit, next })
    }

    /// The next users that match a filter, after `cursor`. An empty cursor begins the search, by
    /// one of the paths that the caller accepts.
    ///
    /// # Errors
    /// [`Error::Invalid`] if the tenant's indexes no longer fit the cursor;
    /// [`Error::TenantNotFound`], [`Error::IndexChanging`], [`Error::Unavailable`].
    pub(crate) async fn matching_users(
        &self,
        context: &RequestContext<'_>,
        filter: &Filter,
        accepts: impl Fn(&AccessPath) -> bool,
        cursor: &[u8],
    ) -> Result<BulkBatch, Error> {
        let policies = self.policies(&context.tenant).await?;
        let mut paths = paths(filter, None, &policies)?;
        paths.retain(accepts);
        let (path, after) = match cursor {
            [] => (self.choose(context, paths, false).await?.0, None),
            bytes => {
                let position = PageToken::from_bytes(bytes)
                    .filter(|token| token.path == AccessPath::All || paths.contains(&token.path));
                let PageToken { path, position } = position.ok_or_else(stale_cursor)?;
                (path, Some(position))
            }
        };

        let (view, rest) = view_to_read(filter.clone(), &path, View::Basic);
        let limit = PageLimit::new(BATCH_USERS, ANSWER_BYTES);
        let mut page = PageBuilder::new(limit, READ_LIMIT, path, view, after);
        let has_more = self.fill_page(context, &rest, &mut page).await?;
        let end = page.token().map_or_else(|| cursor.to_owned(), |token| token.to_bytes());
        let ids = page.users.iter().map(|user| user.id()).collect::<Result<_, _>>();
        let mut users: Vec<_> = ids.map_err(|error| Error::Internal(Box::new(error)))?;
        // Their changes fail, which counts and names them.
        users.extend(page.unreadable);
        Ok(BulkBatch { users, cursor: end, is_last: !has_more })
    }
}

fn stale_cursor() -> Error {
    let message = "the indexes of the tenant no longer fit the search: start another bulk change";
    Error::invalid(Invalid::Filter, "filter", message)
}
