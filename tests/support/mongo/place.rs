//! Where a store on MongoDB can be for one test: a database of the servers that all tests share.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use conformance::{Failure, StoreFactory};
use locality_uuid::split_points;
use mongodb::bson::spec::BinarySubtype;
use mongodb::bson::{Binary, Bson, Document, doc};
use mongodb::options::WriteConcern;
use polynym::directory::Store;
use polynym::store::mongo::{InitOptions, Mongo, OpenError, Options, init};
use tokio::sync::{Mutex, OnceCell};
use tokio::task::spawn_blocking;
use tokio::time::{Instant, sleep_until};

use super::replica_set::ReplicaSet;
use super::runtime;
use super::sharded::Sharded;

/// The collections that are sharded on a cluster.
const COLLECTIONS: [&str; 4] = ["users", "identities", "requests", "tenants"];

/// How long a database rests before another test gets it: a mutation whose caller went away may
/// still be under way.
const REST: Duration = Duration::from_secs(1);

/// How long an operation may take: many things at once on a busy machine are no reason to fail.
const PATIENCE: Duration = Duration::from_secs(60);

/// The databases that tests get: those that others are done with, or new ones.
pub struct Databases {
    servers: Servers,
    /// Those that nobody uses, and since when, in that order.
    free: std::sync::Mutex<Vec<(Instant, String)>>,
    /// Databases of a cluster are made one after the other.
    making: Mutex<()>,
}

enum Servers {
    Set(&'static ReplicaSet, &'static str),
    Cluster(&'static Sharded),
}

impl Databases {
    /// Databases of a replica set, reached with `options` such as `retryWrites=false`.
    pub fn of_set(set: &'static ReplicaSet, options: &'static str) -> Arc<Self> {
        Self::new(Servers::Set(set, options))
    }

    /// Databases of a cluster, where all shards have a part of every collection.
    pub fn of_cluster(cluster: &'static Sharded) -> Arc<Self> {
        Self::new(Servers::Cluster(cluster))
    }

    fn new(servers: Servers) -> Arc<Self> {
        Arc::new(Self { servers, free: Default::default(), making: Mutex::default() })
    }

    /// A place for one test.
    pub fn place(self: &Arc<Self>) -> InDatabase {
        InDatabase { databases: self.clone(), name: OnceCell::new() }
    }

    /// How to reach a database.
    pub fn uri(&self, name: &str) -> String {
        match self.servers {
            Servers::Set(set, options) => set.uri(name, options),
            Servers::Cluster(cluster) => cluster.uri(name),
        }
    }

    /// A database with an empty store.
    async fn take(&self) -> String {
        if let Some((since, name)) = self.unused() {
            sleep_until(since + REST).await;
            self.wipe(&name).await;
            return name;
        }
        static MADE: AtomicUsize = AtomicUsize::new(0);
        let name = format!("store{}", MADE.fetch_add(1, Ordering::Relaxed));
        match self.servers {
            Servers::Set(..) => make(self.uri(&name)).await,
            Servers::Cluster(cluster) => {
                let _alone = self.making.lock().await;
                spread(cluster, &name).await;
            }
        }
        name
    }

    /// The database that nobody has used for longest. On a replica set, where a new one is made in
    /// a moment, it has rested; on a cluster it takes seconds to spread one over the shards.
    fn unused(&self) -> Option<(Instant, String)> {
        let mut free = self.free.lock().unwrap();
        let (since, _) = free.first()?;
        let will_do = matches!(self.servers, Servers::Cluster(_)) || since.elapsed() >= REST;
        will_do.then(|| free.remove(0))
    }

    async fn wipe(&self, name: &str) {
        let client = match self.servers {
            Servers::Set(set, _) => set.client().await,
            Servers::Cluster(cluster) => cluster.client().await,
        };
        for collection in COLLECTIONS {
            let collection = client.database(name).collection::<Document>(collection);
            collection.delete_many(doc! {}).write_concern(WriteConcern::majority()).await.unwrap();
        }
    }

    fn give_back(&self, name: String) {
        self.free.lock().unwrap().push((Instant::now(), name));
    }
}

/// Makes a store that is not spread. The compiler cannot tell that this may change threads, so it
/// has one of its own.
pub async fn make(uri: String) {
    let options = InitOptions { spread: false };
    let init = move || runtime().block_on(init(&uri, &options, &|_| ()));
    spawn_blocking(init).await.unwrap().unwrap();
}

/// Makes a store with a third of each collection on each shard, but for tenants, which are few.
/// What `store init` makes has more chunks, and takes longer.
async fn spread(cluster: &Sharded, name: &str) {
    let id = |id: &locality_uuid::LocalityId| {
        Bson::Binary(Binary { subtype: BinarySubtype::Uuid, bytes: id.as_bytes().to_vec() })
    };
    let ids: Vec<_> = split_points(3).iter().map(id).collect();
    make(cluster.uri(name)).await;
    for collection in ["users", "requests"] {
        cluster.spread(&format!("{name}.{collection}"), &ids).await;
    }
}

/// A place in a database, which is chosen when it is opened first.
pub struct InDatabase {
    databases: Arc<Databases>,
    name: OnceCell<String>,
}

impl InDatabase {
    /// How to reach the store of this place.
    pub async fn uri(&self) -> String {
        self.databases.uri(self.name().await)
    }

    /// The name of the database.
    pub async fn name(&self) -> &str {
        self.name.get_or_init(|| self.databases.take()).await
    }

    /// Opens the store.
    pub async fn mongo(&self) -> Result<Mongo, OpenError> {
        Mongo::open(&self.uri().await, Options { timeout: PATIENCE, ..Options::default() }).await
    }
}

#[async_trait]
impl StoreFactory for InDatabase {
    async fn open(&self) -> Result<Arc<dyn Store>, Failure> {
        Ok(Arc::new(self.mongo().await?))
    }
}

impl Drop for InDatabase {
    fn drop(&mut self) {
        self.name.take().into_iter().for_each(|name| self.databases.give_back(name));
    }
}
