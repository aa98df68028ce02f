//! Inboxes: the notices of each user, and the interface of a store that keeps them.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use locality_uuid::LocalityId;

use crate::error::Error;
use crate::model::notice::{InboxEntry, Notice};
use crate::model::policies::Policies;
use crate::model::tenant::Tenant;
use crate::model::timestamp::Timestamp;
use crate::mutation::IdempotencyKey;

/// For how long, and how many, notices an inbox keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InboxLimits {
    /// For how long a notice is kept.
    pub retention: Duration,
    /// The number of notices that are kept: the latest. One that was deleted counts.
    pub count: u64,
}

impl InboxLimits {
    /// The limits that a tenant's policies set.
    pub const fn of(policies: &Policies) -> Self {
        Self { retention: policies.inbox_retention, count: policies.inbox_limit as u64 }
    }

    /// When a notice goes from the inboxes.
    pub fn expires_at(&self, notice: &Notice) -> Timestamp {
        let latest = notice.send_time.plus(self.retention);
        notice.expire_time.map_or(latest, |time| time.min(latest))
    }
}

/// A notice on its way to users.
#[derive(Clone, Debug, PartialEq)]
pub struct Delivery {
    /// The notice.
    pub notice: Notice,
    /// The users, each once.
    pub users: Vec<LocalityId>,
    /// The limits of their inboxes.
    pub limits: InboxLimits,
    /// Whether the time is in doubt, so that nothing counts as over.
    pub clock_uncertain: bool,
}

/// A part of an inbox.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct InboxPart {
    /// The position of the latest notice of the inbox; 0 where it has had none.
    pub last: u64,
    /// Entries, the latest first. Those of notices that are not kept any more may be missing.
    pub entries: Vec<InboxEntry>,
}

impl InboxPart {
    /// Those of the notices that the inbox shows at `now`.
    pub fn shown(self, limits: InboxLimits, now: Timestamp) -> impl Iterator<Item = InboxEntry> {
        let oldest = self.last.saturating_sub(limits.count);
        self.entries.into_iter().filter(move |entry| {
            let is_over = |notice: &Notice| limits.expires_at(notice) <= now;
            entry.position > oldest && entry.notice.as_ref().is_some_and(|notice| !is_over(notice))
        })
    }
}

/// A change of an inbox.
#[derive(Clone, Debug, PartialEq)]
pub enum InboxChange {
    /// Marks notices as read.
    Read(Vec<LocalityId>),
    /// Marks all notices as read that were sent then or before.
    ReadUpTo(Timestamp),
    /// Deletes a notice. The inbox does not take it again.
    Delete(LocalityId),
}

/// A store that keeps inboxes. Each user has one of its own, also after it was merged into another.
#[async_trait]
pub trait Inboxes: Send + Sync + 'static {
    /// The id of the notice that a request sends, and whether the request was made before: it keeps
    /// the notice that it had then, for [`IdempotencyKey::LIFETIME`]. If it is new, it gets this
    /// one.
    ///
    /// # Errors
    /// [`Error::RequestIdReused`], [`Error::Unavailable`], [`Error::OutcomeUnknown`].
    async fn begin_notice(
        &self,
        request: &IdempotencyKey,
        notice: LocalityId,
        time: Timestamp,
    ) -> Result<(LocalityId, bool), Error>;

    /// Delivers a notice to users. An inbox that has had the notice stays as it is, for as long as
    /// fewer than 50 others have come since and the notice's time is not over; look for older ones
    /// with [`Inboxes::holders`]. Returns for each user, in their order, whether it is there.
    /// Where users are on several servers, some may have the notice before others.
    ///
    /// # Errors
    /// [`Error::Unavailable`] or [`Error::OutcomeUnknown`], where some users may have it: the same
    /// delivery can be made again. [`Error::NoInboxes`].
    async fn deliver(&self, delivery: Arc<Delivery>) -> Result<Vec<bool>, Error>;

    /// Those of `users` who have, or have deleted, a notice.
    ///
    /// # Errors
    /// [`Error::Unavailable`], [`Error::NoInboxes`].
    async fn holders(
        &self,
        notice: LocalityId,
        users: &[LocalityId],
    ) -> Result<Vec<LocalityId>, Error>;

    /// The users whose inboxes a user has: itself, and those that were merged into it. None where
    /// the tenant has no such user.
    ///
    /// # Errors
    /// [`Error::Unavailable`], [`Error::NoInboxes`].
    async fn inboxes(
        &self,
        tenant: &Tenant,
        user: LocalityId,
    ) -> Result<Option<Vec<LocalityId>>, Error>;

    /// Entries of one inbox, the latest first, at most `limit`: those before the position `before`,
    /// if that is given. Fewer only where there are no more.
    ///
    /// # Errors
    /// [`Error::Unavailable`], [`Error::NoInboxes`].
    async fn inbox(
        &self,
        user: LocalityId,
        before: Option<u64>,
        limit: usize,
        with_content: bool,
    ) -> Result<InboxPart, Error>;

    /// Changes one inbox. Notices that it does not have are passed over.
    ///
    /// # Errors
    /// [`Error::Unavailable`] or [`Error::OutcomeUnknown`]: the same change can be made again.
    async fn change_inbox(&self, user: LocalityId, change: InboxChange) -> Result<(), Error>;
}
