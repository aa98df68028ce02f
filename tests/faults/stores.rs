//! Databases with an empty store, their servers, and the length of tests.

use std::io::Write;
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

use mongodb::bson::Binary;
use mongodb::bson::{Bson, doc, spec::BinarySubtype};
use polynym_directory::Backend;
use polynym_layers::coalesce::{self, Coalesced};
use polynym_mongodb::{Mongo, Options};
use tokio::sync::{Mutex, MutexGuard, OnceCell};

use crate::caller::key;
use crate::servers::wrong_hints::WrongHints;
use crate::servers::{Hashed, Layout, Process, ReplicaSet, Sharded, make};
use crate::users;

/// The time for which servers keep the transaction of a lost client; a minute by default.
pub const LIFETIME: Duration = Duration::from_secs(2);
/// The time limit on an overloaded machine.
pub const TIMEOUT: Duration = Duration::from_secs(60);
/// The environment variable with the seconds of each fault in the long tests.
const SECONDS: &str = "POLYNYM_FAULT_SECONDS";

/// The collections that tests split. MongoDB distributes identities itself.
const CUT: [&str; 2] = ["users", "requests"];

/// The cluster of these tests, for one test at a time, so that a test may count operations on it.
pub async fn cluster() -> (&'static Sharded, MutexGuard<'static, ()>) {
    static CLUSTER: OnceCell<Sharded> = OnceCell::const_new();
    static TURN: Mutex<()> = Mutex::const_new(());
    let turn = TURN.lock().await;
    let cluster = CLUSTER.get_or_init(|| Sharded::start(3, Layout::default())).await;
    limit_transactions(cluster.shards.iter().map(|shard| &shard.members[0])).await;
    (cluster, turn)
}

/// The length of a long test.
pub fn long() -> Duration {
    Duration::from_secs(std::env::var(SECONDS).map_or(60, |seconds| seconds.parse().unwrap()))
}

/// A unique name of a database.
pub fn fresh() -> String {
    static COUNT: AtomicUsize = AtomicUsize::new(0);
    format!("faults{}", COUNT.fetch_add(1, Relaxed))
}

/// Unused sets of one member.
static IDLE: std::sync::Mutex<Vec<ReplicaSet>> = std::sync::Mutex::new(Vec::new());

/// A set of one member for one test, which may count operations on it.
pub struct OwnSet(Option<ReplicaSet>);

impl OwnSet {
    /// A set whose server ends abandoned transactions within [`LIFETIME`].
    pub async fn new() -> Self {
        Self::with_lifetime(LIFETIME).await
    }

    /// A set whose server keeps abandoned transactions for [`TIMEOUT`], so that tests find them.
    pub async fn with_lasting_transactions() -> Self {
        Self::with_lifetime(4 * TIMEOUT).await
    }

    async fn with_lifetime(lifetime: Duration) -> Self {
        let idle = IDLE.lock().unwrap().pop();
        let set = match idle {
            Some(set) => set,
            None => ReplicaSet::start(Layout::default()).await,
        };
        set_lifetime(&set.members, lifetime).await;
        Self(Some(set))
    }
}

impl Deref for OwnSet {
    type Target = ReplicaSet;

    fn deref(&self) -> &ReplicaSet {
        self.0.as_ref().unwrap()
    }
}

impl Drop for OwnSet {
    fn drop(&mut self) {
        // After a failure, operations may still be in progress.
        if !std::thread::panicking() {
            IDLE.lock().unwrap().extend(self.0.take());
        }
    }
}

/// Makes servers end abandoned transactions within [`LIFETIME`].
pub async fn limit_transactions(servers: impl IntoIterator<Item = &Process>) {
    set_lifetime(servers, LIFETIME).await;
}

/// Sets the time for which servers keep the transaction of a lost client.
pub async fn set_lifetime(servers: impl IntoIterator<Item = &Process>, lifetime: Duration) {
    for server in servers {
        let seconds = lifetime.as_secs() as i32;
        server
            .admin(doc! { "setParameter": 1, "transactionLifetimeLimitSeconds": seconds })
            .await
            .unwrap();
    }
}

/// Creates an empty store on a replica set.
pub async fn prepare(set: &ReplicaSet, name: &str) {
    make(set.uri(name, "")).await;
}

/// Creates an empty store on a cluster, with chunks of all collections on all shards.
pub async fn prepare_sharded(cluster: &Sharded, name: &str) {
    make(cluster.uri(name)).await;
    for collection in CUT {
        cluster.spread(&format!("{name}.{collection}"), &points(collection)).await;
    }
}

/// Makes a shard wait before it applies the next commit that a coordinator sends to it. Returns the
/// number of commands that it has held up when it does.
pub async fn hold_next_commit(shard: &Process, time: Duration) -> i64 {
    let data = doc! {
        "failCommands": ["commitTransaction"],
        "blockConnection": true,
        "blockTimeMS": time.as_millis() as i64,
        "failInternalCommands": true,
    };
    let point = doc! { "configureFailPoint": "failCommand", "mode": { "times": 1 }, "data": data };
    let count = shard.admin(point).await.unwrap().get("count").cloned().unwrap();
    count.as_i64().or_else(|| count.as_i32().map(i64::from)).unwrap() + 1
}

/// The boundaries of a collection.
pub fn points(collection: &str) -> [Bson; 2] {
    let uuid = |bytes: [u8; 16]| {
        Bson::Binary(Binary { subtype: BinarySubtype::Uuid, bytes: bytes.to_vec() })
    };
    match collection {
        "users" => [2, 5].map(|n| uuid(*users::id(n).as_bytes())),
        _ => [0x55, 0xaa].map(|byte| uuid([byte; 16])),
    }
}

/// The number of the shard that has a user, where [`points`] cut the users.
pub fn shard_of_user(user: usize) -> usize {
    [2, 5].iter().filter(|point| user >= **point).count()
}

/// The numbers of the shards that have the claims of the first names.
pub async fn shards_of_names(cluster: &Sharded, store: &str, names: usize) -> Vec<usize> {
    shards_of_keys(cluster, &format!("{store}.identities"), names).await
}

/// The numbers of the shards that have the documents of a collection with the keys of the first
/// names.
pub async fn shards_of_keys(cluster: &Sharded, space: &str, names: usize) -> Vec<usize> {
    let hashes = Hashed::read(cluster, space).await;
    let shard = |name| {
        let owner = hashes.owner(key(name).as_str());
        cluster.shards.iter().position(|shard| shard.name == owner).unwrap()
    };
    (0..names).map(shard).collect()
}

/// Opens the store at `uri`.
pub async fn open(uri: &str, options: Options, coalesce: bool) -> Backend {
    let store = Arc::new(Mongo::open(uri, options).await.unwrap_or_else(|error| panic!("{error}")));
    let misled = store.backend().layered(|inner| WrongHints::new(inner, store.hints()));
    if !coalesce {
        return misled;
    }
    let options = coalesce::Options::default();
    misled.layered(|inner| {
        Coalesced::new(inner, options).with_short_timeout(store.with_short_timeout())
    })
}

/// Prints a line, even if the test passes.
pub fn print_line(text: &str) {
    std::io::stderr().write_all(format!("{text}\n").as_bytes()).unwrap();
}
