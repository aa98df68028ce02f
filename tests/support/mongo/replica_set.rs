//! Replica sets: of one member, or of several that can be killed, frozen, and made to elect another
//! primary.

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

/// How long servers may take to agree on a primary.
const ELECTION: Duration = Duration::from_secs(120);

/// How a replica set is made.
#[derive(Clone, Copy, Debug)]
pub struct Layout {
    /// How many members.
    pub members: usize,
    /// Whether clients reach each member through a [`Proxy`]: the members know each other by their
    /// proxies, too.
    pub proxied: bool,
    /// The cache of each member, in GiB.
    pub cache: f64,
}

impl Default for Layout {
    fn default() -> Self {
        Self { members: 1, proxied: false, cache: 0.25 }
    }
}

/// A replica set. Its servers end when it is dropped.
pub struct ReplicaSet {
    pub name: String,
    pub members: Vec<Process>,
    /// One for each member, where the layout asks for them.
    pub proxies: Vec<Proxy>,
    client: OnceCell<Client>,
}

impl ReplicaSet {
    /// Starts a set of its own.
    pub async fn start(layout: Layout) -> Self {
        let binary = spawn_blocking(binary::mongod)
            .await
            .unwrap_or_else(|e| std::panic::resume_unwind(e.into_panic()));
        Self::start_as("rs0", layout, binary, &[]).await
    }

    /// Starts a set with this name, whose members have these `roles`.
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
        ];
        let parameters = parameters.iter().flat_map(|parameter| ["--setParameter", parameter]);
        let arguments: Vec<_> = fixed
            .into_iter()
            .chain(parameters)
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
        // Members on a machine with too much to do may not answer each other in time.
        for left in (0..5).rev() {
            match self.members[0].admin(doc! { "replSetInitiate": &config }).await {
                Ok(_) => break,
                Err(error) => assert!(left > 0, "{error}"),
            }
        }
        self.whole().await;
    }

    /// Where clients reach a member.
    pub fn host(&self, member: usize) -> SocketAddr {
        self.proxies.get(member).map_or_else(|| self.members[member].address(), Proxy::address)
    }

    /// How to reach a database of this set, with `options` such as `retryWrites=false`, or none.
    pub fn uri(&self, database: &str, options: &str) -> String {
        let hosts: Vec<_> = (0..self.members.len()).map(|n| self.host(n).to_string()).collect();
        let end = if options.is_empty() { String::new() } else { format!("&{options}") };
        format!("mongodb://{}/{database}?replicaSet={}{end}", hosts.join(","), self.name)
    }

    /// A client of this set. It works in every test.
    pub async fn client(&self) -> &Client {
        let uri = self.uri("admin", "");
        self.client.get_or_init(|| in_background(async move { client(&uri).await })).await
    }

    /// The member that takes writes, once there is one. One that was frozen may still believe that
    /// it is it.
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

    /// Waits for something in what the members say of their roles, of which those that do not
    /// answer say nothing.
    async fn wait<T>(&self, failure: &str, find: impl Fn(&[Document]) -> Option<T>) -> T {
        let since = Instant::now();
        loop {
            if let Some(found) = find(&join_all(self.members.iter().map(hello)).await) {
                return found;
            }
            assert!(since.elapsed() < ELECTION, "the set {} {failure}", self.name);
            sleep(Duration::from_millis(20)).await;
        }
    }

    /// Has the primary hand over to another member, and waits until there is one.
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
