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
mod ended;
mod error;
mod feed;
mod find;
mod freshness;
mod guess;
mod heartbeat;
mod history;
mod inbox;
mod inbox_bucket;
mod inbox_store;
mod init;
mod inspect;
mod integrity;
mod journal;
mod many_statements;
mod moment;
mod names;
mod operations;
mod options;
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
mod shorten;
mod snapshot;
mod status;
mod store;
mod supported;
mod tail;
mod tenant_journal;
mod tenant_statements;
mod together;
mod transaction;
mod unordered_updates;
mod upgrade;
mod usage;
mod validators;
mod versions;
mod write;

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Semaphore;
use tokio::time::timeout;

pub use error::OpenError;
pub use heartbeat::Beat;
pub use init::{InitOptions, init};
pub use integrity::IntegritySession;
pub use options::Options;
pub use pool::CONNECTIONS as POOL_CONNECTIONS;
pub use presence::Reading;
pub use reachability::PARTLY_UNREACHABLE;
pub use status::{Advice, CollectionStatus, ShardStatus, Status, status};
pub use supported::Supported;
pub use upgrade::{upgrade, upgrade_to};

use crate::directory::error::Error;
use crate::directory::search::Lead;
use crate::directory::stores::{Backend, LookUps};
use crate::store::lookup_cache::LookupCache;
use crate::store::owner_hints::OwnerHints;
use collections::Collections;
use heartbeat::{Closing, Heartbeat};
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

/// A store in a database of MongoDB.
///
/// Every operation runs to its end, whether or not its caller stays: the server keeps a transaction
/// open that is dropped half-way, and the driver's pool keeps a place in the queue for every
/// operation that was dropped while it waited for a connection, before those of callers who are
/// there. Each has a task of its own, so that it goes on though its caller does not;
/// [`resolve`](LookUps::resolve), which must be fast, gets one where its caller leaves.
#[derive(Clone)]
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
            connect::check_complete(&database, versions).await?;
            Ok(versions)
        })
        .await?;
        database.client().warm_connection_pool().await;
        let is_routed = connect::or_disconnect(&database, connect::is_routed(&database)).await?;
        let fence = Fence::new(supported, versions);
        let collections = Collections {
            hints: OwnerHints::new(options.hint_bytes),
            cache: (options.cache_bytes > 0).then(|| LookupCache::new(options.cache_bytes)),
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

    /// The capabilities of the store.
    pub fn backend(self: &Arc<Self>) -> Backend {
        Backend::new(self.clone(), self.feed())
    }

    /// The guesses of keys' owners.
    pub fn hints(&self) -> &Arc<OwnerHints> {
        &self.collections.hints
    }

    /// The cache to which this store reports its writes, if it has one. The store itself reads
    /// past it.
    pub fn cache(&self) -> Option<&Arc<LookupCache>> {
        self.collections.cache.as_ref()
    }

    /// The results of the latest heartbeat.
    pub fn beat(&self) -> Beat {
        self.heartbeat.latest()
    }

    /// On a cluster: the same store, whose look-ups fail after half a second.
    pub fn hasty(&self) -> Option<Arc<dyn LookUps>> {
        let collections = Collections {
            timeout: FAST_TIMEOUT.min(self.collections.timeout),
            ..(*self.collections).clone()
        };
        self.collections.is_routed.then(|| {
            Arc::new(Self { collections: Arc::new(collections), ..self.clone() })
                as Arc<dyn LookUps>
        })
    }

    /// Refuses a search by what a store of an older schema has no whole index of.
    fn check_searchable(&self, lead: &Lead) -> Result<(), Error> {
        let has_index = self.collections.fence.versions()?.is_searchable();
        if has_index || lead.field().is_none() { Ok(()) } else { Err(Error::NotSearchable) }
    }
}
