//! Coalescing of look-ups, for a store where a call is expensive and one more key in it is cheap.
//! Look-ups that arrive while calls are under way leave in one call as soon as they are as many as
//! those under way, or one of these returns. Timers matter only if a call hangs. `queue` keeps
//! waiting look-ups, `batch` distributes answers, and `late` retries the look-ups of a call that
//! hangs.

mod batch;
mod late;
mod options;
mod queue;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;

pub use batch::CALL_ITEMS;
use locality_uuid::LocalityId;
pub use options::Options;

use crate::directory::encoded::encoded_user::{EncodedUser, Found};
use crate::directory::error::Error;
use crate::directory::model::tenant::Tenant;
use crate::directory::stores::{Consistency, ItemResult, LookUps, Resolved, View};
use crate::identifier::IdentityKey;
use batch::{Answered, Answers, Group};
use late::Late;
use queue::Queue;

/// A store whose look-ups share calls to the store below it. A shared call starts after all its
/// look-ups have arrived, so each is as fresh as it would be alone. It continues if callers leave.
pub struct Coalesced {
    inner: Arc<dyn LookUps>,
    options: Options,
    owners: Arc<Queue<(Consistency, View, Duration)>>,
    users: Arc<Queue<(Tenant, View)>>,
}

impl Coalesced {
    /// Coalesces look-ups of `inner`.
    pub fn new(inner: Arc<dyn LookUps>, options: Options) -> Self {
        let owners = Arc::new(Queue::new(inner.clone(), options));
        let users = Arc::new(Queue::new(inner.clone(), options));
        Self { inner, options, owners, users }
    }

    /// Adds `hasty`, for a store on several servers of which one may hang: the same store, whose
    /// calls fail early. If a shared call is late, each of its look-ups is retried by itself until
    /// it is answered.
    #[must_use]
    pub fn with_hasty(self, hasty: Option<Arc<dyn LookUps>>) -> Self {
        let Some(hasty) = hasty else { return self };
        let (owners, users) = (self.queue(&hasty), self.queue(&hasty));
        Self { owners, users, ..self }
    }

    fn queue<G: Group>(&self, hasty: &Arc<dyn LookUps>) -> Arc<Queue<G>> {
        Arc::new(Queue::new(self.inner.clone(), self.options).with_late(Late::new(hasty.clone())))
    }
}

#[async_trait]
impl LookUps for Coalesced {
    async fn resolve(
        &self,
        keys: &[IdentityKey],
        consistency: Consistency,
        view: View,
        max_staleness: Duration,
    ) -> Result<Resolved, Error> {
        if keys.is_empty() || consistency == Consistency::Linearizable {
            return self.inner.resolve(keys, consistency, view, max_staleness).await;
        }
        let group = (consistency, view, rounded_down(max_staleness));
        let Answers { found, reads } = self.owners.look_up(&group, keys).await?;
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

impl Group for (Consistency, View, Duration) {
    type Key = IdentityKey;
    type Found = Found;

    async fn ask(&self, store: &dyn LookUps, keys: &[IdentityKey]) -> Answered<Found> {
        let Resolved { found, reads } = store.resolve(keys, self.0, self.1, self.2).await?;
        Ok(Answers { found, reads })
    }
}

/// A power of two of milliseconds, at most `max_staleness`: there are few groups of look-ups,
/// however many values callers send.
fn rounded_down(max_staleness: Duration) -> Duration {
    let millis = u64::try_from(max_staleness.as_millis()).unwrap_or(u64::MAX);
    Duration::from_millis(millis.checked_ilog2().map_or(0, |log| 1 << log))
}

impl Group for (Tenant, View) {
    type Key = LocalityId;
    type Found = EncodedUser;

    async fn ask(&self, store: &dyn LookUps, ids: &[LocalityId]) -> Answered<EncodedUser> {
        // Reads of users by id are not reported, so they are not counted.
        Ok(Answers { found: store.get(&self.0, ids, self.1).await?, reads: 0 })
    }
}
