//! Watches: the events of a tenant as they are committed.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use locality_uuid::LocalityId;
use prost::Message;
use tokio::time::Instant;
use xxhash_rust::xxh3::Xxh3;

use super::Directory;
use super::context::RequestContext;
use crate::error::{Error, Invalid};
use crate::model::event::{Event, EventKind};
use crate::model::tenant::Tenant;
use crate::service::parse::parse_user_id;
use crate::stores::{EventFeed, ResumeToken};
use crate::timestamp::Timestamp;
use crate::tokens::key::TokenKey;
use crate::tokens::sealed::{SealedToken, TokenPayload};

/// The lifetime of a token.
const LIFETIME: Duration = Duration::from_secs(7 * 24 * 60 * 60);
/// The time without events after which an empty page is returned.
const HEARTBEAT: Duration = Duration::from_secs(15);
/// The users in a request.
const MAX_USERS: usize = 1_000;

/// The events to watch.
#[derive(Clone, Debug)]
pub struct WatchRequest<'r> {
    /// The ids of the users; empty for all.
    pub users: &'r [String],
    /// The kinds of events; empty for all.
    pub kinds: Vec<EventKind>,
    /// The token to resume from; empty to begin now.
    pub resume_token: &'r str,
}

/// A watch of a tenant.
pub struct Watch {
    feed: Arc<dyn EventFeed>,
    directory: Arc<Directory>,
    tenant: Tenant,
    users: BTreeSet<LocalityId>,
    kinds: Vec<EventKind>,
    /// A hash of the tenant, users and kinds, which a token must match.
    query: u64,
    position: ResumeToken,
}

/// A page of events.
#[derive(Clone, Debug, PartialEq)]
pub struct WatchPage {
    /// Events, each with the token to resume after it.
    pub events: Vec<(Arc<Event>, String)>,
    /// The token to resume after all events.
    pub resume_token: String,
}

impl Directory {
    /// Begins a watch.
    ///
    /// # Errors
    /// [`Error::Invalid`], [`Error::ResumeExpired`], [`Error::WatchUnsupported`],
    /// [`Error::TenantNotFound`], [`Error::Unavailable`].
    pub async fn watch(
        self: &Arc<Self>,
        context: &RequestContext<'_>,
        request: WatchRequest<'_>,
    ) -> Result<Watch, Error> {
        let feed = self.backend.feed.clone();
        if request.users.len() > MAX_USERS {
            let rule = format!("has more than {MAX_USERS} users: omit it, and filter the events");
            return Err(Error::invalid(Invalid::Field, "user_ids", &rule));
        }
        let ids = request.users.iter().enumerate();
        let users = ids
            .map(|(n, id)| parse_user_id(&format!("user_ids[{n}]"), id))
            .collect::<Result<_, _>>()?;
        let now = context.now.earliest();
        let begin = self.policies(&context.tenant).await?.history_begins(now);
        let tenant = context.tenant.clone();
        let query = query_hash(&tenant, &users, &request.kinds);
        let position = match request.resume_token {
            "" => feed.position().await?,
            token => {
                open_token(&self.backend.token_key, token, query, begin.max(now.minus(LIFETIME)))?
            }
        };
        let directory = self.clone();
        Ok(Watch { feed, directory, tenant, users, kinds: request.kinds, query, position })
    }
}

impl Watch {
    /// The present token.
    pub fn resume_token(&self) -> String {
        self.token(self.position.clone(), self.directory.now().time)
    }

    /// The next events; an empty page if there are none for `HEARTBEAT`.
    ///
    /// # Errors
    /// [`Error::ResumeExpired`], [`Error::Unavailable`].
    pub async fn next(&mut self) -> Result<WatchPage, Error> {
        let deadline = Instant::now() + HEARTBEAT;
        loop {
            let timeout = deadline.saturating_duration_since(Instant::now());
            let page = self.feed.events(&self.tenant, &self.position, timeout).await?;
            self.position = page.resume_token;
            let mut events = page.events;
            events.retain(|(event, _)| self.is_wanted(event));
            if !events.is_empty() || Instant::now() >= deadline {
                let now = self.directory.now().time;
                let with_token = |(event, position)| (event, self.token(position, now));
                return Ok(WatchPage {
                    events: events.into_iter().map(with_token).collect(),
                    resume_token: self.token(self.position.clone(), now),
                });
            }
        }
    }

    fn is_wanted(&self, event: &Event) -> bool {
        (self.users.is_empty() || self.users.contains(&event.user))
            && (self.kinds.is_empty() || self.kinds.iter().any(|kind| event.is_of(*kind)))
    }

    fn token(&self, position: ResumeToken, now: Timestamp) -> String {
        SealedToken { query: self.query, issued: now, payload: WatchPosition { position } }
            .seal(&self.directory.backend.token_key)
    }
}

/// A hash of the tenant, users and kinds, which a token must match.
fn query_hash(tenant: &Tenant, users: &BTreeSet<LocalityId>, kinds: &[EventKind]) -> u64 {
    let mut hash = Xxh3::new();
    users.iter().for_each(|user| hash.update(user.as_bytes()));
    kinds.iter().for_each(|kind| hash.update(&[*kind as u8]));
    hash.update(tenant.as_str().as_bytes());
    hash.digest()
}

#[derive(Clone, PartialEq, Message)]
struct WatchPosition {
    #[prost(bytes = "vec", tag = "3")]
    position: Vec<u8>,
}

impl TokenPayload for WatchPosition {
    const KIND: u64 = 0x706f_6c79_6e79_6d03;
    const OTHER_QUERY: &'static str =
        "belongs to another watch: tenant, user_ids and types must be the same";
}

/// The position in a token that was issued at `earliest` or later.
fn open_token(
    key: &TokenKey,
    text: &str,
    query: u64,
    earliest: Timestamp,
) -> Result<ResumeToken, Error> {
    let error = |rule| Error::invalid(Invalid::ResumeToken, "resume_token", rule);
    let token: SealedToken<WatchPosition> = SealedToken::open(key, text)
        .ok_or_else(|| error("is not a token of Watch of this store: begin without one"))?;
    if token.query != query {
        return Err(error(WatchPosition::OTHER_QUERY));
    }
    if token.issued < earliest {
        return Err(Error::ResumeExpired);
    }
    Ok(token.payload.position)
}
