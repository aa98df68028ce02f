//! Look-ups sent together, for a store where a call costs much and one more key in it costs little.
//! Those that arrive while calls are under way go out in one call as soon as they are as many as
//! are under way, or one of these comes back. A clock is involved only where a call hangs. What
//! keeps them until then is in `queue`, who gets which answer in `batch`, and what becomes of those
//! of a call that hangs in `late`.

mod batch;
mod late;
mod options;
mod queue;

use std::sync::Arc;

use async_trait::async_trait;

use locality_uuid::LocalityId;
pub use options::Options;

use crate::directory::error::Error;
use crate::directory::model::claim::Claim;
use crate::directory::model::record::Record;
use crate::directory::model::tenant::Tenant;
use crate::directory::model::tenant_record::TenantRecord;
use crate::directory::model::timestamp::Timestamp;
use crate::directory::mutation::Mutation;
use crate::directory::read_set::Outcome;
use crate::directory::store::{Consistency, ExpiredUser, ItemResult, Resolved, Store};
use crate::directory::stored_rules::StoredRules;
use crate::identifier::IdentityKey;
use crate::wire::encoded_user::{EncodedUser, Found};
use batch::{Answered, Answers, Group};
use late::Late;
use queue::Queue;

/// A store whose look-ups share calls of the store below it. A shared call starts after all its
/// look-ups have arrived, so that each is as fresh as it would be alone, and runs on however many
/// of its callers leave.
pub struct Coalesced {
    inner: Arc<dyn Store>,
    options: Options,
    owners: Arc<Queue<Consistency>>,
    users: Arc<Queue<Tenant>>,
}

impl Coalesced {
    /// Look-ups of `inner`, sent together.
    pub fn new(inner: Arc<dyn Store>, options: Options) -> Self {
        let owners = Arc::new(Queue::new(inner.clone(), options));
        let users = Arc::new(Queue::new(inner.clone(), options));
        Self { inner, options, owners, users }
    }

    /// The same where `hasty` is given for a store on several servers, of which one may hang: the
    /// store by calls that fail early. Where a shared call is late, each of its look-ups is then
    /// tried on its own, until it is answered.
    #[must_use]
    pub fn with_hasty(self, hasty: Option<Arc<dyn Store>>) -> Self {
        let Some(hasty) = hasty else { return self };
        let (owners, users) = (self.queue(&hasty), self.queue(&hasty));
        Self { owners, users, ..self }
    }

    fn queue<G: Group>(&self, hasty: &Arc<dyn Store>) -> Arc<Queue<G>> {
        Arc::new(Queue::new(self.inner.clone(), self.options).with_late(Late::new(hasty.clone())))
    }
}

#[async_trait]
impl Store for Coalesced {
    async fn rules(&self, consistency: Consistency) -> Result<StoredRules, Error> {
        self.inner.rules(consistency).await
    }

    async fn resolve(
        &self,
        keys: &[IdentityKey],
        consistency: Consistency,
    ) -> Result<Resolved, Error> {
        if keys.is_empty() || consistency == Consistency::Linearizable {
            return self.inner.resolve(keys, consistency).await;
        }
        let Answers { found, reads } = self.owners.look_up(&consistency, keys).await?;
        Ok(Resolved { found, reads })
    }

    async fn get(
        &self,
        tenant: &Tenant,
        ids: &[LocalityId],
    ) -> Result<Vec<ItemResult<EncodedUser>>, Error> {
        if ids.is_empty() {
            return self.inner.get(tenant, ids).await;
        }
        Ok(self.users.look_up(tenant, ids).await?.found)
    }

    async fn get_snapshot(
        &self,
        tenant: &Tenant,
        ids: &[LocalityId],
    ) -> Result<Vec<ItemResult<EncodedUser>>, Error> {
        self.inner.get_snapshot(tenant, ids).await
    }

    async fn claims(&self, keys: &[IdentityKey]) -> Result<Vec<Option<Claim>>, Error> {
        self.inner.claims(keys).await
    }

    async fn tenant(&self, name: &Tenant) -> Result<Option<TenantRecord>, Error> {
        self.inner.tenant(name).await
    }

    async fn tenants(
        &self,
        prefix: &str,
        after: &str,
        limit: usize,
    ) -> Result<Vec<TenantRecord>, Error> {
        self.inner.tenants(prefix, after, limit).await
    }

    async fn keys(&self, tenant: &Tenant, limit: usize) -> Result<Vec<IdentityKey>, Error> {
        self.inner.keys(tenant, limit).await
    }

    async fn scan(
        &self,
        tenant: &Tenant,
        after: Option<LocalityId>,
        limit: usize,
    ) -> Result<Vec<Record>, Error> {
        self.inner.scan(tenant, after, limit).await
    }

    async fn expired_users(
        &self,
        now: Timestamp,
        after: Option<(Timestamp, LocalityId)>,
        limit: usize,
    ) -> Result<Vec<ExpiredUser>, Error> {
        self.inner.expired_users(now, after, limit).await
    }

    async fn mutate(&self, mutation: Mutation) -> Result<Outcome, Error> {
        self.inner.mutate(mutation).await
    }

    fn time(&self, wall: Timestamp) -> Option<Timestamp> {
        self.inner.time(wall)
    }

    async fn check(&self) -> Result<(), Error> {
        self.inner.check().await
    }

    #[cfg(feature = "test-entity")]
    async fn counter(&self, name: &str) -> Result<u64, Error> {
        self.inner.counter(name).await
    }
}

impl Group for Consistency {
    type Key = IdentityKey;
    type Found = Found;

    async fn ask(&self, store: &dyn Store, keys: &[IdentityKey]) -> Answered<Found> {
        let Resolved { found, reads } = store.resolve(keys, *self).await?;
        Ok(Answers { found, reads })
    }
}

impl Group for Tenant {
    type Key = LocalityId;
    type Found = EncodedUser;

    async fn ask(&self, store: &dyn Store, ids: &[LocalityId]) -> Answered<EncodedUser> {
        // Reads of users by id are not reported, so they are not counted.
        Ok(Answers { found: store.get(self, ids).await?, reads: 0 })
    }
}
