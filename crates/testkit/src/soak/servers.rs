//! The servers of a soak, on addresses that they keep.

use std::fs::{self, File};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::Command;
use std::sync::{Arc, Mutex};

use tempfile::TempDir;
use tokio::task::spawn_blocking;

use super::figures::Usage;
use super::plan::Store;
use crate::mongo::{Process, Sharded};
use crate::scrape::free_address;
use crate::server::Server;

/// The page cache of the embedded store: small, so that it is full early.
const CACHE: &str = "16MiB";

pub struct Servers {
    program: PathBuf,
    store: String,
    cluster: Option<Arc<Sharded>>,
    addresses: Vec<SocketAddr>,
    running: Mutex<Vec<Option<Server>>>,
    /// The embedded store, and the logs.
    folder: TempDir,
}

impl Servers {
    /// Creates the store, and starts the servers.
    pub async fn start(program: PathBuf, store: Store) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let (store, cluster, count) = match store {
            Store::Embedded => {
                (format!("embedded:{}", folder.path().join("store").display()), None, 1)
            }
            Store::Cluster(cluster, database) => (cluster.uri(&database), Some(cluster), 2),
        };
        let addresses: Vec<_> = (0..count).map(|_| free_address()).collect();
        let running = Mutex::new((0..count).map(|_| None).collect());
        let servers = Self { program, store, cluster, addresses, running, folder };
        let init = Command::new(&servers.program)
            .args(["store", "init", "--store"])
            .arg(&servers.store)
            .output();
        let init = init.unwrap();
        assert!(init.status.success(), "{}", String::from_utf8_lossy(&init.stderr));
        for n in 0..count {
            servers.begin(n).await;
        }
        servers
    }

    pub fn urls(&self) -> Vec<String> {
        self.addresses.iter().map(|address| format!("http://{address}")).collect()
    }

    pub fn count(&self) -> usize {
        self.addresses.len()
    }

    /// The shards of the store; none on a folder.
    pub fn shards(&self) -> Vec<&Process> {
        let shards = self.cluster.iter().flat_map(|cluster| &cluster.shards);
        shards.map(|shard| &shard.members[0]).collect()
    }

    async fn begin(&self, n: usize) {
        let log = self.folder.path().join(format!("server-{n}.log"));
        let log = File::options().create(true).append(true).open(log).unwrap();
        let mut command = Command::new(&self.program);
        command.env_clear().stderr(log);
        let address = self.addresses[n].to_string();
        let flags = ["serve", "--tenants", "open", "--log", "warn", "--cache", CACHE];
        command.args(flags).args(["--listen", &address, "--store", &self.store]);
        let started =
            spawn_blocking(move || Server::try_start_with(&mut command, &[])).await.unwrap();
        let server =
            started.unwrap_or_else(|| panic!("server {n} does not start:\n{}", self.logs()));
        self.running.lock().unwrap()[n] = Some(server);
    }

    fn logs(&self) -> String {
        let logs = (0..self.count()).map(|n| self.folder.path().join(format!("server-{n}.log")));
        logs.filter_map(|log| fs::read_to_string(log).ok()).collect()
    }

    /// Ends a server by a signal such as `KILL`. One that may end by itself must succeed.
    async fn end(&self, n: usize, signal: &str) {
        let server = self.running.lock().unwrap()[n].take().unwrap();
        server.signal(signal);
        let status = spawn_blocking(move || server.wait()).await.unwrap();
        assert!(status.success() || signal == "KILL", "server {n}: {status}\n{}", self.logs());
    }

    /// Ends a server by a signal, and starts it again.
    pub async fn restart(&self, n: usize, signal: &str) {
        self.end(n, signal).await;
        self.begin(n).await;
    }

    /// The memory, descriptors and threads of each server; none for one that is down.
    pub fn usages(&self) -> Vec<Option<Usage>> {
        let running = self.running.lock().unwrap();
        running.iter().map(|server| Usage::of(server.as_ref()?.id())).collect()
    }

    /// Ends all servers, and returns their store.
    pub async fn stop(&self) -> String {
        for n in 0..self.count() {
            self.end(n, "TERM").await;
        }
        self.store.clone()
    }
}
