//! Databases for tests on the shared servers: one for each test.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use conformance::{Failure, StoreFactory};
use locality_uuid::split_points;
use mongodb::Database;
use mongodb::bson::spec::BinarySubtype;
use mongodb::bson::{Binary, Bson, Document, doc};
use mongodb::options::WriteConcern;
use polynym_directory::Backend;
use polynym_mongodb::{InitOptions, Mongo, OpenError, Options, init};
use tokio::sync::{Mutex, OnceCell};
use tokio::task::spawn_blocking;
use tokio::time::{Instant, sleep_until};

use super::replica_set::ReplicaSet;
use super::runtime;
use super::sharded::Sharded;
use super::wrong_hints::WrongHints;

/// The collections that a store keeps when all else is removed: its versions, and its servers.
const KEPT: [&str; 2] = ["meta", "servers"];

/// The time for which a released database stays reuse: a mutation of a cancelled caller may still
/// be in progress.
const REST: Duration = Duration::from_secs(1);

/// The timeout of an operation: long enough for a busy machine.
const TIMEOUT: Duration = Duration::from_secs(60);

/// A pool of databases: released ones are reused, new ones are created on demand.
pub struct Databases {
    servers: Servers,
    /// Released databases, with the time of release, oldest first.
    free: std::sync::Mutex<Vec<(Instant, String)>>,
    /// Serialises the creation of databases in a cluster.
    creation: Mutex<()>,
}

enum Servers {
    Set(&'static ReplicaSet, &'static str),
    Cluster(&'static Sharded),
}

impl Databases {
    /// A pool on a replica set, with connection options such as `retryWrites=false`.
    pub fn of_set(set: &'static ReplicaSet, options: &'static str) -> Arc<Self> {
        Self::new(Servers::Set(set, options))
    }

    /// A pool on a cluster; each shard owns a part of every collection.
    pub fn of_cluster(cluster: &'static Sharded) -> Arc<Self> {
        Self::new(Servers::Cluster(cluster))
    }

    fn new(servers: Servers) -> Arc<Self> {
        Arc::new(Self { servers, free: Default::default(), creation: Mutex::default() })
    }

    /// Returns a store location for one test.
    pub fn factory(self: &Arc<Self>) -> InDatabase {
        InDatabase { databases: self.clone(), name: OnceCell::new() }
    }

    /// Returns the connection string of a database.
    pub fn uri(&self, name: &str) -> String {
        match self.servers {
            Servers::Set(set, options) => set.uri(name, options),
            Servers::Cluster(cluster) => cluster.uri(name),
        }
    }

    /// Returns the name of a database with an empty store.
    async fn take(&self) -> String {
        if let Some((since, name)) = self.reuse() {
            sleep_until(since + REST).await;
            self.wipe(&name).await;
            return name;
        }

        static MADE: AtomicUsize = AtomicUsize::new(0);
        let name = format!("store{}", MADE.fetch_add(1, Ordering::Relaxed));
        match self.servers {
            Servers::Set(..) => make(self.uri(&name)).await,
            Servers::Cluster(cluster) => {
                let _guard = self.creation.lock().await;
                spread(cluster, &name).await;
            }
        }

        name
    }

    /// Takes the database that was released first. On a replica set, where creation is fast, only
    /// after [`REST`]; on a cluster always, since presplitting takes seconds.
    fn reuse(&self) -> Option<(Instant, String)> {
        let mut free = self.free.lock().unwrap();
        let (since, _) = free.first()?;
        let is_reusable = matches!(self.servers, Servers::Cluster(_)) || since.elapsed() >= REST;
        is_reusable.then(|| free.remove(0))
    }

    async fn wipe(&self, name: &str) {
        let client = match self.servers {
            Servers::Set(set, _) => set.client().await,
            Servers::Cluster(cluster) => cluster.client().await,
        };
        wipe(&client.database(name)).await;
    }

    fn release(&self, name: String) {
        self.free.lock().unwrap().push((Instant::now(), name));
    }
}

/// Removes all that a store has. Servers may be using it.
pub async fn wipe(database: &Database) {
    let names = database.list_collection_names().await.unwrap();
    for name in names.iter().filter(|name| !KEPT.contains(&name.as_str())) {
        let collection = database.collection::<Document>(name);
        collection.delete_many(doc! {}).write_concern(WriteConcern::majority()).await.unwrap();
    }
}

/// Creates a store without presplitting. The compiler cannot prove that this future may change
/// threads, so it runs on a thread of its own.
pub async fn make(uri: String) {
    let options = InitOptions { spread: false };
    let init = move || runtime().block_on(init(&uri, &options, &|_| ()));
    spawn_blocking(init).await.unwrap().unwrap();
}

/// Creates a store with an equal part of each collection on each shard, except for tenants, which
/// are few. `store init` creates more chunks, and takes longer.
async fn spread(cluster: &Sharded, name: &str) {
    let id = |id: &locality_uuid::LocalityId| {
        Bson::Binary(Binary { subtype: BinarySubtype::Uuid, bytes: id.as_bytes().to_vec() })
    };
    let points = split_points(cluster.shards.len());
    let ids: Vec<_> = points.iter().map(id).collect();
    make(cluster.uri(name)).await;
    for collection in ["users", "requests"] {
        cluster.spread(&format!("{name}.{collection}"), &ids).await;
    }
    // A part of a history, or a notice, has the id of its user and a number.
    for (collection, number) in [("journal", [0; 8].as_slice()), ("notices", &[0; 16])] {
        let first_part = |id: &locality_uuid::LocalityId| {
            let bytes = [id.as_bytes().as_slice(), number].concat();
            Bson::Binary(Binary { subtype: BinarySubtype::Generic, bytes })
        };
        let parts: Vec<_> = points.iter().map(first_part).collect();
        cluster.spread(&format!("{name}.{collection}"), &parts).await;
    }
}

/// A store in a database, which is chosen on first use.
pub struct InDatabase {
    databases: Arc<Databases>,
    name: OnceCell<String>,
}

impl InDatabase {
    /// Returns the connection string of the store.
    pub async fn uri(&self) -> String {
        self.databases.uri(self.name().await)
    }

    /// Returns the name of the database.
    pub async fn name(&self) -> &str {
        self.name.get_or_init(|| self.databases.take()).await
    }

    /// Opens the store.
    pub async fn mongo(&self) -> Result<Mongo, OpenError> {
        Mongo::open(&self.uri().await, Options { timeout: TIMEOUT, ..Options::default() }).await
    }
}

#[async_trait]
impl StoreFactory for InDatabase {
    async fn open(&self) -> Result<Backend, Failure> {
        let store = self.mongo().await?;
        let hints = store.hints();
        Ok(Arc::new(store).backend().layered(|inner| WrongHints::new(inner, hints)))
    }
}

impl Drop for InDatabase {
    fn drop(&mut self) {
        self.name.take().into_iter().for_each(|name| self.databases.release(name));
    }
}
