//! Killed, frozen and replaced servers, networks that lose messages, and cleanup after tests.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use mongodb::bson::{Document, doc};
use mongodb::options::ClientOptions;
use mongodb::{Client, Collection};
use tokio::time::timeout;

use crate::server;
use crate::servers::{self, Layout, Line, NetworkFaults, ReplicaSet, Side, Signal};

/// The environment variable that makes a child process start a server and wait.
const WAIT: &str = "POLYNYM_TEST_WAIT";

async fn things(uri: &str) -> Collection<Document> {
    let options = ClientOptions::parse(uri).await.unwrap();
    Client::with_options(options).unwrap().database("test").collection("things")
}

#[tokio::test]
async fn a_killed_server_keeps_acknowledged_writes() {
    let set = ReplicaSet::start(Layout::default()).await;
    let things = things(&set.uri("test", "w=majority")).await;
    things.insert_one(doc! { "_id": 1 }).await.unwrap();
    set.members[0].signal(Signal::Kill).await;
    set.members[0].restart().await;
    things.insert_one(doc! { "_id": 2 }).await.unwrap();
    assert_eq!(things.count_documents(doc! {}).await.unwrap(), 2);
}

#[tokio::test]
async fn a_replica_set_survives_the_loss_of_its_primary() {
    let set = ReplicaSet::start(Layout { members: 3, ..Layout::default() }).await;
    let things =
        things(&set.uri("test", "w=majority&heartbeatFrequencyMS=500&connectTimeoutMS=1000")).await;
    things.insert_one(doc! { "_id": 0 }).await.unwrap();
    let first = set.primary().await.address();
    set.step_down().await;
    assert_ne!(set.primary().await.address(), first);
    things.insert_one(doc! { "_id": 1 }).await.unwrap();

    for (id, signal) in [(2, Signal::Stop), (3, Signal::Kill)] {
        // A slow machine may have elected another primary since the last insert.
        let old = set.primary().await;
        old.signal(signal).await;
        assert_ne!(set.primary().await.address(), old.address());
        things.insert_one(doc! { "_id": id }).await.unwrap();
        if signal == Signal::Stop {
            old.signal(Signal::Continue).await
        } else {
            old.restart().await
        }
        set.whole().await;
    }
    assert_eq!(things.count_documents(doc! {}).await.unwrap(), 4);
}

#[tokio::test]
async fn a_proxy_holds_and_drops_messages_on_request() {
    let set = ReplicaSet::start(Layout { proxied: true, ..Layout::default() }).await;
    let (things, direct) = (
        things(&set.uri("test", "retryWrites=false")).await,
        set.members[0].database("test").await,
    );
    let count =
        async || direct.collection::<Document>("things").count_documents(doc! {}).await.unwrap();
    let insert = |id: i32| {
        let things = things.clone();
        tokio::spawn(async move { things.insert_one(doc! { "_id": id }).await })
    };
    insert(1).await.unwrap().unwrap();

    let mut request = set.proxies[0].trap(Side::Request, "insert", 2);
    insert(2).await.unwrap().unwrap();
    let held = insert(3);
    request.caught().await;
    assert_eq!(count().await, 2, "a held request has no effect yet");

    request.release();
    held.await.unwrap().unwrap();

    let mut reply = set.proxies[0].trap(Side::Reply, "insert", 1);
    let lost = insert(4);
    reply.caught().await;
    assert_eq!(count().await, 4, "a request whose reply is held has taken effect");
    assert!(!lost.is_finished());

    drop(reply);
    lost.await.unwrap().unwrap_err();

    set.proxies[0].set_line(Line::Stalled);
    let mut late = insert(5);
    timeout(Duration::from_millis(300), &mut late).await.unwrap_err();
    set.proxies[0].set_line(Line::Up);
    late.await.unwrap().unwrap();

    set.proxies[0].set_faults(NetworkFaults {
        latency: Duration::from_millis(50),
        ..NetworkFaults::default()
    });
    let start = Instant::now();
    for n in 0..20 {
        insert(6 + n).await.unwrap().unwrap();
    }

    let mean = start.elapsed() / 20;
    assert!(mean >= Duration::from_millis(30), "{mean:?}");
    set.proxies[0].set_faults(NetworkFaults::BAD);
    let mut lost = 0;
    for n in 0..200 {
        lost += i32::from(insert(100 + n).await.unwrap().is_err());
    }

    println!("{lost} of 200 inserts got no answer");
    assert!(lost > 0, "NetworkFaults::BAD loses nothing");
    set.proxies[0].set_faults(NetworkFaults::default());
    insert(1_000).await.unwrap().unwrap();
}

/// The child process: starts a server, prints its folder, and waits to be killed.
#[tokio::test]
async fn child() {
    if std::env::var_os(WAIT).is_none() {
        return;
    }
    let set = servers::one_member().await;
    println!("\nat {}", set.members[0].folder().display());
    std::future::pending::<()>().await;
}

/// Starts the child and returns it with the folder of its server.
fn start_child() -> (std::process::Child, PathBuf) {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "harness::faults::child", "--nocapture"])
        .env(WAIT, "1")
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
    let folder = lines.find_map(|line| Some(PathBuf::from(line.strip_prefix("at ")?)));
    (child, folder.expect("the child starts a server"))
}

/// Returns true if a process has this folder as its working directory.
fn is_used(folder: &Path) -> bool {
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    processes.flat_map(|process| process.path().join("cwd").read_link()).any(|path| path == folder)
}

#[test]
fn a_killed_test_leaves_no_server_behind() {
    for signal in ["KILL", "INT"] {
        let (mut child, folder) = start_child();
        assert!(folder.is_dir() && is_used(&folder));
        server::signal(child.id(), signal);
        child.wait().unwrap();
        let since = Instant::now();
        while folder.exists() || is_used(&folder) {
            assert!(
                since.elapsed() < Duration::from_secs(60),
                "a folder or a process is left after SIG{signal}"
            );
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}
