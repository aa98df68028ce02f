//! Pages of the events of all users of a tenant, by caller and operation.

use std::time::Duration;

use locality_uuid::LocalityId;
use prost::Message;
use xxhash_rust::xxh3::Xxh3;

use crate::encoded::event::event_message;
use crate::error::Error;
use crate::model::event::{Event, EventKind};
use crate::model::record::Record;
use crate::model::user::State;
use crate::service::Directory;
use crate::service::context::RequestContext;
use crate::service::log_pause::LogPause;
use crate::service::mutate::write::SKEW;
use crate::service::parse::check_range;
use crate::service::purpose::began_after;
use crate::service::scan_pace::Pace;
use crate::service::search::page_size;
use crate::stores::{LIST_BYTES, PageLimit};
use crate::timestamp::Timestamp;
use crate::tokens::sealed::{SealedToken, TokenPayload};

/// Users in one read.
const READ_BATCH: usize = 256;
/// Reads of users for one page, which ends early after them.
const MAX_SCANS: usize = 16;
/// Reads of histories for one page, which ends early after them.
const MAX_HISTORY_READS: usize = 1_024;

/// The pause between two lines of the log about histories that cannot be read.
static UNREADABLE_LOG: LogPause = LogPause::new(Duration::from_secs(1));

/// A request for the events of a tenant's users.
#[derive(Clone, Debug, Default)]
pub struct EventsRequest<'r> {
    /// The beginning of the time span, inclusive.
    pub from: Option<Timestamp>,
    /// The end of the time span, exclusive.
    pub to: Option<Timestamp>,
    /// The kinds of events; empty for all.
    pub kinds: Vec<EventKind>,
    /// The caller; empty for all.
    pub caller: &'r str,
    /// The operation; empty for all.
    pub operation_id: &'r str,
    /// The most events; 0 for the default.
    pub page_size: i32,
    /// The token of the page; empty for the first.
    pub page_token: &'r str,
}

/// A page of events.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct EventsPage {
    /// The events, by the ids of users, those of one user from the newest to the oldest.
    pub events: Vec<Event>,
    /// The token of the next page; empty after the last.
    pub next_page_token: String,
    /// The users that were read.
    pub users_read: u64,
    /// Users among them whose records or histories cannot be read: the list lacks their events.
    pub unreadable: Vec<LocalityId>,
}

/// A page in the making.
struct Reading<'r> {
    request: EventsRequest<'r>,
    from: Timestamp,
    limit: PageLimit,
    history_reads: usize,
    position: EventsPosition,
    page: EventsPage,
    pace: Pace,
}

impl Directory {
    /// A page of the events of the users of the tenant of the request.
    ///
    /// # Errors
    /// [`Error::Invalid`], [`Error::TenantNotFound`], [`Error::Unavailable`].
    pub async fn events(
        &self,
        context: &RequestContext<'_>,
        request: EventsRequest<'_>,
    ) -> Result<EventsPage, Error> {
        let size = page_size(request.page_size)?;
        check_range(request.from, request.to)?;
        let policies = self.policies(&context.tenant).await?;
        let (query, now) = (query_hash(context, &request), context.now.time);
        let token_key = &self.backend.token_key;
        let position = SealedToken::open_page(token_key, request.page_token, query, now)?;
        let oldest = policies.history_begins(context.now.earliest());
        let bounds = [request.from, began_after(request.operation_id)].into_iter().flatten();
        let mut reading = Reading {
            from: bounds.fold(oldest, Timestamp::max),
            limit: PageLimit::new(size, LIST_BYTES),
            history_reads: 0,
            position: position.unwrap_or_default(),
            page: EventsPage::default(),
            pace: Pace::default(),
            request,
        };
        let mut is_complete = false;
        for _ in 0..MAX_SCANS {
            reading.pace.rest().await;
            let search = &self.backend.search;
            let after = reading.position.after();
            let scanned = search.scan(&context.tenant, after, READ_BATCH).await?;
            let has_room = self.add_events(context, &mut reading, &scanned.users).await?;
            is_complete = has_room && scanned.next.is_none();
            if !has_room || is_complete {
                break;
            }
        }
        if !is_complete {
            let token = SealedToken { query, issued: now, payload: reading.position };
            reading.page.next_page_token = token.seal(token_key);
        }
        Ok(reading.page)
    }

    /// Adds the events of these users. Returns false once the page has no room.
    async fn add_events(
        &self,
        context: &RequestContext<'_>,
        reading: &mut Reading<'_>,
        users: &[Result<Record, LocalityId>],
    ) -> Result<bool, Error> {
        for user in users {
            let record = match user {
                Ok(record) => record,
                Err(id) => {
                    reading.pass_unreadable(*id);
                    continue;
                }
            };
            let is_purged = matches!(record.user.state, State::Deleted { purge_time, .. }
                if context.now.is_past(purge_time));
            let may_have_events = record.may_have_changed_since(reading.from.minus(SKEW));
            // The events of a user who was imported meanwhile are no part of the list: its position
            // is already behind that user.
            let is_passed = reading.position.user().is_some_and(|next| record.id() < next);
            let is_candidate = may_have_events && !is_purged && !is_passed;
            let added = match is_candidate {
                true => self.add_events_of(context, reading, record.id()).await,
                false => Ok(true),
            };
            match added {
                Ok(true) => reading.pass(record.id()),
                Ok(false) => return Ok(false),
                Err(error @ Error::Internal(_)) => {
                    let user = record.id();
                    if UNREADABLE_LOG.is_over() {
                        let error = error.with_causes();
                        tracing::error!(%user, error, "the history of a user cannot be read");
                    }
                    reading.pass_unreadable(user);
                }
                Err(error) => return Err(error),
            }
        }
        Ok(true)
    }

    /// Adds the events of a user. Returns false once the page has no room.
    async fn add_events_of(
        &self,
        context: &RequestContext<'_>,
        reading: &mut Reading<'_>,
        user: LocalityId,
    ) -> Result<bool, Error> {
        loop {
            if reading.history_reads == MAX_HISTORY_READS || reading.limit.items() == 0 {
                return Ok(false);
            }
            reading.history_reads += 1;
            reading.pace.rest().await;
            let (cursor, limit) = (reading.position.cursor_of(user), reading.limit);
            let histories = &self.backend.histories;
            let read = histories.history(&context.tenant, user, cursor, limit).await?;
            let Some(part) = read else { return Ok(true) };
            let is_past =
                part.events.last().is_some_and(|last| last.time < reading.from.minus(SKEW));
            if part.events.is_empty() && part.next.is_some() {
                return Ok(false);
            }
            for event in part.events {
                if reading.is_wanted(&event) {
                    // The store applied this limit to the events, wanted or not.
                    let _ = reading.limit.take_message(&event_message(&event));
                    reading.page.events.push(event);
                }
            }
            match part.next.filter(|_| !is_past) {
                Some(next) => reading.position.stop_at(user, next),
                None => return Ok(true),
            }
        }
    }
}

impl Reading<'_> {
    fn pass(&mut self, user: LocalityId) {
        self.page.users_read += 1;
        self.position.pass(user);
    }

    fn pass_unreadable(&mut self, user: LocalityId) {
        self.page.unreadable.push(user);
        self.pass(user);
    }

    fn is_wanted(&self, event: &Event) -> bool {
        let EventsRequest { to, kinds, caller, operation_id, .. } = &self.request;
        event.time >= self.from
            && to.is_none_or(|to| event.time < to)
            && (kinds.is_empty() || kinds.iter().any(|kind| event.is_of(*kind)))
            && (caller.is_empty() || event.origin.caller == *caller)
            && (operation_id.is_empty() || event.origin.operation_id == *operation_id)
    }
}

/// A hash of the request, which a page token must match.
fn query_hash(context: &RequestContext<'_>, request: &EventsRequest<'_>) -> u64 {
    let mut hash = Xxh3::new();
    for time in [request.from, request.to] {
        hash.update(&time.map_or(i64::MIN, Timestamp::as_millis).to_le_bytes());
    }
    hash.update(&(request.kinds.len() as u64).to_le_bytes());
    for kind in &request.kinds {
        hash.update(&[*kind as u8]);
    }
    for text in [context.tenant.as_str(), request.caller, request.operation_id] {
        hash.update(&(text.len() as u64).to_le_bytes());
        hash.update(text.as_bytes());
    }
    hash.digest()
}

/// The position in a page token.
#[derive(Clone, PartialEq, Message)]
struct EventsPosition {
    /// The last user whose events are all read; empty for none.
    #[prost(bytes = "vec", tag = "3")]
    after: Vec<u8>,
    /// The cursor in the history of `user`.
    #[prost(uint64, optional, tag = "4")]
    cursor: Option<u64>,
    /// The user whose events are read in part; empty for none.
    #[prost(bytes = "vec", tag = "5")]
    user: Vec<u8>,
}

impl EventsPosition {
    fn after(&self) -> Option<LocalityId> {
        <[u8; 16]>::try_from(&*self.after).ok().map(LocalityId::from)
    }

    fn user(&self) -> Option<LocalityId> {
        <[u8; 16]>::try_from(&*self.user).ok().map(LocalityId::from)
    }

    /// The cursor in the history of a user; none to begin with its newest events.
    fn cursor_of(&self, user: LocalityId) -> Option<u64> {
        self.cursor.filter(|_| self.user() == Some(user))
    }

    /// Stops within the history of a user.
    fn stop_at(&mut self, user: LocalityId, cursor: u64) {
        (self.user, self.cursor) = (user.as_bytes().to_vec(), Some(cursor));
    }

    /// Passes a user.
    fn pass(&mut self, user: LocalityId) {
        self.after = user.as_bytes().to_vec();
        if self.user().is_some_and(|next| next <= user) {
            (self.user, self.cursor) = (Vec::new(), None);
        }
    }
}

impl TokenPayload for EventsPosition {
    const KIND: u64 = 0x706f_6c79_6e79_6d08;
    const OTHER_QUERY: &'static str = "belongs to another list of events: caller, operation, \
        times and types must be those of the first page";
}
