//! The store on MongoDB, a replica set or a sharded cluster: users by their ids and claims by their
//! keys, in two collections sharded on `_id`. A look-up is two reads, each routed to one shard; a
//! mutation is one transaction.

mod admin;
mod attributes;
mod backoff;
mod claim_statements;
mod cluster;
mod collections;
mod commit;
mod commit_gate;
mod connect;
mod dead;
mod detach_on_drop;
mod driver_text;
mod error;
mod find;
mod freshness;
mod guess;
mod heartbeat;
mod init;
mod inspect;
mod integrity;
mod many_statements;
mod moment;
mod names;
mod operations;
mod pool;
mod presence;
mod preserved;
mod presplit;
mod probe;
mod range_search;
mod reachability;
mod read;
mod rewrite;
mod schema;
mod search;
mod sessions;
mod status;
mod supported;
mod together;
mod transaction;
mod upgrade;
mod validators;
mod versions;
mod write;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use tokio::sync::Semaphore;
use tokio::task::JoinError;
use tokio::time::{Instant, timeout, timeout_at};

pub use error::OpenError;
pub use heartbeat::Beat;
pub use init::{InitOptions, init};
pub use integrity::IntegritySession;
pub use pool::CONNECTIONS as POOL_CONNECTIONS;
pub use presence::Reading;
pub use reachability::PARTLY_UNREACHABLE;
pub use status::{Advice, CollectionStatus, ShardStatus, Status, status};
pub use supported::Supported;
pub use upgrade::{upgrade, upgrade_to};

use crate::directory::error::Error;
use crate::directory::model::claim::Claim;
use crate::directory::model::record::{Hold, Record};
use crate::directory::model::tenant::Tenant;
use crate::directory::model::tenant_record::TenantRecord;
use crate::directory::model::timestamp::Timestamp;
use crate::directory::mutation::Mutation;
use crate::directory::read_set::Outcome;
use crate::directory::search::{Lead, Position, SearchedUser};
use crate::directory::store::{Consistency, ExpiredUser, ItemResult, Resolved, Store, View};
use crate::directory::stored_rules::StoredRules;
use crate::identifier::IdentityKey;
use crate::store::owner_hints::{HINT_BYTES, OwnerHints};
use crate::wire::encoded_user::EncodedUser;
use collections::Collections;
use commit_gate::CommitGate;
use error::Fault;
use heartbeat::{Closing, Heartbeat};
use locality_uuid::LocalityId;
use versions::{Fence, Versions};

/// Operations under way at once: far more than there are connections, and few enough to wait for
/// one in time.
const MAX_IN_FLIGHT: usize = 4_096;
/// The least time for which the answer to a commit is awaited, so that its outcome is rarely
/// unknown.
const MIN_COMMIT_WAIT: Duration = Duration::from_secs(1);
/// The time for which an operation may go on after its caller has left: until well after the
/// driver's heartbeat has found that a server does not answer.
const DETACHED_TIMEOUT: Duration = Duration::from_secs(60);
/// The time limit of a look-up that has an alternative.
const FAST_TIMEOUT: Duration = Duration::from_millis(500);
/// Walks over users at once. Where a tenant has few users, the server looks at many of others to
/// find them: other callers must not wait for connections meanwhile.
const MAX_SCANS: usize = 2;
/// The time limit of one step of a scan.
const SCAN_TIMEOUT: Duration = Duration::from_secs(60 * 60);
/// The time for which the answer to the health probe is awaited.
const PROBE_TIMEOUT: Duration = Duration::from_secs(3);

/// The settings of a [`Mongo`] store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// The longest that one operation may take, what is tried again included.
    pub timeout: Duration,
    /// Memory for guesses of keys' owners, in bytes. It is taken as it is needed.
    pub hint_bytes: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self { timeout: Duration::from_secs(10), hint_bytes: HINT_BYTES }
    }
}

/// A store in a database of MongoDB.
///
/// Every operation runs to its end, whether or not its caller stays: the server keeps a transaction
/// open that is dropped half-way, and the driver's pool keeps a place in the queue for every
/// operation that was dropped while it waited for a connection, before those of callers who are
/// there. Each has a task of its own, so that it goes on though its caller does not;
/// [`resolve`](Store::resolve), which must be fast, gets one where its caller leaves.
pub struct Mongo {
    collections: Arc<Collections>,
    in_flight: Arc<Semaphore>,
    walks: Arc<Semaphore>,
    heartbeat: Arc<Heartbeat>,
}

impl Mongo {
    /// Opens the store in the database that `uri` names, such as
    /// `mongodb://127.0.0.1:27017/polynym`.
    ///
    /// # Errors
    /// [`OpenError`], which says what is wrong and what to do.
    pub async fn open(uri: &str, options: Options) -> Result<Self, OpenError> {
        Self::open_supporting(uri, options, Supported::PRESENT).await
    }

    /// Opens it as a program does that supports other versions.
    ///
    /// # Errors
    /// [`OpenError`], which says what is wrong and what to do.
    pub async fn open_supporting(
        uri: &str,
        options: Options,
        supported: Supported,
    ) -> Result<Self, OpenError> {
        let database = connect::connect(uri).await?;
        let versions = connect::or_disconnect(&database, async {
            let versions = Versions::supported_in(&database, supported).await?;
            connect::check_complete(&database).await?;
            Ok(versions)
        })
        .await?;
        database.client().warm_connection_pool().await;
        let is_routed = connect::or_disconnect(&database, connect::is_routed(&database)).await?;
        let fence = Fence::new(supported, versions);
        let collections = Collections {
            hints: OwnerHints::new(options.hint_bytes),
            ..Collections::new(database.clone(), options.timeout, is_routed, fence)
        };
        let heartbeat =
            Heartbeat::start(uri, collections.sessions.clone(), collections.fence.clone());
        let heartbeat = connect::or_disconnect(&database, heartbeat).await?;
        heartbeat.first_reading().await;

        Ok(Self {
            heartbeat: Arc::new(heartbeat),
            collections: Arc::new(collections),
            in_flight: Arc::new(Semaphore::new(MAX_IN_FLIGHT)),
            walks: Arc::new(Semaphore::new(MAX_SCANS)),
        })
    }

    /// Waits until what is under way has ended, whether or not its callers are still there, no
    /// longer than one operation may take; then ends the sessions on the servers and closes the
    /// connections.
    pub async fn close(&self) {
        let all = self.in_flight.acquire_many(MAX_IN_FLIGHT as u32);
        let parting = match timeout(self.collections.timeout, all).await {
            Ok(_) => Closing::Idle,
            Err(_) => Closing::Busy,
        };
        self.heartbeat.stop(parting).await;
        connect::disconnect(&self.collections.database).await;
    }

    /// The guesses of keys' owners.
    pub fn hints(&self) -> &Arc<OwnerHints> {
        &self.collections.hints
    }

    /// The results of the latest heartbeat.
    pub fn beat(&self) -> Beat {
        self.heartbeat.latest()
    }

    /// On a cluster: the same store, whose look-ups fail after half a second.
    pub fn hasty(&self) -> Option<Arc<dyn Store>> {
        let collections = Collections {
            timeout: FAST_TIMEOUT.min(self.collections.timeout),
            ..(*self.collections).clone()
        };
        self.collections.is_routed.then(|| {
            Arc::new(Self {
                collections: Arc::new(collections),
                heartbeat: self.heartbeat.clone(),
                in_flight: self.in_flight.clone(),
                walks: self.walks.clone(),
            }) as Arc<dyn Store>
        })
    }

    /// Refuses a search by what a store of an older schema has no whole index of.
    fn check_searchable(&self, lead: &Lead) -> Result<(), Error> {
        let has_index = self.collections.fence.versions()?.is_searchable();
        if has_index || lead.field().is_none() { Ok(()) } else { Err(Error::NotSearchable) }
    }
}

#[async_trait]
impl Store for Mongo {
    async fn rules(&self, consistency: Consistency) -> Result<StoredRules, Error> {
        Ok(self.collections.fence.rules(&self.collections.database, consistency).await?)
    }

    async fn resolve(
        &self,
        keys: &[IdentityKey],
        consistency: Consistency,
        view: View,
    ) -> Result<Resolved, Error> {
        let keys = keys.to_vec();
        self.run_here(
            |collections| async move { collections.resolve(&keys, consistency, view).await },
        )
        .await
    }

    async fn get(
        &self,
        tenant: &Tenant,
        ids: &[LocalityId],
        view: View,
    ) -> Result<Vec<ItemResult<EncodedUser>>, Error> {
        let (tenant, ids) = (tenant.clone(), ids.to_vec());
        self.run(|collections| async move { collections.get(&tenant, &ids, view).await }).await
    }

    async fn get_snapshot(
        &self,
        tenant: &Tenant,
        ids: &[LocalityId],
        view: View,
    ) -> Result<Vec<ItemResult<EncodedUser>>, Error> {
        let (tenant, ids) = (tenant.clone(), ids.to_vec());
        self.run(|collections| async move { collections.get_snapshot(&tenant, &ids, view).await })
            .await
    }

    async fn claims(&self, keys: &[IdentityKey]) -> Result<Vec<Option<Claim>>, Error> {
        let keys = keys.to_vec();
        self.run(|collections| async move { collections.claims(&keys).await }).await
    }

    async fn tenant(&self, name: &Tenant) -> Result<Option<TenantRecord>, Error> {
        let name = name.clone();
        self.run(|collections| async move { collections.tenant(&name).await }).await
    }

    async fn tenants(
        &self,
        prefix: &str,
        after: &str,
        limit: usize,
    ) -> Result<Vec<TenantRecord>, Error> {
        let (prefix, after) = (prefix.to_owned(), after.to_owned());
        self.run(|own| async move { own.tenants(&prefix, &after, limit).await }).await
    }

    async fn keys(&self, tenant: &Tenant, limit: usize) -> Result<Vec<IdentityKey>, Error> {
        let tenant = tenant.clone();
        self.run(|collections| async move { collections.keys(&tenant, limit).await }).await
    }

    async fn ownerless_holds(
        &self,
        tenant: &Tenant,
        after: Option<&IdentityKey>,
        limit: usize,
    ) -> Result<Vec<Hold>, Error> {
        let (tenant, after) = (tenant.clone(), after.cloned());
        self.run(|own| async move { own.ownerless_holds(&tenant, after, limit).await }).await
    }

    async fn scan(
        &self,
        tenant: &Tenant,
        after: Option<LocalityId>,
        limit: usize,
    ) -> Result<Vec<Record>, Error> {
        let turn = self.walks.clone().acquire_owned().await;
        let (collections, tenant) = (self.collections.clone(), tenant.clone());
        let walk = self.spawn(SCAN_TIMEOUT, async move {
            let users = collections.scan(&tenant, after, limit).await;
            drop(turn);
            users
        })?;
        Ok(walk.await.unwrap_or_else(|_| Err(Fault::Panicked))?)
    }

    async fn search(
        &self,
        tenant: &Tenant,
        lead: &Lead,
        after: Option<&Position>,
        limit: usize,
        view: View,
    ) -> Result<Vec<SearchedUser>, Error> {
        self.check_searchable(lead)?;
        let (tenant, lead, after) = (tenant.clone(), lead.clone(), after.cloned());
        self.run(|collections| async move {
            collections.search(&tenant, &lead, after.as_ref(), limit, view).await
        })
        .await
    }

    async fn probe(&self, tenant: &Tenant, lead: &Lead, limit: usize) -> Result<usize, Error> {
        self.check_searchable(lead)?;
        let (tenant, lead) = (tenant.clone(), lead.clone());
        self.run(|collections| async move { collections.probe(&tenant, &lead, limit).await }).await
    }

    async fn attribute_names(
        &self,
        tenant: &Tenant,
        after: &str,
        limit: usize,
    ) -> Result<Vec<String>, Error> {
        let (tenant, after) = (tenant.clone(), after.to_owned());
        let names =
            self.run(|collections| async move { collections.all_names(tenant.as_str()).await });
        Ok(names.await?.page(&after, limit))
    }

    async fn expired_users(
        &self,
        now: Timestamp,
        after: Option<(Timestamp, LocalityId)>,
        limit: usize,
    ) -> Result<Vec<ExpiredUser>, Error> {
        self.run(|own| async move { own.expired_users(now, after, limit).await }).await
    }

    async fn mutate(&self, mutation: Mutation) -> Result<Outcome, Error> {
        let deadline = Instant::now() + self.collections.timeout;
        let gate = Arc::new(CommitGate::new(deadline));
        let (collections, entry) = (self.collections.clone(), gate.clone());
        let mut task = self
            .spawn(self.abandoned(), async move { collections.mutate(&mutation, &entry).await })?;
        let ended = match timeout_at(deadline, &mut task).await {
            Ok(ended) => ended,
            Err(_) if gate.close() => return Err(Fault::Late.into()),
            Err(_) => {
                let settled = timeout(MIN_COMMIT_WAIT + self.collections.timeout, task).await;
                settled.map_err(|_| Error::from(Fault::Unanswered))?
            }
        };

        ended.unwrap_or_else(|_: JoinError| Err(Error::OutcomeUnknown(Fault::Panicked.into())))
    }

    async fn mutate_all(&self, mutations: Vec<Mutation>) -> Vec<Result<Outcome, Error>> {
        self.all(mutations).await
    }

    fn time(&self, wall: Timestamp) -> Option<Timestamp> {
        self.heartbeat.time(wall)
    }

    #[cfg(feature = "test-entity")]
    async fn counter(&self, name: &str) -> Result<u64, Error> {
        let name = name.to_owned();
        self.run(|collections| async move { collections.counter(&name).await }).await
    }

    async fn check(&self) -> Result<(), Error> {
        let check = self.run(|collections| async move { collections.check().await });
        timeout(PROBE_TIMEOUT, check).await.unwrap_or_else(|_| Err(Fault::Late.into()))
    }
}
