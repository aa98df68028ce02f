//! Coalescing of look-ups, for a store where a call is expensive and one more key in it is cheap.
//! Look-ups that arrive during calls are sent in one call once they are as many as those in flight,
//! or once a call returns. Timers matter only for stalled calls.
//!
//! The states of a call, which `slots` counts by group:
//!
//! ```text
//!            try_queue             start               stall
//!  ┌──────┐  ───────▶  ┌────────┐  ──────▶  ┌──────────┐  ──▶  ┌─────────┐
//!  │ Idle │            │ Queued │           │ InFlight │       │ Stalled │
//!  └──────┘  ─────────────────────────────▶ └──────────┘       └─────────┘
//!             bypass        ▲                    │ end              │ end
//!                           │ next_or_end        ▼                  ▼
//!                           │               ┌────────────────────────────┐
//!                           └────────────── │            Done            │
//!                                           └────────────────────────────┘
//! ```
//!
//! A queued call takes the look-ups that arrive; one that starts with none is done. An end queues
//! the next call if enough look-ups wait; otherwise its group is idle once all calls are done.
//!
//! - `queue` has the groups, and `group_queue` the waiting look-ups of one.
//! - `call` runs one call: it sends a `batch` of look-ups and distributes the answers.
//! - `stalled_retry` retries each look-up of a stalled call by itself.

mod batch;
mod call;
mod group_queue;
mod options;
mod queue;
mod slots;
mod stalled_retry;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;

pub use batch::CALL_ITEMS;
use locality_uuid::LocalityId;
pub use options::Options;

use batch::{Answered, Answers, Group};
use polynym_directory::{
    Consistency, EncodedUser, Error, Found, ItemResult, LookUps, Resolved, Tenant, View,
};
use polynym_identifier::IdentityKey;
use queue::Queue;
use stalled_retry::StalledRetry;

/// A store whose look-ups share calls to the store below it. A shared call starts after all its
/// look-ups have arrived, so each is as fresh as it would be alone. It continues if callers leave.
/// Its answers are fresh, whatever staleness callers accept: a cache belongs above it.
pub struct Coalesced {
    inner: Arc<dyn LookUps>,
    options: Options,
    owners: Arc<Queue<(Consistency, View)>>,
    users: Arc<Queue<(Tenant, View)>>,
}

impl Coalesced {
    /// Coalesces look-ups of `inner`.
    pub fn new(inner: Arc<dyn LookUps>, options: Options) -> Self {
        let owners = Arc::new(Queue::new(inner.clone(), options));
        let users = Arc::new(Queue::new(inner.clone(), options));
        Self { inner, options, owners, users }
    }

    /// Adds the same store with a short timeout, for a store on several servers of which one may
    /// hang. If a shared call stalls, each of its look-ups is retried by itself until it is
    /// answered.
    #[must_use]
    pub fn with_short_timeout(self, store: Option<Arc<dyn LookUps>>) -> Self {
        let Some(store) = store else { return self };
        let (owners, users) = (self.queue(&store), self.queue(&store));
        Self { owners, users, ..self }
    }

    fn queue<G: Group>(&self, short_timeout: &Arc<dyn LookUps>) -> Arc<Queue<G>> {
        let retry = StalledRetry::new(short_timeout.clone());
        Arc::new(Queue::new(self.inner.clone(), self.options).with_retry(retry))
    }
}

#[async_trait]
impl LookUps for Coalesced {
    async fn resolve(
        &self,
        keys: &[IdentityKey],
        consistency: Consistency,
        view: View,
        _: Duration,
    ) -> Result<Resolved, Error> {
        if keys.is_empty() || consistency == Consistency::Linearizable {
            return self.inner.resolve(keys, consistency, view, Duration::ZERO).await;
        }
        let Answers { found, reads } = self.owners.look_up(&(consistency, view), keys).await?;
        Ok(Resolved { found, reads })
    }

    async fn get(
        &self,
        tenant: &Tenant,
        ids: &[LocalityId],
        view: View,
    ) -> Result<Vec<ItemResult<EncodedUser>>, Error> {
        if ids.is_empty() {
            return self.inner.get(tenant, ids, view).await;
        }
        Ok(self.users.look_up(&(tenant.clone(), view), ids).await?.found)
    }
}

impl Group for (Consistency, View) {
    type Key = IdentityKey;
    type Found = Found;

    async fn ask(&self, store: &dyn LookUps, keys: &[IdentityKey]) -> Answered<Found> {
        let Resolved { found, reads } = store.resolve(keys, self.0, self.1, Duration::ZERO).await?;
        Ok(Answers { found, reads })
    }
}

impl Group for (Tenant, View) {
    type Key = LocalityId;
    type Found = EncodedUser;

    async fn ask(&self, store: &dyn LookUps, ids: &[LocalityId]) -> Answered<EncodedUser> {
        // Reads of users by id are not reported, so they are not counted.
        Ok(Answers { found: store.get(&self.0, ids, self.1).await?, reads: 0 })
    }
}
