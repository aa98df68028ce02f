//! The history of a user: its events, the newest first, page by page.

use locality_uuid::LocalityId;
use prost::Message;
use xxhash_rust::xxh3::Xxh3;

use crate::error::{Error, Invalid};
use crate::model::event::{Event, EventKind};
use crate::model::timestamp::Timestamp;
use crate::model::user::State;
use crate::search::sealed;
use crate::service::Directory;
use crate::service::context::RequestContext;
use crate::service::lookup::read::{UserRef, parse};
use crate::service::mutate::write::SKEW;
use crate::service::parse::{check_range, parse_user_id};
use crate::service::search::page_size;
use polynym_identifier::IdentityKey;

/// Reads for one page: after that it ends early.
const READS: usize = 20;

/// A request for events.
#[derive(Clone, Debug)]
pub struct HistoryRequest<'r> {
    /// The user.
    pub user: UserRef<'r>,
    /// The time from which events are listed, itself included.
    pub from: Option<Timestamp>,
    /// The time up to which events are listed, itself excluded.
    pub to: Option<Timestamp>,
    /// The kinds of events; empty for all.
    pub kinds: Vec<EventKind>,
    /// The most events; 0 for the default.
    pub page_size: i32,
    /// The token of the page, or nothing for the first.
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
        let user = self.user_of(context, request.user).await?;
        let query = query_hash(context, user, &request);
        let now = context.now.time;
        let mut place = match request.page_token {
            "" => None,
            token => Some(decode_token(token, query, now)?),
        };
        let oldest = policies.history_begins(context.now.earliest());
        let from = request.from.map_or(oldest, |from| from.max(oldest));
        let is_wanted = |event: &Event| {
            event.time >= from
                && request.to.is_none_or(|to| event.time < to)
                && (request.kinds.is_empty() || request.kinds.contains(&event.kind))
        };

        let mut events = Vec::new();
        for _ in 0..READS {
            let limit = size - events.len();
            let part = self.backend.histories.history(&context.tenant, user, place, limit).await?;
            let part = part.ok_or(Error::UserNotFound)?;
            if matches!(part.user.state(), State::Deleted { purge_time, .. }
                if context.now.is_past(purge_time))
            {
                return Err(Error::UserNotFound);
            }
            // An event without a change that is visible may be dated a little before the last.
            let is_past = part.events.last().is_some_and(|last| last.time < from.minus(SKEW));
            events.extend(part.events.into_iter().filter(is_wanted));
            place = part.next.filter(|_| !is_past);
            if place.is_none() || events.len() == size {
                break;
            }
        }
        let next_page_token =
            place.map(|place| encode_token(place, query, now)).unwrap_or_default();
        Ok(HistoryPage { events, next_page_token })
    }

    async fn user_of(
        &self,
        context: &RequestContext<'_>,
        user: UserRef<'_>,
    ) -> Result<LocalityId, Error> {
        let raw = match user {
            UserRef::Id(id) => return parse_user_id("user_id", id),
            UserRef::Owner(raw) => raw,
        };
        let rules = self.rules_to_change().await?;
        let identifier = parse(rules, "identifier", raw)?;
        let key = IdentityKey::new(context.tenant.as_str(), &identifier);
        let claims = self.backend.reads.claims(&[key]).await?;
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

#[derive(Clone, PartialEq, Message)]
struct TokenRecord {
    #[prost(fixed64, tag = "1")]
    query: u64,
    #[prost(int64, tag = "2")]
    issued: i64,
    #[prost(uint64, tag = "3")]
    place: u64,
}

/// The seed of the checksum of tokens.
const SEED: u64 = 0x706f_6c79_6e79_6d02;

/// The token of a page of events that begins at a place.
pub(crate) fn encode_token(place: u64, query: u64, now: Timestamp) -> String {
    let record = TokenRecord { query, issued: now.as_millis(), place };
    sealed::seal(record.encode_to_vec(), SEED)
}

/// The place of a token of [`encode_token`] that belongs to this query.
pub(crate) fn decode_token(token: &str, query: u64, now: Timestamp) -> Result<u64, Error> {
    let fault = |rule: &str| Error::invalid(Invalid::PageToken, "page_token", rule);
    let record = sealed::open(token, SEED).and_then(|bytes| TokenRecord::decode(&*bytes).ok());
    let record = record.ok_or_else(|| {
        fault("is none that an answer of this method gave: begin again without one")
    })?;
    if record.query != query {
        return Err(fault(
            "is of another history: user, times and types must be those of the first page",
        ));
    }
    if sealed::has_expired(record.issued, now) {
        return Err(fault("has expired after a day: begin again without one"));
    }
    Ok(record.place)
}
