//! Imports that are broken off, and go on.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use fastrand::Rng;
use serde_json::Value;

use super::{embedded, export, sample};
use crate::cli::{err, out};
use crate::faults::place::{cluster, fresh, prepare_sharded};
use crate::server::Server;
use crate::support::server::polynym;

const FILE: &str = "users.jsonl";

fn start(server: &Server, folder: &Path) -> Child {
    let mut command = polynym(&["import", FILE]);
    command.current_dir(folder).env("POLYNYM_SERVER", &server.url);
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

/// The users without what differs between two imports: ids, times and etags.
fn content(server: &Server) -> Vec<String> {
    let mut users: Vec<_> = export(server, &[])
        .iter()
        .map(|line| {
            let mut user: Value = serde_json::from_str(line).unwrap();
            for key in ["userId", "createTime", "updateTime", "etag"] {
                user.as_object_mut().unwrap().remove(key);
            }
            for identity in user["identities"].as_array_mut().into_iter().flatten() {
                identity.as_object_mut().unwrap().remove("linkTime");
            }
            user.to_string()
        })
        .collect();
    users.sort();
    users
}

/// Kills the client or the server at random, so many times, then lets an import run to its end.
/// `serve` starts a server on the store that is imported into.
fn broken_off(times: u32, users: &str, seed: u64, serve: impl Fn(&Path) -> Server) {
    let folder = tempfile::tempdir().unwrap();
    let lines = sample(&["--users", users, "--dirty", "0", "--seed", "3"]);
    fs::write(folder.path().join(FILE), lines).unwrap();
    let whole = embedded(folder.path(), "whole");
    let output = start(&whole, folder.path()).wait_with_output().unwrap();
    assert!(output.status.success(), "{}", err(&output));
    let wanted = content(&whole);
    assert_eq!(wanted.len().to_string(), users);

    let mut rng = Rng::with_seed(seed);
    let mut server = serve(folder.path());
    for _ in 0..times {
        let mut client = start(&server, folder.path());
        sleep(Duration::from_millis(rng.u64(20..400)));
        if rng.bool() {
            client.kill().unwrap();
            client.wait().unwrap();
        } else {
            drop(server);
            let output = client.wait_with_output().unwrap();
            let is_done = output.status.success();
            // It may not have begun yet.
            let is_told =
                ["to continue", "cannot reach"].iter().any(|text| err(&output).contains(text));
            assert!(is_done || is_told, "{}", err(&output));
            server = serve(folder.path());
        }
    }
    let output = start(&server, folder.path()).wait_with_output().unwrap();
    assert!(output.status.success(), "{} {}", out(&output), err(&output));
    // The router of these tests may show a cluster as it was some seconds ago.
    let since = Instant::now();
    while content(&server) != wanted && since.elapsed() < Duration::from_secs(30) {
        sleep(Duration::from_millis(500));
    }
    assert_eq!(content(&server), wanted);
}

#[test]
fn an_import_that_is_broken_off_goes_on() {
    broken_off(5, "3000", 1, |folder| embedded(folder, "broken"));
}

#[test]
#[ignore = "runs for minutes"]
fn long_an_import_that_is_broken_off_a_hundred_times_goes_on() {
    broken_off(100, "20000", 2, |folder| embedded(folder, "broken"));
}

/// The same into a store on a cluster.
async fn broken_off_on_a_cluster(times: u32, users: &'static str) {
    let (cluster, _turn) = cluster().await;
    let name = fresh();
    prepare_sharded(cluster, &name).await;
    let uri = cluster.uri(&name);
    let broken_off = move || broken_off(times, users, 3, |_| Server::start(&["--store", &uri]));
    tokio::task::spawn_blocking(broken_off).await.unwrap();
    cluster.client().await.database(&name).drop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn an_import_into_a_cluster_that_is_broken_off_goes_on() {
    broken_off_on_a_cluster(3, "300").await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "runs for minutes"]
async fn long_an_import_into_a_cluster_that_is_broken_off_a_hundred_times_goes_on() {
    broken_off_on_a_cluster(100, "3000").await;
}

/// Ctrl-C: what was sent is finished, nothing else is sent, and the command says how to go on.
#[cfg(unix)]
#[test]
fn an_import_that_is_interrupted_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let server = embedded(folder.path(), "store");
    let lines = sample(&["--users", "8000", "--dirty", "0", "--seed", "5"]);
    fs::write(folder.path().join(FILE), lines).unwrap();

    let client = start(&server, folder.path());
    let is_begun = || !out(&server.run(&["user", "list", "--limit", "1", "--json"])).is_empty();
    while !is_begun() {
        sleep(Duration::from_millis(20));
    }
    let interrupted = Command::new("kill").args(["-INT", &client.id().to_string()]).status();
    assert!(interrupted.unwrap().success());
    let output = client.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{}", err(&output));
    assert!(err(&output).contains("run the same command again to continue"), "{}", err(&output));

    let output = start(&server, folder.path()).wait_with_output().unwrap();
    assert!(output.status.success(), "{}", err(&output));
    let text = out(&output);
    assert!(!text.starts_with("0 imported") && !text.contains(" 0 there already"), "{text}");
    assert_eq!(export(&server, &[]).len(), 8_000);
}
