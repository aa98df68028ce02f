//! The history of users, tenants and identifiers.

use std::ops::Range;

use async_trait::async_trait;
use locality_uuid::LocalityId;

use crate::encoded::encoded_user::EncodedUser;
use crate::error::{Error, ItemError};
use crate::model::event::Event;
use crate::model::ownership::EndedOwnerships;
use crate::model::shortening::{Shortened, Shortening};
use crate::model::tenant::Tenant;
use crate::model::tenant_event::TenantEvent;
use crate::stores::PageLimit;
use crate::timestamp::Timestamp;
use polynym_identifier::IdentityKey;

/// A part of a user's history.
#[derive(Clone, Debug)]
pub struct History {
    /// The user, without attributes.
    pub user: EncodedUser,
    /// The events, the newest first.
    pub events: Vec<Event>,
    /// The cursor of the next read; none at the end.
    pub next: Option<u64>,
}

/// The position of an event among those of a tenant's users: by time, then as the store orders
/// those of one time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct EventPosition {
    /// When it happened.
    pub time: Timestamp,
    /// The user, if the store orders by users.
    pub user: LocalityId,
    /// The number in the history of the user or, if the store numbers all events, that number.
    pub number: u64,
}

/// A part of the events of a tenant's users.
#[derive(Clone, Debug, Default)]
pub struct EventsPart {
    /// The events with their positions, the newest first.
    pub events: Vec<(EventPosition, Event)>,
    /// The users of events that cannot be read.
    pub unreadable: Vec<LocalityId>,
    /// The position before which the next part begins; none at the end.
    pub next: Option<EventPosition>,
}

/// A user that is [due](crate::model::record::Record::expires_at).
#[derive(Clone, Debug)]
pub struct ExpiredUser {
    /// Since when it is due.
    pub time: Timestamp,
    /// The user.
    pub id: LocalityId,
    /// Its tenant; an error if the stored user cannot be read.
    pub tenant: Result<Tenant, ItemError>,
}

impl ExpiredUser {
    /// The position among expired users.
    pub const fn position(&self) -> (Timestamp, LocalityId) {
        (self.time, self.id)
    }
}

/// The history of users, tenants and identifiers, and the expiry of users.
#[async_trait]
pub trait Histories: Send + Sync + 'static {
    /// The events of a user that fit `limit`, the newest first, from the [cursor](History::next) of
    /// an earlier read on. None if the user does not exist.
    ///
    /// # Errors
    /// [`Error::Unavailable`] if the store does not answer.
    async fn history(
        &self,
        tenant: &Tenant,
        user: LocalityId,
        cursor: Option<u64>,
        limit: PageLimit,
    ) -> Result<Option<History>, Error>;

    /// The next events of the users of `tenant` that happened within `times`, the newest first,
    /// before the position [`next`](EventsPart::next) of an earlier part. A part may have fewer
    /// events than fit `limit`, even none. One that is being committed may be absent.
    ///
    /// # Errors
    /// [`Error::Unavailable`] if the store does not answer.
    async fn newest_events(
        &self,
        tenant: &Tenant,
        times: Range<Timestamp>,
        before: Option<EventPosition>,
        limit: PageLimit,
    ) -> Result<EventsPart, Error>;

    /// Up to `limit` events of a tenant itself, the newest first, whose sequence numbers are below
    /// `before`, if given.
    ///
    /// # Errors
    /// [`Error::Unavailable`] if the store does not answer.
    async fn tenant_history(
        &self,
        tenant: &Tenant,
        before: Option<u64>,
        limit: usize,
    ) -> Result<Vec<TenantEvent>, Error>;

    /// The ended ownerships of keys, in order.
    ///
    /// # Errors
    /// [`Error::Unavailable`] if the store does not answer.
    async fn ended_ownerships(&self, keys: &[IdentityKey]) -> Result<Vec<EndedOwnerships>, Error>;

    /// Applies a shorter retention to a part of the history of `tenant`, from the
    /// [cursor](Shortened::next) of an earlier call on.
    ///
    /// # Errors
    /// [`Error::Unavailable`] if the store does not answer.
    async fn shorten_history(
        &self,
        tenant: &Tenant,
        by: Shortening,
        cursor: Option<Vec<u8>>,
    ) -> Result<Shortened, Error>;

    /// Removes events whose users are gone, in a part of all events, after the position that an
    /// earlier call returned. Returns the position of the next part; `None` at the end. A purge
    /// leaves those behind a damaged event.
    ///
    /// # Errors
    /// [`Error::Unavailable`] if the store does not answer.
    async fn remove_strays(&self, after: Option<u64>) -> Result<Option<u64>, Error>;

    /// Whether it is this server's turn to look for expired users: the servers of a store take
    /// turns. A server that asks takes part for half a minute.
    fn has_expiry_turn(&self) -> bool;

    /// Up to `limit` users that are [due](crate::model::record::Record::expires_at) at `now`, by
    /// time and id, whose [position](ExpiredUser::position) is after `after`. Empty only if there
    /// are no more.
    ///
    /// # Errors
    /// [`Error::Unavailable`] if the store does not answer.
    async fn expired_users(
        &self,
        now: Timestamp,
        after: Option<(Timestamp, LocalityId)>,
        limit: usize,
    ) -> Result<Vec<ExpiredUser>, Error>;
}
