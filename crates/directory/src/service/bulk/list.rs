//! Reads of bulk changes.

use std::cmp::Reverse;

use super::calls::check_id;
use crate::error::{BulkError, Error, Invalid};
use crate::model::bulk::change::{BulkChange, KEPT_FOR};
use crate::service::Directory;
use crate::service::context::RequestContext;
use crate::service::search::page_size;
use crate::timestamp::Timestamp;

/// Bulk changes in a page.
const MAX_PAGE: usize = 100;

/// A page of bulk changes.
#[derive(Clone, Debug)]
pub struct BulkChangePage {
    /// The bulk changes, newest first.
    pub changes: Vec<BulkChange>,
    /// The token of the next page; empty after the last.
    pub next_page_token: String,
}

impl Directory {
    /// The bulk change of a tenant with this id.
    ///
    /// # Errors
    /// [`Error::Invalid`], [`Error::Bulk`], [`Error::TenantNotFound`],
    /// [`Error::Unavailable`].
    pub async fn bulk_change(
        &self,
        context: &RequestContext<'_>,
        id: &str,
    ) -> Result<BulkChange, Error> {
        check_id(id)?;
        self.known_tenant(&context.tenant).await?;
        let found = self.backend.bulk_changes.bulk_change(&context.tenant, id).await?;
        found.filter(|change| is_kept(change, context)).ok_or(Error::Bulk(BulkError::NotFound))
    }

    /// A page of the bulk changes of a tenant, newest first.
    ///
    /// # Errors
    /// [`Error::Invalid`], [`Error::TenantNotFound`], [`Error::Unavailable`].
    pub async fn list_bulk_changes(
        &self,
        context: &RequestContext<'_>,
        size: i32,
        page_token: &str,
    ) -> Result<BulkChangePage, Error> {
        let size = page_size(size)?.min(MAX_PAGE);
        let after = Some(page_token).filter(|token| !token.is_empty()).map(read_token);
        let after = after.transpose()?;
        self.known_tenant(&context.tenant).await?;
        let mut changes = self.backend.bulk_changes.bulk_changes(&context.tenant).await?;
        let is_next = |change: &BulkChange| {
            let position = Reverse((change.create_time, &*change.id));
            after.is_none_or(|last| position > Reverse(last))
        };
        changes.retain(|change| is_kept(change, context) && is_next(change));
        changes
            .sort_by(|one, other| (other.create_time, &other.id).cmp(&(one.create_time, &one.id)));

        let has_more = changes.len() > size;
        changes.truncate(size);
        let last = changes.last().filter(|_| has_more);
        let token = |last: &BulkChange| format!("{}:{}", last.create_time.as_millis(), last.id);
        Ok(BulkChangePage { next_page_token: last.map(token).unwrap_or_default(), changes })
    }
}

/// Whether a bulk change is still kept, even if the store still has it.
fn is_kept(change: &BulkChange, context: &RequestContext<'_>) -> bool {
    change.end_time.is_none_or(|end| !context.now.is_past(end.plus(KEPT_FOR)))
}

/// The time and the id of the last bulk change of a page.
fn read_token(token: &str) -> Result<(Timestamp, &str), Error> {
    let parts = token.split_once(':');
    let parsed = parts.and_then(|(millis, id)| {
        check_id(id).ok()?;
        Some((Timestamp::from_millis(millis.parse().ok()?), id))
    });
    let message = "is not a token of this method";
    parsed.ok_or_else(|| Error::invalid(Invalid::PageToken, "page_token", message))
}
