//! Real MongoDB servers for tests and benchmarks: replica sets and a sharded cluster, each started
//! once per test binary and ended with its process, even if that is killed; and a proxy that
//! degrades the network.

mod binary;
mod databases;
mod front;
mod hashed;
mod process;
mod proxy;
mod replica_set;
mod sharded;
pub mod wrong_hints;

use std::panic::resume_unwind;
use std::sync::OnceLock;

use tokio::runtime::{Builder, Runtime};
use tokio::sync::OnceCell;

pub use databases::{Databases, InDatabase, make, wipe};
pub use hashed::{Hashed, hash_of};
pub use process::{Process, Signal};
pub use proxy::{Line, NetworkFaults, Origin, Proxy, Side, Trap};
pub use replica_set::{Layout, ReplicaSet};
pub use sharded::Sharded;

/// Returns a replica set of one member, shared by the tests of this binary.
pub async fn one_member() -> &'static ReplicaSet {
    static SHARED: OnceCell<ReplicaSet> = OnceCell::const_new();
    SHARED.get_or_init(|| ReplicaSet::start(Layout::default())).await
}

/// Returns a replica set of three members, shared by the tests of this binary. A test that kills or
/// freezes a member starts a set of its own: see [`ReplicaSet::start`].
pub async fn three_members() -> &'static ReplicaSet {
    static SHARED: OnceCell<ReplicaSet> = OnceCell::const_new();
    SHARED.get_or_init(|| ReplicaSet::start(Layout { members: 3, ..Layout::default() })).await
}

/// Returns a cluster of three shards, shared by the tests of this binary.
pub async fn three_shards() -> &'static Sharded {
    static SHARED: OnceCell<Sharded> = OnceCell::const_new();
    SHARED.get_or_init(|| Sharded::start(3, Layout::default())).await
}

/// Starts a server outside any replica set.
pub async fn stand_alone() -> Process {
    in_background(async {
        let binary = tokio::task::spawn_blocking(binary::mongod).await.unwrap();
        Process::start(binary, &["--dbpath".to_owned(), ".".to_owned()]).await
    })
    .await
}

/// The runtime of shared servers: the runtime of a test ends with the test.
fn runtime() -> &'static Runtime {
    static RUNTIME: OnceLock<Runtime> = OnceLock::new();
    RUNTIME
        .get_or_init(|| Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap())
}

/// Runs a future on the shared runtime, so that its tasks outlive the test that starts them.
pub async fn in_background<T: Send + 'static>(work: impl Future<Output = T> + Send + 'static) -> T {
    runtime().spawn(work).await.unwrap_or_else(|error| resume_unwind(error.into_panic()))
}
