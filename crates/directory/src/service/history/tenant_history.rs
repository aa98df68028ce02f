//! Pages of the history of a tenant itself: its events, the newest first.

use xxhash_rust::xxh3::Xxh3;

use crate::encoded::tenant_event::tenant_event_message;
use crate::error::Error;
use crate::model::tenant_event::TenantEvent;
use crate::service::Directory;
use crate::service::context::RequestContext;
use crate::service::history::user_history::{HistoryCursor, MAX_READS};
use crate::service::parse::check_range;
use crate::service::search::page_size;
use crate::stores::{LIST_BYTES, PageLimit};
use crate::timestamp::Timestamp;

/// Events in one read.
const READ_BATCH: usize = 50;

/// A request for the events of a tenant.
#[derive(Clone, Debug)]
pub struct TenantHistoryRequest<'r> {
    /// The beginning of the time span, inclusive.
    pub from: Option<Timestamp>,
    /// The end of the time span, exclusive.
    pub to: Option<Timestamp>,
    /// The most events; 0 for the default.
    pub page_size: i32,
    /// The token of the page; empty for the first.
    pub page_token: &'r str,
}

/// A page of the events of a tenant.
#[derive(Clone, Debug, PartialEq)]
pub struct TenantHistoryPage {
    /// The events, the newest first.
    pub events: Vec<TenantEvent>,
    /// The token of the next page; empty after the last.
    pub next_page_token: String,
}

impl Directory {
    /// A page of the history of the tenant of the request.
    ///
    /// # Errors
    /// [`Error::Invalid`], [`Error::TenantNotFound`], [`Error::Unavailable`].
    pub async fn tenant_history(
        &self,
        context: &RequestContext<'_>,
        request: TenantHistoryRequest<'_>,
    ) -> Result<TenantHistoryPage, Error> {
        let size = page_size(request.page_size)?;
        check_range(request.from, request.to)?;
        let tenant = self.tenant(&context.tenant).await?;
        let (query, now) = (query_hash(context, &request), context.now.time);
        let mut before =
            HistoryCursor::open(&self.backend.token_key, request.page_token, query, now)?;
        let oldest = context.now.earliest().minus(tenant.policies.history_retention);
        let from = request.from.map_or(oldest, |from| from.max(oldest));
        let is_wanted =
            |event: &TenantEvent| event.time >= from && request.to.is_none_or(|to| event.time < to);

        let (mut events, mut limit) = (Vec::new(), PageLimit::new(size, LIST_BYTES));
        let mut is_complete = false;
        'page: for _ in 0..MAX_READS {
            let histories = &self.backend.histories;
            let part = histories.tenant_history(&context.tenant, before, READ_BATCH).await?;
            is_complete = part.len() < READ_BATCH || part.iter().any(|event| event.time < from);
            for event in part {
                let is_wanted = is_wanted(&event);
                if is_wanted && !limit.take_message(&tenant_event_message(&event)) {
                    is_complete = false;
                    break 'page;
                }
                before = Some(event.sequence);
                events.extend(Some(event).filter(|_| is_wanted));
            }
            if is_complete {
                break;
            }
        }
        let next = before.filter(|_| !is_complete);
        let next_page_token =
            next.map(|cursor| HistoryCursor::seal(&self.backend.token_key, cursor, query, now));
        Ok(TenantHistoryPage { events, next_page_token: next_page_token.unwrap_or_default() })
    }
}

/// A hash of the tenant and times, which a page token must match.
fn query_hash(context: &RequestContext<'_>, request: &TenantHistoryRequest<'_>) -> u64 {
    let mut hash = Xxh3::new();
    for time in [request.from, request.to] {
        hash.update(&time.map_or(i64::MIN, Timestamp::as_millis).to_le_bytes());
    }
    hash.update(context.tenant.as_str().as_bytes());
    hash.digest()
}
