//! Databases with an empty store, the servers that they are on, and how long tests run.

use std::io::Write;
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

use mongodb::bson::Binary;
use mongodb::bson::{Bson, doc, spec::BinarySubtype};
use polynym::directory::Backend;
use polynym::store::coalesce::{self, Coalesced};
use polynym::store::mongo::{Mongo, Options};
use tokio::sync::{Mutex, MutexGuard, OnceCell};

use crate::caller::key;
use crate::servers::misled::Misled;
use crate::servers::{Hashed, Layout, Process, ReplicaSet, Sharded, make};
use crate::users;

/// For how long servers keep a transaction whose client is gone. MongoDB's own choice is a minute.
pub const LIFETIME: Duration = Duration::from_secs(2);
/// The longest that anything may take on a machine with too much to do.
pub const PATIENCE: Duration = Duration::from_secs(60);
/// The variable that says for how many seconds each fault is run in the long tests.
const SECONDS: &str = "POLYNYM_FAULT_SECONDS";

/// The collections of a store that are cut by hand. MongoDB itself spreads identities.
const CUT: [&str; 2] = ["users", "requests"];

/// The cluster of these tests, for one test at a time: what is counted on a server is then that
/// test's.
pub async fn cluster() -> (&'static Sharded, MutexGuard<'static, ()>) {
    static CLUSTER: OnceCell<Sharded> = OnceCell::const_new();
    static TURN: Mutex<()> = Mutex::const_new(());
    let turn = TURN.lock().await;
    let cluster = CLUSTER.get_or_init(|| Sharded::start(3, Layout::default())).await;
    limit_transactions(cluster.shards.iter().map(|shard| &shard.members[0])).await;
    (cluster, turn)
}

/// For how long a long test runs.
pub fn long() -> Duration {
    Duration::from_secs(std::env::var(SECONDS).map_or(60, |seconds| seconds.parse().unwrap()))
}

/// A name that no other database has.
pub fn fresh() -> String {
    static COUNT: AtomicUsize = AtomicUsize::new(0);
    format!("faults{}", COUNT.fetch_add(1, Relaxed))
}

/// The sets of one member that no test has at the moment.
static IDLE: std::sync::Mutex<Vec<ReplicaSet>> = std::sync::Mutex::new(Vec::new());

/// A set of one member that a test has to itself: what is counted on its server is then that
/// test's.
pub struct OwnSet(Option<ReplicaSet>);

impl OwnSet {
    /// A set whose server ends what clients have left behind within [`LIFETIME`].
    pub async fn new() -> Self {
        Self::with_lifetime(LIFETIME).await
    }

    /// A set whose server ends nothing within [`PATIENCE`]: what is left behind is found.
    pub async fn that_ends_nothing() -> Self {
        Self::with_lifetime(4 * PATIENCE).await
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
        // After a failure, something may still be under way there.
        if !std::thread::panicking() {
            IDLE.lock().unwrap().extend(self.0.take());
        }
    }
}

/// Has servers end transactions whose clients are gone within [`LIFETIME`].
pub async fn limit_transactions(servers: impl IntoIterator<Item = &Process>) {
    set_lifetime(servers, LIFETIME).await;
}

async fn set_lifetime(servers: impl IntoIterator<Item = &Process>, lifetime: Duration) {
    for server in servers {
        let seconds = lifetime.as_secs() as i32;
        server
            .admin(doc! { "setParameter": 1, "transactionLifetimeLimitSeconds": seconds })
            .await
            .unwrap();
    }
}

/// Makes an empty store on a replica set.
pub async fn prepare(set: &ReplicaSet, name: &str) {
    make(set.uri(name, "")).await;
}

/// Makes an empty store on a cluster, with chunks of all collections on all shards.
pub async fn prepare_sharded(cluster: &Sharded, name: &str) {
    make(cluster.uri(name)).await;
    for collection in CUT {
        cluster.spread(&format!("{name}.{collection}"), &points(collection)).await;
    }
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
    let hashes = Hashed::read(cluster, &format!("{store}.identities")).await;
    let shard = |name| {
        let owner = hashes.owner(key(name).as_str());
        cluster.shards.iter().position(|shard| shard.name == owner).unwrap()
    };
    (0..names).map(shard).collect()
}

/// Opens the store at `uri`.
pub async fn open(uri: &str, options: Options, coalesce: bool) -> Backend {
    let store = Arc::new(Mongo::open(uri, options).await.unwrap_or_else(|error| panic!("{error}")));
    let misled = store.backend().layered(|inner| Misled::new(inner, store.hints().clone()));
    if !coalesce {
        return misled;
    }
    let options = coalesce::Options::default();
    misled.layered(|inner| Coalesced::new(inner, options).with_short_timeout(store.with_short_timeout()))
}

/// Prints a line, even if the test passes.
pub fn print_line(text: &str) {
    std::io::stderr().write_all(format!("{text}\n").as_bytes()).unwrap();
}
