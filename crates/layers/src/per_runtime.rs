//! Look-ups by a path of their own on each runtime: with connections and a queue of its own, a
//! look-up wakes no thread of another.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use locality_uuid::LocalityId;
use tokio::runtime::{Handle, Id};

use polynym_directory::{
    Consistency, EncodedUser, Error, ItemResult, LookUps, Resolved, Tenant, View,
};
use polynym_identifier::IdentityKey;

/// Look-ups of a store, by the path of the runtime that they run on.
pub struct PerRuntime {
    paths: Vec<(Id, Arc<dyn LookUps>)>,
    /// The path of all other runtimes.
    others: Arc<dyn LookUps>,
}

impl PerRuntime {
    /// Look-ups with these paths, and one for all other runtimes.
    pub fn new(paths: Vec<(Id, Arc<dyn LookUps>)>, others: Arc<dyn LookUps>) -> Self {
        Self { paths, others }
    }

    fn here(&self) -> &dyn LookUps {
        let here = Handle::current().id();
        let own = self.paths.iter().find(|(runtime, _)| *runtime == here);
        &**own.map_or(&self.others, |(_, path)| path)
    }
}

#[async_trait]
impl LookUps for PerRuntime {
    async fn resolve(
        &self,
        keys: &[IdentityKey],
        consistency: Consistency,
        view: View,
        max_staleness: Duration,
    ) -> Result<Resolved, Error> {
        self.here().resolve(keys, consistency, view, max_staleness).await
    }

    async fn get(
        &self,
        tenant: &Tenant,
        ids: &[LocalityId],
        view: View,
    ) -> Result<Vec<ItemResult<EncodedUser>>, Error> {
        self.here().get(tenant, ids, view).await
    }
}
