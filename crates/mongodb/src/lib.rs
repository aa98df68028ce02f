//! The store on MongoDB, a replica set or a sharded cluster: users by id and claims by key, in two
//! collections sharded on `_id`. A look-up is two reads, each routed to one shard; a mutation is
//! one transaction.

mod bulk_changes;
mod client;
mod command;
mod database;
mod deliveries;
mod feed;
mod history;
mod inbox;
mod lookup;
mod mutation;
mod presence;
mod reconnect;
mod schema;
mod search;
mod setup;
mod store;
mod usage;

use std::sync::Arc;

use tokio::runtime::Handle;
use tokio::sync::Semaphore;
use tokio::time::timeout;

pub use client::error::OpenError;
pub use client::options::Options;
pub use client::pool::CONNECTIONS as POOL_CONNECTIONS;
pub use client::reachability::PARTLY_UNREACHABLE;
pub use client::supported::Supported;
pub use database::operations::Mongo;
pub use presence::heartbeat::Beat;
pub use presence::servers::Reading;
pub use schema::hash::hash;
pub use schema::versions::BECAME_SHARD;
pub use setup::init::{InitOptions, init};
pub use setup::integrity::IntegritySession;
pub use setup::status::{Advice, CollectionStatus, ShardStatus, Status, status};
pub use setup::upgrade::{upgrade, upgrade_to};

use crate::client::connect;
use crate::database::collections::Collections;
use crate::database::connected::{Connected, SHORT_TIMEOUT};
use crate::database::operations::{MAX_IN_FLIGHT, MAX_SCANS};
use crate::database::shares::Shares;
use crate::lookup::health::connect_probes;
use crate::presence::heartbeat::{Closing, Heartbeat};
use crate::schema::versions::{VersionGuard, Versions};
use crate::setup::inspect::check_complete;
use crate::setup::token_key::token_key;
use polynym_directory::{Backend, LookUps};
use polynym_layers::lookup_cache::LookupCache;
use polynym_store_common::owner_hints::OwnerHints;

impl Mongo {
    /// Opens the store in the database that `uri` names, such as
    /// `mongodb://127.0.0.1:27017/polynym`.
    ///
    /// # Errors
    /// [`OpenError`], with advice.
    pub async fn open(uri: &str, options: Options) -> Result<Self, OpenError> {
        Self::open_supporting(uri, options, Supported::PRESENT).await
    }

    /// Opens the store as a program that supports these versions.
    ///
    /// # Errors
    /// [`OpenError`], with advice.
    pub async fn open_supporting(
        uri: &str,
        options: Options,
        supported: Supported,
    ) -> Result<Self, OpenError> {
        let (database, connections) = connect::connect_pool(uri).await?;
        let versions = connect::or_disconnect(&database, async {
            let versions = Versions::supported_in(&database, supported).await?;
            check_complete(&database).await?;
            Ok(versions)
        })
        .await?;
        let token_key = connect::or_disconnect(&database, token_key(&database)).await?;
        let is_routed = connect::or_disconnect(&database, connect::is_routed(&database)).await?;
        let version_guard = VersionGuard::new(supported, versions);
        let collections = Collections {
            hints: OwnerHints::new(options.hint_bytes),
            cache: (options.cache_bytes > 0).then(|| LookupCache::new(options.cache_bytes)),
            ..Collections::new(database.clone(), options.timeout, is_routed, version_guard)
        };
        let starting = Heartbeat::start(
            uri,
            is_routed,
            collections.sessions.clone(),
            collections.version_guard.clone(),
        );
        let heartbeat = connect::or_disconnect(&database, starting).await?;
        heartbeat.first_reading().await;
        let probes = connect::or_disconnect(&database, connect_probes(uri)).await?;
        let probes = collections.by(&probes);

        Ok(Self {
            timeout: options.timeout,
            version_guard: collections.version_guard.clone(),
            heartbeat: Arc::new(heartbeat),
            connected: Connected::new(collections),
            probes: Connected::new(probes),
            shares: Shares::of(connections),
            in_flight: Arc::new(Semaphore::new(MAX_IN_FLIGHT)),
            walks: Arc::new(Semaphore::new(MAX_SCANS)),
            token_key,
        })
    }

    /// The same store for the look-ups of `runtime`, by connections that wake no thread of another.
    /// They are closed by [`Mongo::disconnect`].
    ///
    /// # Errors
    /// [`OpenError`], with advice.
    pub async fn on_runtime(&self, uri: &str, runtime: &Handle) -> Result<Self, OpenError> {
        let database = connect::connect_on(uri, runtime).await?;
        let connected = Connected::new(self.collections().by(&database));
        Ok(Self { connected, ..self.clone() })
    }

    /// Closes the connections of [`Mongo::on_runtime`], once [`Mongo::close`] has ended its
    /// operations.
    pub async fn disconnect(&self) {
        connect::disconnect(&self.collections().database).await;
    }

    /// Waits until all operations have ended, at most for the time limit of one, even if their
    /// callers have left. Then ends the sessions on the servers and closes the connections.
    pub async fn close(&self) {
        let all = self.in_flight.acquire_many(MAX_IN_FLIGHT as u32);
        let closing = match timeout(self.timeout, all).await {
            Ok(_) => Closing::Idle,
            Err(_) => Closing::Busy,
        };
        self.heartbeat.stop(closing).await;
        connect::disconnect(&self.probes.collections().database).await;
        connect::disconnect(&self.collections().database).await;
    }

    /// The capabilities of the store.
    pub fn backend(self: &Arc<Self>) -> Backend {
        Backend::new(self.clone(), self.feed(), self.token_key.clone())
    }

    /// The hints of keys' owners.
    pub fn hints(&self) -> Arc<OwnerHints> {
        self.collections().hints.clone()
    }

    /// The cache to which this store reports its writes, if it has one. The store itself does not
    /// read from it.
    pub fn cache(&self) -> Option<Arc<LookupCache>> {
        self.collections().cache.clone()
    }

    /// The results of the latest heartbeat.
    pub fn beat(&self) -> Beat {
        self.heartbeat.latest()
    }

    /// On a cluster, the store with a time limit of half a second, whose look-ups have an answer to
    /// all keys or none.
    pub fn with_short_timeout(&self) -> Option<Arc<dyn LookUps>> {
        self.collections().is_routed.then(|| {
            let connected = self.connected.with_short_timeout();
            let timeout = SHORT_TIMEOUT.min(self.timeout);
            Arc::new(Self { connected, timeout, ..self.clone() }) as Arc<dyn LookUps>
        })
    }
}
