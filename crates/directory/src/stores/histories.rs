//! What a store keeps of the past of users, tenants and identifiers.

use async_trait::async_trait;
use locality_uuid::LocalityId;

use crate::encoded::encoded_user::EncodedUser;
use crate::error::{Error, ItemError};
use crate::model::event::Event;
use crate::model::ownership::EndedOwnerships;
use crate::model::shortening::{Shortened, Shortening};
use crate::model::tenant::Tenant;
use crate::model::tenant_event::TenantEvent;
use crate::model::timestamp::Timestamp;
use polynym_identifier::IdentityKey;

/// A part of a user's history.
#[derive(Clone, Debug)]
pub struct History {
    /// The user, without its attributes.
    pub user: EncodedUser,
    /// The events, the newest first.
    pub events: Vec<Event>,
    /// The place at which the next read goes on; none at the end.
    pub next: Option<u64>,
}

/// A user that is [due](crate::model::record::Record::expires_at).
#[derive(Clone, Debug)]
pub struct ExpiredUser {
    /// Since when.
    pub time: Timestamp,
    /// The user.
    pub id: LocalityId,
    /// Its tenant; an error where what is stored of the user cannot be read.
    pub tenant: Result<Tenant, ItemError>,
}

impl ExpiredUser {
    /// The position among expired users.
    pub const fn place(&self) -> (Timestamp, LocalityId) {
        (self.time, self.id)
    }
}

/// The past of users, tenants and identifiers, and the times at which users expire.
#[async_trait]
pub trait Histories: Send + Sync + 'static {
    /// The events of a user, the newest first, at most `limit`: from the newest on, or from the
    /// [place](History::next) at which an earlier read stopped. None where there is no such user.
    ///
    /// # Errors
    /// [`Error::Unavailable`] where the store does not answer.
    async fn history(
        &self,
        tenant: &Tenant,
        user: LocalityId,
        place: Option<u64>,
        limit: usize,
    ) -> Result<Option<History>, Error>;

    /// The events of a tenant itself, the newest first, at most `limit`: those whose numbers are
    /// below `before`, if that is given.
    ///
    /// # Errors
    /// [`Error::Unavailable`] where the store does not answer.
    async fn tenant_history(
        &self,
        tenant: &Tenant,
        before: Option<u64>,
        limit: usize,
    ) -> Result<Vec<TenantEvent>, Error>;

    /// The ended ownerships of keys, in their order.
    ///
    /// # Errors
    /// [`Error::Unavailable`] where the store does not answer.
    async fn ended_ownerships(&self, keys: &[IdentityKey]) -> Result<Vec<EndedOwnerships>, Error>;

    /// Has what is kept of the past of `tenant` removed as early as a shorter retention says: a
    /// part of it, from the [place](Shortened::next) on at which an earlier call stopped.
    ///
    /// # Errors
    /// [`Error::Unavailable`] where the store does not answer.
    async fn shorten_history(
        &self,
        tenant: &Tenant,
        by: Shortening,
        place: Option<Vec<u8>>,
    ) -> Result<Shortened, Error>;

    /// Users that are [due](crate::model::record::Record::expires_at) at `now`, those that have
    /// waited longest first, and by id where they have waited equally long: those whose
    /// [place](ExpiredUser::place) is after `after`, at most `limit`. None only where there are no
    /// more.
    ///
    /// # Errors
    /// [`Error::Unavailable`] where the store does not answer.
    async fn expired_users(
        &self,
        now: Timestamp,
        after: Option<(Timestamp, LocalityId)>,
        limit: usize,
    ) -> Result<Vec<ExpiredUser>, Error>;
}
