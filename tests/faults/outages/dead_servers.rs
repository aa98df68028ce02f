//! Servers that die in a transaction, with the default settings of MongoDB, which keeps an
//! abandoned transaction and its locks for a minute. Another server ends the sessions of the dead
//! one earlier.

use std::future::Future;
use std::pin::Pin;
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use mongodb::bson::{Document, doc};
use polynym_proto::v1;
use tokio::task::spawn_blocking;
use tokio::time::sleep;
use tonic::{Code, Status};

use crate::calls::{Client, handle, identity};
use crate::server::Server;
use crate::servers::{Layout, Proxy, ReplicaSet, Sharded, Side, Trap};
use crate::stores::{fresh, prepare, prepare_sharded, print_line};

/// The maximum time for which a dead server may block others: shorter than the minute for which
/// MongoDB itself keeps a transaction.
const RELEASE_TIMEOUT: Duration = Duration::from_secs(58);

/// The times of a kill: the statement of the transaction, and whether a message in flight arrives.
const MOMENTS: [(Side, usize, bool); 6] = [
    (Side::Request, 2, false),
    (Side::Reply, 2, false),
    (Side::Request, 3, false),
    (Side::Request, 2, true),
    (Side::Reply, 1, false),
    (Side::Request, 3, true),
];

/// A store and its servers.
enum Site {
    Set(ReplicaSet),
    Cluster(Sharded),
}

impl Site {
    async fn make(&self, name: &str) {
        match self {
            Self::Set(set) => prepare(set, name).await,
            Self::Cluster(cluster) => prepare_sharded(cluster, name).await,
        }
    }

    async fn proxy(&self) -> Proxy {
        match self {
            Self::Set(set) => Proxy::start(set.members[0].address()).await,
            Self::Cluster(cluster) => Proxy::start(cluster.address()).await,
        }
    }

    fn uri(&self, proxy: &Proxy, name: &str) -> String {
        match self {
            Self::Set(_) => format!("mongodb://{}/{name}?directConnection=true", proxy.address()),
            Self::Cluster(cluster) => cluster.uri_at(proxy.address(), name),
        }
    }
}

async fn serve(uri: String) -> Server {
    spawn_blocking(move || Server::start(&["--store", &uri])).await.unwrap()
}

/// A server in the middle of a transaction.
struct Victim {
    server: Server,
    trap: Trap,
    names: [String; 2],
    call: Pin<Box<dyn Future<Output = Result<v1::User, Status>> + Send>>,
}

fn user(names: &[String; 2]) -> v1::User {
    v1::User {
        identities: names.iter().map(|name| identity(handle(name))).collect(),
        ..Default::default()
    }
}

impl Victim {
    /// Starts a server and a mutation, which a trap stops at a message.
    async fn start(
        uri: String,
        proxy: &Proxy,
        n: usize,
        (side, nth, _): (Side, usize, bool),
    ) -> Self {
        let server = serve(uri).await;
        // On a cluster, the claims lie on two shards.
        let names = [format!("left{n}"), format!("right{n}")];
        let client = Client::connect(&server.url).await;
        let mut trap = proxy.trap_statement(side, nth);
        let draft = user(&names);
        let mut call: Pin<Box<dyn Future<Output = _> + Send>> = {
            let sent = tokio::spawn(async move { client.clone().create(draft).await });
            Box::pin(async move { sent.await.unwrap() })
        };
        tokio::select! {
            () = trap.caught() => {}
            ended = &mut call => panic!("a mutation without a {side:?} of statement {nth}: \
                {ended:?}"),
        }
        Self { server, trap, names, call }
    }

    /// Kills the server. Returns the names of its mutation.
    async fn kill(self, arrives: bool) -> [String; 2] {
        self.server.signal("KILL");
        spawn_blocking(move || self.server.wait()).await.unwrap();
        if arrives {
            self.trap.release();
        } else {
            drop(self.trap);
        }
        self.call.await.unwrap_err();
        self.names
    }
}

/// Creates a user with these names as soon as possible. Returns false if they are taken.
async fn take(client: &Client, names: &[String; 2]) -> bool {
    let since = Instant::now();
    loop {
        match client.clone().create(user(names)).await {
            Ok(_) => return true,
            Err(status) if status.code() == Code::AlreadyExists => return false,
            Err(status) if matches!(status.code(), Code::Unavailable | Code::Unknown) => {
                assert!(
                    since.elapsed() < RELEASE_TIMEOUT,
                    "{names:?} are still kept from everybody: {status:?}"
                );
                sleep(Duration::from_millis(50)).await;
            }
            Err(status) => panic!("{status:?}"),
        }
    }
}

/// Kills servers in rounds, several at once, while one continues. Returns the longest time for
/// which names were blocked.
async fn kill(site: &Site, rounds: usize, concurrent: usize) -> Duration {
    let name = fresh();
    site.make(&name).await;
    let proxies = join_all((0..=concurrent).map(|_| site.proxy())).await;
    let survivor = serve(site.uri(&proxies[concurrent], &name)).await;
    let client = Client::connect(&survivor.url).await;
    client.clone().hold_nothing().await;
    let (mut longest, mut happened) = (Duration::ZERO, 0);
    for round in 0..rounds {
        let moment = |n: usize| MOMENTS[(round + n) % MOMENTS.len()];
        let start = |n: usize| {
            Victim::start(
                site.uri(&proxies[n], &name),
                &proxies[n],
                round * concurrent + n,
                moment(n),
            )
        };
        let victims = join_all((0..concurrent).map(start)).await;
        let since = Instant::now();
        let freed = victims.into_iter().enumerate().map(async |(n, victim)| {
            let names = victim.kill(moment(n).2).await;
            (take(&client, &names).await, since.elapsed())
        });
        for (was_free, waited) in join_all(freed).await {
            happened += usize::from(!was_free);
            longest = longest.max(waited);
        }
    }
    let kills = rounds * concurrent;
    print_line(&format!(
        "servers killed in a transaction, with MongoDB's own settings: {kills}, of whose mutations \
         {happened} had happened; what the others left was free after {longest:.1?} at most"
    ));
    longest
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dead_servers_locks_on_a_set_are_soon_released() {
    kill(&Site::Set(ReplicaSet::start(Layout::default()).await), 1, 3).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dead_servers_locks_on_a_cluster_are_soon_released() {
    kill(&Site::Cluster(Sharded::start(3, Layout::default()).await), 1, 6).await;
}

/// A stopped server is considered dead, and resumes.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_wrongly_considered_dead_does_no_harm() {
    let site = Site::Set(ReplicaSet::start(Layout::default()).await);
    let name = fresh();
    site.make(&name).await;
    let proxies = [site.proxy().await, site.proxy().await];
    let survivor = serve(site.uri(&proxies[1], &name)).await;
    let client = Client::connect(&survivor.url).await;
    let victim =
        Victim::start(site.uri(&proxies[0], &name), &proxies[0], 0, (Side::Request, 3, true)).await;
    victim.server.signal("STOP");
    assert!(take(&client, &victim.names).await, "the names are taken");
    victim.server.signal("CONT");
    victim.trap.release();
    let status = victim.call.await.unwrap_err();
    assert!(matches!(status.code(), Code::AlreadyExists | Code::Unavailable), "{status:?}");
    let revived = Client::connect(&victim.server.url).await;
    assert!(take(&revived, &["left", "right"].map(str::to_owned)).await, "the names are taken");
    let Site::Set(set) = &site else { unreachable!() };
    let servers = set.members[0].database(&name).await.collection::<Document>("servers");
    let since = Instant::now();
    while servers.count_documents(doc! {}).await.unwrap() != 2 {
        assert!(since.elapsed() < RELEASE_TIMEOUT, "a running server has no document");
        sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes minutes"]
async fn long_freed() {
    let cluster = kill(&Site::Cluster(Sharded::start(3, Layout::default()).await), 20, 10).await;
    let set = kill(&Site::Set(ReplicaSet::start(Layout::default()).await), 5, 10).await;
    print_line(&format!(
        "free again after at most {cluster:.1?} on a cluster, {set:.1?} on a replica set"
    ));
}
