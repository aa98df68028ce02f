//! A sharded cluster: a config server and shards, each a replica set of one member, behind a mongos
//! if one is installed, and otherwise behind a [`Front`] in this process.

use std::net::SocketAddr;
use std::panic::resume_unwind;
use std::path::Path;
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use mongodb::Client;
use mongodb::bson::{Bson, Document, doc};
use mongodb::error::ErrorKind;
use tokio::sync::{Mutex, OnceCell};
use tokio::task::spawn_blocking;
use tokio::time::sleep;

use super::front::{Front, Server};
use super::hashed::hash_of;
use super::process::{Process, client};
use super::replica_set::{Layout, ReplicaSet};
use super::{binary, in_background};

/// The time limit for a move that conflicts with others, and the interval of its attempts.
const TIMEOUT: Duration = Duration::from_secs(60);
const RETRY_INTERVAL: Duration = Duration::from_millis(50);

/// A sharded cluster. Its servers end on drop.
pub struct Sharded {
    pub config: ReplicaSet,
    /// Named `shard0`, `shard1` and so on, also in the cluster.
    pub shards: Vec<ReplicaSet>,
    router: Router,
    client: OnceCell<Client>,
    /// Serialises moves of chunks.
    moves: Mutex<()>,
}

enum Router {
    Mongos(Process),
    Front(Front),
}

impl Sharded {
    /// Starts a cluster that is not shared. Its servers follow the layout, except for the number of
    /// members.
    pub async fn start(shards: usize, layout: Layout) -> Self {
        let layout = Layout { members: 1, ..layout };
        in_background(async move {
            Self::start_with(mongod().await, binary::mongos().as_deref(), shards, layout).await
        })
        .await
    }

    /// Starts a replica set that can become the first shard of a cluster: see [`Sharded::around`].
    pub async fn first_shard(layout: Layout) -> ReplicaSet {
        in_background(async move {
            let set = ReplicaSet::start_as("shard0", layout, mongod().await, &["--shardsvr"]).await;
            // A member of a cluster begins with the features of the version before.
            let features = doc! { "setFeatureCompatibilityVersion": "6.0" };
            set.members[0].admin(features).await.unwrap();
            set
        })
        .await
    }

    /// Makes a cluster of a replica set in use and one more shard.
    pub async fn around(first: ReplicaSet) -> Self {
        in_background(async move {
            let (mongod, layout) = (mongod().await, Layout::default());
            let config = ReplicaSet::start_as("config", layout, mongod, &["--configsvr"]);
            let other = ReplicaSet::start_as("shard1", layout, mongod, &["--shardsvr"]);
            let (config, other) = tokio::join!(config, other);
            Self::of(binary::mongos().as_deref(), config, vec![first, other]).await
        })
        .await
    }

    async fn start_with(
        mongod: &Path,
        mongos: Option<&Path>,
        shards: usize,
        layout: Layout,
    ) -> Self {
        let names: Vec<_> = (0..shards).map(|n| format!("shard{n}")).collect();
        let config = ReplicaSet::start_as(
            "config",
            Layout { cache: 0.25, ..layout },
            mongod,
            &["--configsvr"],
        );

        let shards = join_all(
            names.iter().map(|name| ReplicaSet::start_as(name, layout, mongod, &["--shardsvr"])),
        );
        let (config, shards) = tokio::join!(config, shards);
        Self::of(mongos, config, shards).await
    }

    async fn of(mongos: Option<&Path>, config: ReplicaSet, shards: Vec<ReplicaSet>) -> Self {
        let router = match mongos {
            Some(mongos) => Router::Mongos(start_mongos(mongos, &config, &shards).await),
            None => Router::Front(start_front(&config, &shards).await),
        };
        let cluster =
            Self { config, shards, router, client: OnceCell::new(), moves: Mutex::new(()) };
        // Only tests move chunks.
        cluster.admin(doc! { "balancerStop": 1 }).await.unwrap();
        cluster
    }

    /// Returns the address of the router.
    pub fn address(&self) -> SocketAddr {
        match &self.router {
            Router::Mongos(mongos) => mongos.address(),
            Router::Front(front) => front.address(),
        }
    }

    /// Starts one more router, which runs until this process ends, and returns its address.
    pub async fn another_router(&self) -> SocketAddr {
        match &self.router {
            Router::Mongos(_) => {
                let config = ["--configdb".to_owned(), host(&self.config)];
                let mongos = binary::mongos().unwrap_or_else(|| panic!("mongos is missing"));
                let started =
                    in_background(async move { Process::start(&mongos, &config).await }).await;
                Box::leak(Box::new(started)).address()
            }
            Router::Front(_) => {
                let servers = servers(&self.config, &self.shards);
                in_background(async move { Front::start(servers).await }).await.address()
            }
        }
    }

    /// Returns the connection string of a database.
    pub fn uri(&self, database: &str) -> String {
        self.uri_at(self.address(), database)
    }

    /// Returns the connection string of a database by way of another address, such as a proxy.
    pub fn uri_at(&self, address: SocketAddr, database: &str) -> String {
        let options =
            if matches!(self.router, Router::Front(_)) { "?retryWrites=false" } else { "" };
        format!("mongodb://{address}/{database}{options}")
    }

    /// Returns a client of the cluster. It lives on the shared runtime.
    pub async fn client(&self) -> &Client {
        let uri = self.uri("admin");
        self.client.get_or_init(|| in_background(async move { client(&uri).await })).await
    }

    /// Runs a command of the `admin` database.
    pub async fn admin(&self, command: Document) -> mongodb::error::Result<Document> {
        self.client().await.database("admin").run_command(command).await
    }

    /// Splits a collection that is sharded on `_id` at these keys, and distributes the chunks over
    /// the shards in turn.
    pub async fn spread(&self, space: &str, keys: &[Bson]) {
        for key in keys {
            self.admin(doc! { "split": space, "middle": { "_id": key } }).await.unwrap();
        }
        let starts = [Bson::MinKey].into_iter().chain(keys.iter().cloned());
        for (start, shard) in starts.zip(self.shards.iter().cycle()) {
            self.move_chunk(space, start, &shard.name).await.unwrap();
        }
    }

    /// Returns the name of the shard that owns a key.
    pub async fn owner(&self, space: &str, key: Bson) -> String {
        let config = self.client().await.database("config");
        let found = config
            .collection::<Document>("collections")
            .find_one(doc! { "_id": space })
            .await
            .unwrap();
        let entry = found.unwrap_or_else(|| panic!("{space} is not sharded"));

        let is_hashed = *entry.get_document("key").unwrap() == doc! { "_id": "hashed" };
        let point = doc! { "_id": if is_hashed { hash_of(key).into() } else { key } };
        let uuid = entry.get("uuid").cloned();
        let owns = doc! { "uuid": uuid, "min": { "$lte": &point }, "max": { "$gt": &point } };
        let chunk = config.collection::<Document>("chunks").find_one(owns).await.unwrap();
        chunk.expect("every key has a chunk").get_str("shard").unwrap().to_owned()
    }

    /// Moves the chunk that owns a key to a shard.
    pub async fn move_chunk(
        &self,
        space: &str,
        key: Bson,
        shard: &str,
    ) -> mongodb::error::Result<()> {
        self.carry_out_move(doc! { "moveChunk": space, "find": { "_id": key }, "to": shard }).await
    }

    /// Runs a `moveChunk`, and retries while it conflicts with another move.
    pub async fn carry_out_move(&self, command: Document) -> mongodb::error::Result<()> {
        let _guard = self.moves.lock().await;
        let since = Instant::now();
        loop {
            match self.admin(command.clone()).await {
                Err(error) if is_conflict(&error) && since.elapsed() < TIMEOUT => {
                    sleep(RETRY_INTERVAL).await
                }
                outcome => return outcome.map(drop),
            }
        }
    }
}

/// ConflictingOperationInProgress: a shard takes part in one move at a time, and the program under
/// test moves chunks, too.
fn is_conflict(error: &mongodb::error::Error) -> bool {
    matches!(&*error.kind, ErrorKind::Command(error) if error.code == 117)
}

/// Returns the path of the `mongod` for the members of a cluster.
async fn mongod() -> &'static Path {
    let find = if binary::mongos().is_some() { binary::mongod } else { binary::mongod_for_front };
    spawn_blocking(find).await.unwrap_or_else(|error| resume_unwind(error.into_panic()))
}

async fn start_front(config: &ReplicaSet, shards: &[ReplicaSet]) -> Front {
    for shard in shards {
        let wait = doc! { "w": "majority", "wtimeout": 30_000 };
        let add =
            doc! { "_configsvrAddShard": host(shard), "name": &shard.name, "writeConcern": wait };
        config.members[0].admin(add).await.unwrap();
    }
    Front::start(servers(config, shards)).await
}

fn servers(config: &ReplicaSet, shards: &[ReplicaSet]) -> Vec<Server> {
    let server = |set: &ReplicaSet| Server { name: set.name.clone(), address: set.host(0) };
    [config].into_iter().chain(shards).map(server).collect()
}

async fn start_mongos(binary: &Path, config: &ReplicaSet, shards: &[ReplicaSet]) -> Process {
    let mongos = Process::start(binary, &["--configdb".to_owned(), host(config)]).await;
    for shard in shards {
        mongos.admin(doc! { "addShard": host(shard), "name": &shard.name }).await.unwrap();
    }
    mongos
}

/// Returns the name of a set and its address, as the cluster stores it.
fn host(set: &ReplicaSet) -> String {
    format!("{}/{}", set.name, set.host(0))
}
