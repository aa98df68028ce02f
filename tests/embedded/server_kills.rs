//! State after a server was killed, or stopped, during mutations.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use polynym_proto::v1;
use tempfile::TempDir;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tonic::Code;

use crate::support;
use crate::support::calls::{Client, email, handle, identity};
use crate::support::scenarios::bulk::killed_servers_lose_and_repeat_nothing;
use crate::support::server::Server;

const CALLERS: u64 = 16;
const ROUNDS: u64 = 5;
/// The time limit for each wait.
const TIMEOUT: Duration = Duration::from_secs(120);

fn server(folder: &TempDir) -> Server {
    Server::start(&["--store", &format!("embedded:{}", folder.path().join("store").display())])
}

fn person(n: u64) -> v1::User {
    let identities = vec![
        identity(email(&format!("user{n}@example.com"))),
        identity(handle(&format!("user{n}"))),
    ];
    v1::User { display_name: format!("User {n}"), identities, ..Default::default() }
}

/// The creates that were sent, and those that were acknowledged.
#[derive(Default)]
struct Log {
    sent: BTreeSet<u64>,
    acknowledged: BTreeSet<u64>,
}

/// Waits until `count` creates are acknowledged in all.
async fn until_acknowledged(log: &Mutex<Log>, count: usize) {
    let reached = async {
        while log.lock().unwrap().acknowledged.len() < count {
            sleep(Duration::from_millis(1)).await;
        }
    };
    timeout(TIMEOUT, reached).await.expect("creates are answered");
}

/// Creates users until the server is gone. Returns the code of the last call of each caller.
async fn create_until_gone(url: &str, first: u64, log: &Arc<Mutex<Log>>) -> Vec<Code> {
    let mut callers = JoinSet::new();
    for caller in 0..CALLERS {
        let (mut client, log) = (Client::connect(url).await, log.clone());
        callers.spawn(async move {
            for n in (first + caller..).step_by(CALLERS as usize) {
                log.lock().unwrap().sent.insert(n);
                if let Err(status) = client.create(person(n)).await {
                    return status.code();
                }
                log.lock().unwrap().acknowledged.insert(n);
            }
            unreachable!("a caller stops when the server is gone")
        });
    }

    callers.join_all().await
}

/// Asserts that every acknowledged user exists, and that every other one exists completely or not
/// at all. Returns the numbers of both.
async fn check(url: &str, log: &Log) -> (usize, usize) {
    let mut client = Client::connect(url).await;
    let mut unanswered = 0;
    for &n in &log.sent {
        let by_email = client.resolve(email(&format!("user{n}@example.com"))).await;
        let by_handle = client.resolve(handle(&format!("user{n}"))).await;
        match (by_email, by_handle) {
            (Ok(one), Ok(other)) => {
                let user = one.user.unwrap();
                assert_eq!(Some(&user), other.user.as_ref(), "user {n} is one user");
                assert_eq!((user.display_name, user.identities.len()), (format!("User {n}"), 2));
                unanswered += usize::from(!log.acknowledged.contains(&n));
            }
            (Err(one), Err(other)) => {
                assert_eq!((one.code(), other.code()), (Code::NotFound, Code::NotFound));
                assert!(!log.acknowledged.contains(&n), "user {n} was acknowledged and is lost");
            }
            (one, other) => panic!("user {n} exists in part: {one:?} {other:?}"),
        }
    }

    (log.acknowledged.len(), unanswered)
}

#[tokio::test(flavor = "multi_thread")]
async fn acknowledged_users_survive_kills_of_the_server() {
    let folder = tempfile::tempdir().unwrap();
    let log = Arc::new(Mutex::new(Log::default()));
    for round in 0..ROUNDS {
        let server = server(&folder);
        let (url, first) = (server.url.clone(), round * 1_000_000);
        let callers = tokio::spawn({
            let log = log.clone();
            async move { create_until_gone(&url, first, &log).await }
        });
        let before = log.lock().unwrap().acknowledged.len();
        until_acknowledged(&log, before + 40 + 17 * round as usize).await;
        server.signal("KILL");
        callers.await.unwrap();
    }

    let server = server(&folder);
    let entries = std::mem::take(&mut *log.lock().unwrap());
    let (acknowledged, unanswered) = check(&server.url, &entries).await;
    println!("{ROUNDS} kills: {acknowledged} acknowledged users, {unanswered} others in full");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stopped_server_completes_calls_in_progress() {
    let folder = tempfile::tempdir().unwrap();
    let log = Arc::new(Mutex::new(Log::default()));
    let first = server(&folder);
    let url = first.url.clone();
    let callers = tokio::spawn({
        let log = log.clone();
        async move { create_until_gone(&url, 0, &log).await }
    });
    until_acknowledged(&log, 100).await;
    first.signal("TERM");
    assert!(first.wait().success(), "a clean exit");

    callers.await.unwrap();
    let second = server(&folder);
    let entries = std::mem::take(&mut *log.lock().unwrap());
    check(&second.url, &entries).await;
}

#[test]
fn a_second_server_on_one_folder_reports_the_conflict() {
    let folder = tempfile::tempdir().unwrap();
    let _first = server(&folder);
    let store = format!("embedded:{}", folder.path().join("store").display());
    let second = support::server::polynym(&["serve", "--listen", "127.0.0.1:0", "--store", &store])
        .output()
        .unwrap();
    let stderr = String::from_utf8(second.stderr).unwrap();
    assert_eq!(second.status.code(), Some(1));
    assert!(stderr.contains("is in use by another process"), "{stderr}");
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_servers_lose_no_part_of_a_bulk_change() {
    let folder = tempfile::tempdir().unwrap();
    let store = format!("embedded:{}", folder.path().join("store").display());
    killed_servers_lose_and_repeat_nothing(&store).await;
}
