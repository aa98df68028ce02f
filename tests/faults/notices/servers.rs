//! Servers that are killed and restarted, on a set of three or on the embedded store.

use std::sync::Mutex;
use std::time::Duration;

use tempfile::TempDir;
use tokio::task::spawn_blocking;
use tokio::time::sleep;
use tonic::transport::Channel;

use crate::calls::Client;
use crate::server::Server;
use crate::servers::{Layout, ReplicaSet, Signal};
use crate::stores::{fresh, limit_transactions, prepare};

/// A fault of a server or of the primary.
#[derive(Clone, Copy, Debug)]
pub enum Disruption {
    /// The server with this number is killed.
    Server(usize),
    /// The primary is killed.
    Primary,
    /// The primary steps down.
    StepDown,
}

/// Servers of one store.
pub struct Servers {
    /// The connection string.
    pub store: String,
    /// The name of the database; empty without one.
    pub database: String,
    pub set: Option<ReplicaSet>,
    pub folder: Option<TempDir>,
    running: Mutex<Vec<Option<Server>>>,
    clients: Mutex<Vec<Client>>,
}

impl Servers {
    /// Servers on a set of this number of members.
    pub async fn on_a_set(members: usize, count: usize) -> Self {
        let set = ReplicaSet::start(Layout { members, ..Layout::default() }).await;
        limit_transactions(&set.members).await;
        let database = fresh();
        prepare(&set, &database).await;
        let store = set.uri(&database, "");
        Self::start(Self { set: Some(set), database, ..Self::of(store) }, count).await
    }

    /// A server on a folder of its own.
    pub async fn embedded() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let store = format!("embedded:{}", folder.path().join("store").display());
        Self::start(Self { folder: Some(folder), ..Self::of(store) }, 1).await
    }

    fn of(store: String) -> Self {
        let (database, running, clients) = Default::default();
        Self { store, database, set: None, folder: None, running, clients }
    }

    async fn start(self, count: usize) -> Self {
        for n in 0..count {
            self.running.lock().unwrap().push(None);
            let client = self.begin(n).await;
            self.clients.lock().unwrap().push(client);
        }
        self
    }

    /// Starts the server with this number.
    async fn begin(&self, n: usize) -> Client {
        let store = self.store.clone();
        let server = spawn_blocking(move || Server::start(&["--store", &store])).await.unwrap();
        let channel = Channel::from_shared(server.url.clone()).unwrap().connect_lazy();
        self.running.lock().unwrap()[n] = Some(server);
        Client::over(channel)
    }

    /// A client of one of the servers.
    pub fn client(&self, n: usize) -> Client {
        let clients = self.clients.lock().unwrap();
        clients[n % clients.len()].clone()
    }

    /// Causes a disruption and waits for recovery.
    pub async fn disrupt(&self, disruption: Disruption) {
        match disruption {
            Disruption::Server(n) => {
                let killed = self.running.lock().unwrap()[n].take().unwrap();
                killed.signal("KILL");
                spawn_blocking(move || killed.wait()).await.unwrap();
                let client = self.begin(n).await;
                self.clients.lock().unwrap()[n] = client;
            }
            Disruption::Primary => {
                let set = self.set.as_ref().unwrap();
                let primary = set.primary().await;
                primary.signal(Signal::Kill).await;
                set.primary().await;
                sleep(Duration::from_secs(1)).await;
                primary.restart().await;
                limit_transactions([primary]).await;
                set.whole().await;
            }
            Disruption::StepDown => {
                let set = self.set.as_ref().unwrap();
                set.step_down().await;
                set.whole().await;
            }
        }
    }

    /// Stops all servers.
    pub async fn end(&self) {
        let servers: Vec<_> =
            self.running.lock().unwrap().iter_mut().filter_map(Option::take).collect();
        for server in servers {
            server.signal("TERM");
            assert!(spawn_blocking(move || server.wait()).await.unwrap().success());
        }
    }
}
