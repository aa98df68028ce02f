//! Servers that die in a transaction, on MongoDB as it is installed: there a transaction whose
//! client is gone lives for a minute, and keeps its documents from everybody. They are free again
//! as soon as another server has ended the dead one's sessions.

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
use crate::place::{fresh, prepare, prepare_sharded, print_line};
use crate::server::Server;
use crate::servers::{Layout, Proxy, ReplicaSet, Sharded, Side, Trap};

/// The longest time for which the remains of a dead server may block others. MongoDB itself ends
/// them after 60 to 90 s.
const LONGEST: Duration = Duration::from_secs(45);

/// The moments at which a server is killed: the statement of its transaction, and whether a message
/// under way arrives.
const MOMENTS: [(Side, usize, bool); 6] = [
    (Side::Request, 2, false),
    (Side::Reply, 2, false),
    (Side::Request, 3, false),
    (Side::Request, 2, true),
    (Side::Reply, 1, false),
    (Side::Request, 3, true),
];

/// A store, and the servers on it.
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

/// A server that is in the midst of a transaction.
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
    /// Starts a server and has it begin a mutation, which is caught at a message.
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

    /// Kills the server. Answers with the names that it was about to give.
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

/// Takes names, as soon as that is possible. Says whether they were free, or else somebody's by
/// then.
async fn take(client: &Client, names: &[String; 2]) -> bool {
    let since = Instant::now();
    loop {
        match client.clone().create(user(names)).await {
            Ok(_) => return true,
            Err(status) if status.code() == Code::AlreadyExists => return false,
            Err(status) if matches!(status.code(), Code::Unavailable | Code::Unknown) => {
                assert!(
                    since.elapsed() < LONGEST,
                    "{names:?} are still kept from everybody: {status:?}"
                );
                sleep(Duration::from_millis(50)).await;
            }
            Err(status) => panic!("{status:?}"),
        }
    }
}

/// Kills servers in rounds, as many at once, while one goes on. Answers with the longest time that
/// anything was kept.
async fn kill(site: &Site, rounds: usize, at_once: usize) -> Duration {
    let name = fresh();
    site.make(&name).await;
    let proxies = join_all((0..=at_once).map(|_| site.proxy())).await;
    let survivor = serve(site.uri(&proxies[at_once], &name)).await;
    let client = Client::connect(&survivor.url).await;
    client.clone().hold_nothing().await;
    let (mut longest, mut happened) = (Duration::ZERO, 0);
    for round in 0..rounds {
        let moment = |n: usize| MOMENTS[(round + n) % MOMENTS.len()];
        let start = |n: usize| {
            Victim::start(site.uri(&proxies[n], &name), &proxies[n], round * at_once + n, moment(n))
        };
        let victims = join_all((0..at_once).map(start)).await;
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
    let kills = rounds * at_once;
    print_line(&format!(
        "servers killed in a transaction, with MongoDB's own settings: {kills}, of whose mutations \
         {happened} had happened; what the others left was free after {longest:.1?} at most"
    ));
    longest
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_dead_server_has_changed_on_a_set_is_soon_free() {
    kill(&Site::Set(ReplicaSet::start(Layout::default()).await), 1, 3).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_dead_server_has_changed_on_a_cluster_is_soon_free() {
    kill(&Site::Cluster(Sharded::start(3, Layout::default()).await), 1, 6).await;
}

/// A server stands still, is taken for dead, and goes on.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_was_taken_for_dead_does_no_harm() {
    let site = Site::Set(ReplicaSet::start(Layout::default()).await);
    let name = fresh();
    site.make(&name).await;
    let proxies = [site.proxy().await, site.proxy().await];
    let survivor = serve(site.uri(&proxies[1], &name)).await;
    let client = Client::connect(&survivor.url).await;
    let victim =
        Victim::start(site.uri(&proxies[0], &name), &proxies[0], 0, (Side::Request, 3, true)).await;
    victim.server.signal("STOP");
    assert!(take(&client, &victim.names).await, "nobody has these names");
    victim.server.signal("CONT");
    victim.trap.release();
    let status = victim.call.await.unwrap_err();
    assert!(matches!(status.code(), Code::AlreadyExists | Code::Unavailable), "{status:?}");
    let revived = Client::connect(&victim.server.url).await;
    assert!(take(&revived, &["left", "right"].map(str::to_owned)).await, "nobody has these names");
    let Site::Set(set) = &site else { unreachable!() };
    let servers = set.members[0].database(&name).await.collection::<Document>("servers");
    let since = Instant::now();
    while servers.count_documents(doc! {}).await.unwrap() != 2 {
        assert!(since.elapsed() < LONGEST, "a server that is up has no document");
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
