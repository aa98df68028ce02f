//! The inboxes of users, and the interface of a store that has them.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use locality_uuid::LocalityId;

use crate::clock::Now;
use crate::error::Error;
use crate::model::notice::{InboxEntry, Notice};
use crate::model::policies::Policies;
use crate::model::tenant::Tenant;
use crate::mutation::IdempotencyKey;
use crate::timestamp::Timestamp;

/// The limits of an inbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InboxLimits {
    /// The retention of a notice.
    pub retention: Duration,
    /// The number of latest notices that the inbox keeps. A deleted notice counts.
    pub count: u64,
}

impl InboxLimits {
    /// The limits that a tenant's policies set.
    pub const fn from_policies(policies: &Policies) -> Self {
        Self { retention: policies.inbox_retention, count: policies.inbox_limit as u64 }
    }

    /// The time when a notice leaves the inboxes.
    pub fn expires_at(&self, notice: &Notice) -> Timestamp {
        let latest = notice.send_time.plus(self.retention);
        notice.expire_time.map_or(latest, |time| time.min(latest))
    }

    /// Whether an entry has a notice that has not expired at `now`.
    pub fn shows(&self, entry: &InboxEntry, now: Timestamp) -> bool {
        entry.notice.as_ref().is_some_and(|notice| self.expires_at(notice) > now)
    }
}

/// The delivery of a notice to users.
#[derive(Clone, Debug, PartialEq)]
pub struct Delivery {
    /// The notice.
    pub notice: Notice,
    /// The users, each once.
    pub users: Vec<LocalityId>,
    /// The limits of their inboxes.
    pub limits: InboxLimits,
    /// Whether the clock is uncertain, so that nothing expires.
    pub clock_uncertain: bool,
}

/// The id of the notice of a request and, if the request is a repeated one, the time of the first.
pub type BegunNotice = (LocalityId, Option<Timestamp>);

/// The entries among which [`Inboxes::oldest`] looks for one that is not deleted.
pub const OLDEST_ENTRIES: u64 = 100;

/// A change of an inbox.
#[derive(Clone, Debug, PartialEq)]
pub enum InboxChange {
    /// Marks notices as read.
    Read(Vec<LocalityId>),
    /// Marks all notices as read that were sent at this time or before.
    ReadUpTo(Timestamp),
    /// Deletes a notice. The inbox does not accept it again.
    Delete(LocalityId),
}

/// A store with inboxes. Each user has one, even after it was merged into another.
#[async_trait]
pub trait Inboxes: Send + Sync + 'static {
    /// The id of the notice of a request and, if the request is a repeated one, the time of the
    /// first. A new request gets `notice`, and keeps it for [`IdempotencyKey::LIFETIME`], or longer
    /// while the clock is uncertain. Without `notice`, a new request has none. A request of a
    /// deleted tenant, which was created at another time than `tenant_since`, does not count.
    ///
    /// # Errors
    /// [`Error::RequestIdReused`], [`Error::Unavailable`], [`Error::OutcomeUnknown`].
    async fn begin_notice(
        &self,
        request: &IdempotencyKey,
        tenant_since: Timestamp,
        notice: Option<LocalityId>,
        now: Now,
    ) -> Result<Option<BegunNotice>, Error>;

    /// Delivers a notice to users. Returns for each user, in order, whether it exists. A repeated
    /// delivery changes nothing while the notice is among the latest of the inbox, and has not
    /// expired. Users on several servers may get the notice at different times. Entries are in the
    /// order of deliveries, or of the times and counters in the ids of notices.
    ///
    /// # Errors
    /// [`Error::Unavailable`] or [`Error::OutcomeUnknown`], after which some users may have it: the
    /// delivery can be repeated.
    async fn deliver(&self, delivery: Arc<Delivery>) -> Result<Vec<bool>, Error>;

    /// The users among `users` who have, or have deleted, a notice that was sent at `send_time`.
    ///
    /// # Errors
    /// [`Error::Unavailable`].
    async fn holders(
        &self,
        notice: LocalityId,
        send_time: Timestamp,
        users: &[LocalityId],
    ) -> Result<Vec<LocalityId>, Error>;

    /// The users whose inboxes a user has: itself, and those that were merged into it. None if the
    /// tenant has no such user.
    ///
    /// # Errors
    /// [`Error::Unavailable`].
    async fn inboxes(
        &self,
        tenant: &Tenant,
        user: LocalityId,
    ) -> Result<Option<Vec<LocalityId>>, Error>;

    /// Up to `limit` entries of one inbox, the latest first, before the position `before`, if
    /// given. Fewer only if there are no more. It may still have entries beyond the limit of the
    /// inbox, and of expired notices.
    ///
    /// # Errors
    /// [`Error::Unavailable`].
    async fn inbox(
        &self,
        user: LocalityId,
        before: Option<u128>,
        limit: usize,
        with_content: bool,
    ) -> Result<Vec<InboxEntry>, Error>;

    /// The oldest notice, without content, of the latest `count` entries of one inbox; none if it
    /// has fewer, or if the last hundred of them are deleted.
    ///
    /// # Errors
    /// [`Error::Unavailable`].
    async fn oldest(&self, user: LocalityId, count: u64) -> Result<Option<Notice>, Error>;

    /// Changes one inbox. Ignores notices that it does not have.
    ///
    /// # Errors
    /// [`Error::Unavailable`] or [`Error::OutcomeUnknown`]: the change can be repeated.
    async fn change_inbox(&self, user: LocalityId, change: InboxChange) -> Result<(), Error>;
}
