//! Pages of the history of a user: its events, the newest first.

use locality_uuid::LocalityId;
use prost::Message;
use xxhash_rust::xxh3::Xxh3;

use crate::encoded::event::event_message;
use crate::error::Error;
use crate::model::event::{Event, EventKind};
use crate::service::Directory;
use crate::service::context::RequestContext;
use crate::service::lookup::read::UserRef;
use crate::service::mutate::write::SKEW;
use crate::service::parse::{check_range, parse_user_id};
use crate::service::search::page_size;
use crate::stores::{LIST_BYTES, OrderedReads, PageLimit};
use crate::timestamp::Timestamp;
use crate::tokens::key::TokenKey;
use crate::tokens::sealed::{SealedToken, TokenPayload};
use polynym_identifier::IdentityKey;

/// Reads for one page, which ends early after them.
pub(super) const MAX_READS: usize = 20;

/// A request for events.
#[derive(Clone, Debug)]
pub struct HistoryRequest<'r> {
    /// The user.
    pub user: UserRef<'r>,
    /// The beginning of the time span, inclusive.
    pub from: Option<Timestamp>,
    /// The end of the time span, exclusive.
    pub to: Option<Timestamp>,
    /// The kinds of events; empty for all.
    pub kinds: Vec<EventKind>,
    /// The most events; 0 for the default.
    pub page_size: i32,
    /// The token of the page; empty for the first.
    pub page_token: &'r str,
}

/// A page of events.
#[derive(Clone, Debug, PartialEq)]
pub struct HistoryPage {
    /// The events, the newest first.
    pub events: Vec<Event>,
    /// The token of the next page; empty after the last.
    pub next_page_token: String,
}

impl Directory {
    /// A page of the history of a user.
    ///
    /// # Errors
    /// [`Error::Invalid`], [`Error::UserNotFound`], [`Error::IdentityNotFound`],
    /// [`Error::TenantNotFound`], [`Error::Unavailable`].
    pub async fn history(
        &self,
        context: &RequestContext<'_>,
        request: HistoryRequest<'_>,
    ) -> Result<HistoryPage, Error> {
        let size = page_size(request.page_size)?;
        check_range(request.from, request.to)?;
        let policies = self.policies(&context.tenant).await?;
        let mut reads = self.backend.reads.in_order().await?;
        let user = self.user_of(context, &mut *reads, request.user).await?;
        let query = query_hash(context, user, &request);
        let now = context.now.time;
        let mut cursor =
            HistoryCursor::open(&self.backend.token_key, request.page_token, query, now)?;
        let oldest = policies.history_begins(context.now.earliest());
        let from = request.from.map_or(oldest, |from| from.max(oldest));
        let is_wanted = |event: &Event| {
            event.time >= from
                && request.to.is_none_or(|to| event.time < to)
                && (request.kinds.is_empty() || request.kinds.iter().any(|kind| event.is_of(*kind)))
        };

        let (mut events, mut limit) = (Vec::new(), PageLimit::new(size, LIST_BYTES));
        for _ in 0..MAX_READS {
            let read = reads.history(&context.tenant, user, cursor, limit).await?;
            let part = read.ok_or(Error::UserNotFound)?;
            if part.user.state().is_purge_due(context.now) {
                return Err(Error::UserNotFound);
            }
            // An event without a visible change may have an earlier time than the one before it.
            let is_past = part.events.last().is_some_and(|last| last.time < from.minus(SKEW));
            let has_no_room = part.events.is_empty();
            for event in part.events.into_iter().filter(is_wanted) {
                // The store applied this limit to the events, wanted or not.
                let _ = limit.take_message(&event_message(&event));
                events.push(event);
            }
            cursor = part.next.filter(|_| !is_past);
            if cursor.is_none() || has_no_room || limit.items() == 0 {
                break;
            }
        }
        let next_page_token = cursor
            .map(|cursor| HistoryCursor::seal(&self.backend.token_key, cursor, query, now))
            .unwrap_or_default();
        Ok(HistoryPage { events, next_page_token })
    }

    async fn user_of(
        &self,
        context: &RequestContext<'_>,
        reads: &mut dyn OrderedReads,
        user: UserRef<'_>,
    ) -> Result<LocalityId, Error> {
        let raw = match user {
            UserRef::Id(id) => return parse_user_id("user_id", id),
            UserRef::Owner(raw) => raw,
        };
        let rules = self.rules_to_change().await?;
        let identifier = self.named_identifier(rules, context, "identifier", raw).await?;
        let key = IdentityKey::new(context.tenant.as_str(), &identifier);
        let claims = reads.claims(&[key]).await?;
        let claim = claims.into_iter().next().flatten();
        claim.and_then(|claim| claim.resolves_to()).ok_or(Error::IdentityNotFound)
    }
}

/// A hash of the user, times, kinds and tenant, which a page token must match.
fn query_hash(context: &RequestContext<'_>, user: LocalityId, request: &HistoryRequest<'_>) -> u64 {
    let mut hash = Xxh3::new();
    hash.update(user.as_bytes());
    for time in [request.from, request.to] {
        hash.update(&time.map_or(i64::MIN, Timestamp::as_millis).to_le_bytes());
    }
    for kind in &request.kinds {
        hash.update(&[*kind as u8]);
    }
    hash.update(context.tenant.as_str().as_bytes());
    hash.digest()
}

/// The cursor in a page token of the history of a user or of a tenant.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct HistoryCursor {
    #[prost(uint64, tag = "3")]
    cursor: u64,
}

impl TokenPayload for HistoryCursor {
    const KIND: u64 = 0x706f_6c79_6e79_6d02;
    const OTHER_QUERY: &'static str =
        "belongs to another history: user, times and types must be those of the first page";
}

impl HistoryCursor {
    /// The page token for a cursor.
    pub(crate) fn seal(key: &TokenKey, cursor: u64, query: u64, now: Timestamp) -> String {
        SealedToken { query, issued: now, payload: Self { cursor } }.seal(key)
    }

    /// The cursor in a page token; none for the first page.
    pub(crate) fn open(
        key: &TokenKey,
        token: &str,
        query: u64,
        now: Timestamp,
    ) -> Result<Option<u64>, Error> {
        Ok(SealedToken::open_page(key, token, query, now)?.map(|Self { cursor }| cursor))
    }
}
