//! Replica sets: of one member, or of several that can be killed, frozen, and asked to step down.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use mongodb::Client;
use mongodb::bson::{Document, doc};
use tokio::sync::OnceCell;
use tokio::task::spawn_blocking;
use tokio::time::{sleep, timeout};

use super::process::{Process, client};
use super::proxy::Proxy;
use super::{binary, in_background};

/// The time limit for an election.
const ELECTION_TIMEOUT: Duration = Duration::from_secs(120);

/// The configuration of a replica set.
#[derive(Clone, Copy, Debug)]
pub struct Layout {
    /// The number of members.
    pub members: usize,
    /// Puts a [`Proxy`] before each member, for clients and for the other members.
    pub proxied: bool,
    /// The cache of each member, in GiB.
    pub cache: f64,
}

impl Default for Layout {
    fn default() -> Self {
        Self { members: 1, proxied: false, cache: 0.25 }
    }
}

/// A replica set. Its servers end on drop.
pub struct ReplicaSet {
    pub name: String,
    pub members: Vec<Process>,
    /// One for each member, if the layout is proxied.
    pub proxies: Vec<Proxy>,
    client: OnceCell<Client>,
}

impl ReplicaSet {
    /// Starts a set that is not shared.
    pub async fn start(layout: Layout) -> Self {
        let binary = spawn_blocking(binary::mongod)
            .await
            .unwrap_or_else(|e| std::panic::resume_unwind(e.into_panic()));
        Self::start_as("rs0", layout, binary, &[]).await
    }

    /// Starts a set with this name, whose members run with the options `roles`.
    pub(super) async fn start_as(
        name: &str,
        layout: Layout,
        binary: &std::path::Path,
        roles: &[&str],
    ) -> Self {
        let cache = layout.cache.to_string();
        let fixed = ["--replSet", name, "--dbpath", ".", "--wiredTigerCacheSizeGB", &cache];
        let parameters = [
            "enableTestCommands=1",
            "diagnosticDataCollectionEnabled=false",
            "orphanCleanupDelaySecs=1",
            "ttlMonitorSleepSecs=5",
            // A change stream over several shards waits for those without writes.
            "periodicNoopIntervalSecs=1",
        ];

        let settings = parameters.iter().flat_map(|parameter| ["--setParameter", parameter]);
        let arguments: Vec<_> = fixed
            .into_iter()
            .chain(settings)
            .chain(roles.iter().copied())
            .map(str::to_owned)
            .collect();
        let members =
            join_all((0..layout.members).map(|_| Process::start(binary, &arguments))).await;
        let mut set =
            Self { name: name.to_owned(), members, proxies: Vec::new(), client: OnceCell::new() };
        if layout.proxied {
            let proxies = set.members.iter().map(|member| Proxy::start(member.address()));
            set.proxies = join_all(proxies).await;
        }

        set.initiate(roles.contains(&"--configsvr")).await;
        set
    }

    async fn initiate(&self, is_config: bool) {
        let host = |n: usize| doc! { "_id": n as i32, "host": self.host(n).to_string() };
        let members: Vec<_> = (0..self.members.len()).map(host).collect();
        let settings = doc! {
            "electionTimeoutMillis": 1_000,
            "heartbeatIntervalMillis": 300,
            "heartbeatTimeoutSecs": 1,
        };

        let mut config = doc! { "_id": &self.name, "members": members, "settings": settings };
        if is_config {
            config.insert("configsvr", true);
        }

        // On a busy machine, members may miss the time limit of the initiation.
        for left in (0..5).rev() {
            match self.members[0].admin(doc! { "replSetInitiate": &config }).await {
                Ok(_) => break,
                Err(error) => assert!(left > 0, "{error}"),
            }
        }

        self.whole().await;
    }

    /// Returns the address at which clients reach a member.
    pub fn host(&self, member: usize) -> SocketAddr {
        self.proxies.get(member).map_or_else(|| self.members[member].address(), Proxy::address)
    }

    /// Returns the connection string of a database, with `options` such as `retryWrites=false`, or
    /// an empty text.
    pub fn uri(&self, database: &str, options: &str) -> String {
        let hosts: Vec<_> = (0..self.members.len()).map(|n| self.host(n).to_string()).collect();
        let end = if options.is_empty() { String::new() } else { format!("&{options}") };
        format!("mongodb://{}/{database}?replicaSet={}{end}", hosts.join(","), self.name)
    }

    /// Returns a client of this set. It lives on the shared runtime.
    pub async fn client(&self) -> &Client {
        let uri = self.uri("admin", "");
        self.client.get_or_init(|| in_background(async move { client(&uri).await })).await
    }

    /// Waits for a primary and returns it. A frozen member may still consider itself the primary:
    /// the latest election wins.
    pub async fn primary(&self) -> &Process {
        let primary = |hellos: &[Document]| {
            let primaries = (0..hellos.len()).filter(|n| is(&hellos[*n], "isWritablePrimary"));
            primaries.max_by_key(|n| hellos[*n].get_object_id("electionId").ok())
        };
        &self.members[self.wait("has no primary", primary).await]
    }

    /// Waits until one member is the primary and all others are secondaries.
    pub async fn whole(&self) {
        let is_whole = |hellos: &[Document]| {
            let count = |role| hellos.iter().filter(|hello| is(hello, role)).count();
            (count("isWritablePrimary") == 1 && count("secondary") == hellos.len() - 1)
                .then_some(())
        };
        self.wait("does not come together", is_whole).await;
    }

    /// Polls the hello replies of all members until `find` returns a value. A member without a
    /// reply has an empty document.
    async fn wait<T>(&self, failure: &str, find: impl Fn(&[Document]) -> Option<T>) -> T {
        let since = Instant::now();
        loop {
            if let Some(found) = find(&join_all(self.members.iter().map(hello)).await) {
                return found;
            }
            assert!(since.elapsed() < ELECTION_TIMEOUT, "the set {} {failure}", self.name);
            sleep(Duration::from_millis(20)).await;
        }
    }

    /// Makes the primary step down, and waits for a primary.
    pub async fn step_down(&self) {
        let primary = self.primary().await;
        let step_down = doc! { "replSetStepDown": 10, "secondaryCatchUpPeriodSecs": 5 };
        primary.admin(step_down).await.unwrap();
        self.primary().await;
    }
}

async fn hello(member: &Process) -> Document {
    let answer = timeout(Duration::from_secs(2), member.admin(doc! { "hello": 1 })).await;
    answer.ok().and_then(Result::ok).unwrap_or_default()
}

fn is(hello: &Document, role: &str) -> bool {
    hello.get_bool(role).unwrap_or_default()
}
