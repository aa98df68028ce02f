//! The collections of a store, and the state that all operations share.

use std::sync::Arc;
use std::time::Duration;

use futures_util::TryStreamExt;
use mongodb::bson::{Document, RawDocumentBuf};
use mongodb::options::{FindOptions, ReadConcern};
use mongodb::{Client, Collection, Database};

use crate::client::error::Fault;
use crate::client::reachability::Reachability;
use crate::database::lateness::Lateness;
use crate::presence::sessions::Sessions;
use crate::schema::fields::{IDENTITIES, REQUESTS, TENANTS, USERS};
use crate::schema::versions::VersionGuard;
use polynym_directory::{User, Write};
use polynym_layers::lookup_cache::{LookupCache, PendingWrite};
use polynym_store_common::attribute_names::AttributeNames;
use polynym_store_common::owner_hints::OwnerHints;

/// The time limit of reads that may pass many documents: as long as one step of a walk. MongoDB
/// gives reads without a limit `defaultMaxTimeMS`, which operators set for other reads.
pub const LONG_READ: Duration = Duration::from_secs(60 * 60);
/// The time after which an acknowledged commit is visible on all shards.
const SETTLING_TIME: Duration = Duration::from_secs(1);

/// The collections of a store, and the state that all operations share.
#[derive(Clone)]
pub struct Collections {
    pub client: Client,
    pub database: Database,
    pub users: Collection<RawDocumentBuf>,
    pub identities: Collection<RawDocumentBuf>,
    pub requests: Collection<RawDocumentBuf>,
    pub tenants: Collection<RawDocumentBuf>,
    pub timeout: Duration,
    /// Whether the store is on a sharded cluster.
    pub is_routed: bool,
    pub sessions: Arc<Sessions>,
    pub version_guard: Arc<VersionGuard>,
    pub reachability: Arc<Reachability>,
    /// The latencies of look-ups, by consistency; `None` if there is one set of servers, so that
    /// no part of it can hang.
    pub lateness: Option<[Arc<Lateness>; 3]>,
    pub hints: Arc<OwnerHints>,
    pub cache: Option<Arc<LookupCache>>,
    pub names: Arc<AttributeNames>,
}

impl Collections {
    /// Fails if the program does not support the versions of the store: a later schema may have
    /// another form.
    pub fn check_versions(&self) -> Result<(), Fault> {
        self.version_guard.versions().map(drop)
    }

    pub fn new(
        database: Database,
        timeout: Duration,
        is_routed: bool,
        version_guard: VersionGuard,
    ) -> Self {
        let reachability = Arc::<Reachability>::default();
        Self {
            lateness: is_routed
                .then(|| [(); 3].map(|()| Arc::new(Lateness::new(reachability.clone())))),
            client: database.client().clone(),
            users: database.collection(USERS),
            identities: database.collection(IDENTITIES),
            requests: database.collection(REQUESTS),
            tenants: database.collection(TENANTS),
            database,
            timeout,
            is_routed,
            sessions: Arc::default(),
            version_guard: Arc::new(version_guard),
            reachability,
            hints: OwnerHints::new(0),
            cache: None,
            names: Arc::default(),
        }
    }

    /// The same collections by another client.
    pub fn by(&self, database: &Database) -> Self {
        Self {
            client: database.client().clone(),
            users: database.collection(USERS),
            identities: database.collection(IDENTITIES),
            requests: database.collection(REQUESTS),
            tenants: database.collection(TENANTS),
            database: database.clone(),
            ..self.clone()
        }
    }

    /// A collection of the store.
    pub fn collection(&self, name: &str) -> Collection<RawDocumentBuf> {
        self.database.collection(name)
    }

    /// All majority-committed documents that a filter matches. Without a time limit in the options
    /// it is [`LONG_READ`].
    pub async fn find_documents(
        &self,
        from: &Collection<RawDocumentBuf>,
        filter: Document,
        mut options: FindOptions,
    ) -> Result<Vec<RawDocumentBuf>, Fault> {
        options.max_time.get_or_insert(LONG_READ);
        let find = from.find(filter).with_options(options).read_concern(ReadConcern::majority());
        Ok(find.await?.try_collect().await?)
    }

    /// The first majority-committed document that matches `filter`, with the fields of
    /// `projection`.
    pub async fn find_document(
        &self,
        from: &Collection<RawDocumentBuf>,
        filter: Document,
        projection: Document,
    ) -> Result<Option<RawDocumentBuf>, Fault> {
        let find = from.find_one(filter).projection(projection);
        Ok(find.read_concern(ReadConcern::majority()).max_time(self.timeout).await?)
    }

    /// The options of a find in this order, with a limit and the time limit of an operation.
    pub fn find_options(&self, sort: Document, limit: usize) -> FindOptions {
        FindOptions::builder().sort(sort).limit(limit as i64).max_time(self.timeout).build()
    }

    /// The options of a find with the time limit of an operation.
    pub fn time_limit(&self) -> FindOptions {
        FindOptions::builder().max_time(self.timeout).build()
    }

    /// Registers a write with the cache, which removes the written users and keys when the returned
    /// value is dropped: after the commit.
    pub fn pending_write<'w>(
        &self,
        writes: impl Iterator<Item = &'w Write>,
    ) -> Option<PendingWrite> {
        let cache = self.cache.as_ref()?;
        Some(cache.pending_write(writes, self.settling_time()))
    }

    /// Removes a user from the cache. A repeated request writes nothing, and its first attempt may
    /// have ended on this server with an unknown outcome.
    pub fn forget_user(&self, user: &User) {
        if let Some(cache) = &self.cache {
            drop(cache.pending_user(user, self.settling_time()));
        }
    }

    /// The time until an acknowledged commit is visible.
    const fn settling_time(&self) -> Duration {
        if self.is_routed { SETTLING_TIME } else { Duration::ZERO }
    }
}
