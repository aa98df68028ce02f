//! The collections of one store, with what all operations on them share.

use std::sync::Arc;
use std::time::Duration;

use mongodb::bson::RawDocumentBuf;
use mongodb::{Client, Collection, Database};

use super::reachability::Reachability;
use super::schema;
use super::sessions::Sessions;
use super::versions::Fence;
use crate::directory::model::user::User;
use crate::directory::mutation::read_set::Write;
use crate::store::attribute_names::AttributeNames;
use crate::store::lookup_cache::{LookupCache, PendingWrite};
use crate::store::owner_hints::OwnerHints;

/// The time after the acknowledgement of a commit in which the last shard shows it.
const SETTLING_TIME: Duration = Duration::from_secs(1);

/// The collections of one store.
#[derive(Clone)]
pub struct Collections {
    pub client: Client,
    pub database: Database,
    pub users: Collection<RawDocumentBuf>,
    pub identities: Collection<RawDocumentBuf>,
    pub requests: Collection<RawDocumentBuf>,
    pub tenants: Collection<RawDocumentBuf>,
    pub timeout: Duration,
    /// Whether a router stands before the shards.
    pub is_routed: bool,
    pub sessions: Arc<Sessions>,
    pub fence: Arc<Fence>,
    pub reachability: Arc<Reachability>,
    pub hints: Arc<OwnerHints>,
    pub cache: Option<Arc<LookupCache>>,
    pub names: Arc<AttributeNames>,
}

impl Collections {
    pub fn new(database: Database, timeout: Duration, is_routed: bool, fence: Fence) -> Self {
        Self {
            client: database.client().clone(),
            users: database.collection(schema::USERS),
            identities: database.collection(schema::IDENTITIES),
            requests: database.collection(schema::REQUESTS),
            tenants: database.collection(schema::TENANTS),
            database,
            timeout,
            is_routed,
            sessions: Arc::default(),
            fence: Arc::new(fence),
            reachability: Arc::default(),
            hints: OwnerHints::new(0),
            cache: None,
            names: Arc::default(),
        }
    }

    /// Begins a write of this server. The cache drops the written users and keys when the returned
    /// value is dropped, which is to be after the commit.
    pub fn pending_write<'w>(
        &self,
        writes: impl Iterator<Item = &'w Write>,
    ) -> Option<PendingWrite> {
        let cache = self.cache.as_ref()?;
        Some(cache.pending_write(writes, self.settling_time()))
    }

    /// Has the cache forget a user. A request that is repeated writes nothing, and its first
    /// attempt may have ended on this server without a known outcome.
    pub fn forget_user(&self, user: &User) {
        if let Some(cache) = &self.cache {
            drop(cache.pending_user(user, self.settling_time()));
        }
    }

    /// The time that a commit may take to be visible once it is acknowledged.
    const fn settling_time(&self) -> Duration {
        if self.is_routed { SETTLING_TIME } else { Duration::ZERO }
    }
}
