//! Pages of the events of all users of a tenant, the newest first.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use locality_uuid::LocalityId;
use prost::Message;
use xxhash_rust::xxh3::Xxh3;

use crate::encoded::event::event_message;
use crate::error::Error;
use crate::model::event::{Event, EventKind};
use crate::service::Directory;
use crate::service::context::RequestContext;
use crate::service::parse::check_range;
use crate::service::purpose::began_after;
use crate::service::scan_pace::Pace;
use crate::service::search::page_size;
use crate::stores::{EventPosition, LIST_BYTES, PageLimit};
use crate::text::check_text;
use crate::timestamp::Timestamp;
use crate::tokens::sealed::{SealedToken, TokenPayload};
use crate::view::View;

/// The most events in one read.
const READ_BATCH: usize = 256;
/// The events that are read for one page, which ends early after them.
const MAX_EVENTS_READ: u64 = 4_096;
/// The reads for one page: a store may return fewer events than fit, even none.
const MAX_READS: usize = 128;

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
    /// A part of the reason, in letters of either case; empty for all.
    pub reason: &'r str,
    /// The most events; 0 for the default.
    pub page_size: i32,
    /// The token of the page; empty for the first.
    pub page_token: &'r str,
}

/// A page of events.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct EventsPage {
    /// The events, the newest first.
    pub events: Vec<Event>,
    /// The token of the next page; empty after the last.
    pub next_page_token: String,
    /// The display names of the users of the events, also of the others that they name.
    pub names: BTreeMap<LocalityId, String>,
    /// The events that were read.
    pub events_read: u64,
    /// Users whose records or events cannot be read: the list lacks their events.
    pub unreadable: BTreeSet<LocalityId>,
}

/// A page in the making.
struct Reading<'r> {
    request: EventsRequest<'r>,
    times: Range<Timestamp>,
    /// The wanted part of the reason, in lowercase.
    reason: String,
    limit: PageLimit,
    /// The position of the last event that was read.
    position: Option<EventPosition>,
    page: EventsPage,
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
        check_text("reason", request.reason)?;
        let policies = self.policies(&context.tenant).await?;
        let (query, now) = (query_hash(context, &request), context.now.time);
        let token_key = &self.backend.token_key;
        let token: Option<EventsPosition> =
            SealedToken::open_page(token_key, request.page_token, query, now)?;
        let oldest = policies.history_begins(context.now.earliest());
        let bounds = [request.from, began_after(request.operation_id)].into_iter().flatten();
        let begin = bounds.fold(oldest, Timestamp::max);
        let mut reading = Reading {
            times: begin..request.to.unwrap_or(Timestamp::MAX),
            reason: request.reason.to_lowercase(),
            limit: PageLimit::new(size, LIST_BYTES),
            position: token.and_then(EventsPosition::read),
            page: EventsPage::default(),
            request,
        };
        if !self.fill(context, &mut reading).await? {
            let payload = EventsPosition::of(reading.position);
            reading.page.next_page_token =
                SealedToken { query, issued: now, payload }.seal(token_key);
        }
        self.name_users(context, &mut reading.page).await?;
        Ok(reading.page)
    }

    /// Reads events into the page. Returns whether there are no more.
    async fn fill(
        &self,
        context: &RequestContext<'_>,
        reading: &mut Reading<'_>,
    ) -> Result<bool, Error> {
        let mut pace = Pace::default();
        for _ in 0..MAX_READS {
            pace.rest().await;
            let limit = PageLimit::new(reading.batch(), LIST_BYTES);
            let (histories, times) = (&self.backend.histories, reading.times.clone());
            let part =
                histories.newest_events(&context.tenant, times, reading.position, limit).await?;
            reading.page.unreadable.extend(part.unreadable);
            for (position, event) in part.events {
                reading.page.events_read += 1;
                if reading.is_wanted(&event) {
                    if !reading.limit.take_message(&event_message(&event)) {
                        return Ok(false);
                    }
                    reading.page.events.push(event);
                }
                reading.position = Some(position);
            }
            if part.next.is_none() {
                return Ok(true);
            }
            reading.position = part.next;
            if reading.limit.items() == 0 || reading.page.events_read >= MAX_EVENTS_READ {
                break;
            }
        }
        Ok(false)
    }

    /// Removes the events of users who are gone, or count as gone, and of those who cannot be read.
    /// Adds the names of the others.
    async fn name_users(
        &self,
        context: &RequestContext<'_>,
        page: &mut EventsPage,
    ) -> Result<(), Error> {
        let users =
            page.events.iter().flat_map(|event| [Some(event.user), event.changes.other_user]);
        let users = Vec::from_iter(users.flatten().collect::<BTreeSet<_>>());
        let mut left = users.as_slice();
        while !left.is_empty() {
            let found = self.backend.lookups.get(&context.tenant, left, View::Basic).await?;
            let (read, rest) = left.split_at(found.len().clamp(1, left.len()));
            for (id, user) in read.iter().zip(found) {
                match user.map(|user| user.map(|user| user.decode())) {
                    Ok(Some(Ok(user))) if user.state.is_purge_due(context.now) => {}
                    Ok(Some(Ok(user))) => drop(page.names.insert(*id, user.display_name)),
                    Ok(None) => {}
                    Ok(Some(Err(_))) | Err(_) => drop(page.unreadable.insert(*id)),
                }
            }
            left = rest;
        }
        page.events.retain(|event| page.names.contains_key(&event.user));
        Ok(())
    }
}

impl Reading<'_> {
    /// The most events of the next read: those of the page, unless some may not be wanted.
    fn batch(&self) -> usize {
        let EventsRequest { kinds, caller, operation_id, reason, .. } = &self.request;
        let are_all_wanted =
            kinds.is_empty() && [caller, operation_id, reason].iter().all(|text| text.is_empty());
        if are_all_wanted { self.limit.items().min(READ_BATCH) } else { READ_BATCH }
    }

    fn is_wanted(&self, event: &Event) -> bool {
        let EventsRequest { kinds, caller, operation_id, reason, .. } = &self.request;
        self.times.contains(&event.time)
            && (kinds.is_empty() || kinds.iter().any(|kind| event.is_of(*kind)))
            && (caller.is_empty() || event.origin.caller == *caller)
            && (operation_id.is_empty() || event.origin.operation_id == *operation_id)
            && (reason.is_empty() || event.origin.reason.to_lowercase().contains(&self.reason))
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
    for text in [context.tenant.as_str(), request.caller, request.operation_id, request.reason] {
        hash.update(&(text.len() as u64).to_le_bytes());
        hash.update(text.as_bytes());
    }
    hash.digest()
}

/// The position in a page token.
#[derive(Clone, PartialEq, Message)]
struct EventsPosition {
    /// The time in milliseconds.
    #[prost(int64, tag = "3")]
    time: i64,
    /// The bytes of the user's id.
    #[prost(bytes = "vec", tag = "4")]
    user: Vec<u8>,
    /// The number.
    #[prost(uint64, tag = "5")]
    number: u64,
}

impl EventsPosition {
    fn of(position: Option<EventPosition>) -> Self {
        let Some(EventPosition { time, user, number }) = position else { return Self::default() };
        Self { time: time.as_millis(), user: user.as_bytes().to_vec(), number }
    }

    /// The position; none for the first page.
    fn read(self) -> Option<EventPosition> {
        let user = LocalityId::from(<[u8; 16]>::try_from(&*self.user).ok()?);
        Some(EventPosition { time: Timestamp::from_millis(self.time), user, number: self.number })
    }
}

impl TokenPayload for EventsPosition {
    const KIND: u64 = 0x706f_6c79_6e79_6d0b;
    const OTHER_QUERY: &'static str = "belongs to another list of events: caller, operation, \
        reason, times and types must be those of the first page";
}
