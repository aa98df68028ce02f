//! The credentials file under a running server.

use std::fs;
use std::os::unix::fs::symlink;
use std::time::{Duration, Instant};

use tonic::transport::Channel;
use tonic::{Code, Request};
use tonic_reflection::pb::v1::ServerReflectionRequest;
use tonic_reflection::pb::v1::server_reflection_client::ServerReflectionClient;

use super::{Callers, RESOLVE, connect, refusal, wait_for_invalid_files};
use crate::server::Server;

/// The time limit of a change: far beyond the promised 5 seconds, for busy machines.
const TIMEOUT: Duration = Duration::from_secs(60);

async fn is_valid(channel: &Channel, token: &str) -> bool {
    refusal(channel, RESOLVE, token).await.is_some_and(|r| r.reason == "IDENTIFIER_INVALID")
}

/// Waits until the token is valid, or is not.
async fn wait(channel: &Channel, token: &str, valid: bool) -> Duration {
    let start = Instant::now();
    while is_valid(channel, token).await != valid {
        assert!(start.elapsed() < TIMEOUT, "still {}", !valid);
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    start.elapsed()
}

#[tokio::test(flavor = "multi_thread")]
async fn changes_apply_to_open_connections_and_broken_files_do_not() {
    let callers = Callers::new();
    let first = callers.create("a", "resolver", "*");
    let server = callers.serve(&[]);
    let channel = connect(&server).await;
    assert!(is_valid(&channel, &first).await);

    let second = callers.create("a", "resolver", "*");
    let marker = callers.create("marker", "resolver", "*");
    println!("a new token after {:?}", wait(&channel, &second, true).await);
    callers.run(&["revoke", first.split('_').nth(1).unwrap()]);
    println!("a revoked one after {:?}", wait(&channel, &first, false).await);
    assert!(is_valid(&channel, &second).await && is_valid(&channel, &marker).await);

    let good = fs::read(callers.path()).unwrap();
    for (n, broken) in [&b""[..], b"[[caller]", &good[..good.len() - 9]].into_iter().enumerate() {
        fs::write(callers.path(), broken).unwrap();
        wait_for_invalid_files(&callers.log(), n + 1);
        assert!(is_valid(&channel, &second).await, "the previous credentials");
    }
    fs::remove_file(callers.path()).unwrap();
    wait_for_invalid_files(&callers.log(), 4);
    assert!(is_valid(&channel, &second).await);
    fs::write(callers.path(), good).unwrap();
    callers.run(&["revoke", "marker"]);
    wait(&channel, &marker, false).await;
    assert!(is_valid(&channel, &second).await);
}

/// Servers that share a file as Kubernetes mounts a secret: behind two links, of which an update
/// replaces one.
#[tokio::test(flavor = "multi_thread")]
async fn servers_share_a_file_behind_links() {
    let callers = Callers::new();
    let first = callers.create("a", "resolver", "*");
    let mount = tempfile::tempdir().unwrap();
    let publish = |version: &str| {
        fs::create_dir(mount.path().join(version)).unwrap();
        fs::copy(callers.path(), mount.path().join(version).join("callers.toml")).unwrap();
        symlink(version, mount.path().join("next")).unwrap();
        fs::rename(mount.path().join("next"), mount.path().join("..data")).unwrap();
    };
    publish("..1");
    let shared = mount.path().join("callers.toml");
    symlink("..data/callers.toml", &shared).unwrap();
    let arguments = ["--credentials", shared.to_str().unwrap(), "--sample"];
    let servers = [Server::start(&arguments), Server::start(&arguments)];
    let channels = [connect(&servers[0]).await, connect(&servers[1]).await];

    let second = callers.create("b", "resolver", "*");
    callers.run(&["revoke", "a"]);
    publish("..2");
    fs::remove_dir_all(mount.path().join("..1")).unwrap();
    for channel in &channels {
        wait(channel, &second, true).await;
        wait(channel, &first, false).await;
    }
}

/// A stream has the rights of its caller in the present file, and ends with the token.
#[tokio::test(flavor = "multi_thread")]
async fn streams_end_with_their_credential() {
    let callers = Callers::new();
    let (revoked, kept) =
        (callers.create("revoked", "resolver", "*"), callers.create("kept", "resolver", "*"));
    let server = callers.serve(&[]);
    // It lasts until the stream is open, even on a busy machine.
    let brief = callers.run(&["create", "brief", "--role", "resolver", "--expires", "15s"]);
    wait(&connect(&server).await, brief.trim_end(), true).await;
    let mut streams = Vec::new();
    for token in [brief.trim_end(), &revoked, &kept] {
        let (questions, waiting) = tokio::sync::mpsc::channel::<ServerReflectionRequest>(1);
        let questions_to_come =
            futures_util::stream::unfold(waiting, async |mut all| Some((all.recv().await?, all)));
        let mut request = Request::new(questions_to_come);
        let header = format!("Bearer {token}").parse().unwrap();
        request.metadata_mut().insert("authorization", header);
        let mut client = ServerReflectionClient::new(connect(&server).await);
        let answers = client.server_reflection_info(request).await.unwrap().into_inner();
        streams.push((questions, answers));
    }
    callers.run(&["revoke", "revoked"]);
    for (questions, answers) in &mut streams[..2] {
        let ended = tokio::time::timeout(TIMEOUT, answers.message()).await.unwrap();
        assert_eq!(ended.unwrap_err().code(), Code::Unauthenticated);
        drop(questions.clone());
    }
    let open = tokio::time::timeout(Duration::from_secs(2), streams[2].1.message()).await;
    assert!(open.is_err(), "{open:?}");
}

/// A file is rewritten in place a thousand times, in pieces, with good, broken and empty versions.
/// Every complete version has the token `kept` as a resolver; half a file lacks it.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes half a minute"]
async fn long_partly_written_files_decide_no_call() {
    let callers = Callers::new();
    let kept = callers.create("kept", "resolver", "*");
    let padding: String = (0..2_000).map(|n| format!("# line {n} of a longer file\n")).collect();
    let good = fs::read_to_string(callers.path()).unwrap();
    let admin = good.replace("name = \"kept\"", "name = \"other\"").replace("sha256:", "sha256:x");
    let versions = [
        format!("{padding}{good}"),
        format!("{good}{padding}"),
        format!("{admin}{padding}{good}"),
        good[..good.len() / 2].to_owned(),
        String::new(),
        "[[caller]".to_owned(),
    ];
    fs::write(callers.path(), &versions[0]).unwrap();
    let server = callers.serve(&[]);
    let channel = connect(&server).await;

    let path = callers.path();
    let writing = std::thread::spawn(move || {
        for n in 0..1_000 {
            let text = versions[n % versions.len()].as_bytes();
            let mut file = fs::File::create(&path).unwrap();
            for piece in text.chunks(text.len() / 3 + 1) {
                std::io::Write::write_all(&mut file, piece).unwrap();
                std::thread::sleep(Duration::from_millis(8));
            }
        }
    });
    let (mut calls, unlink) = (0, "/polynym.v1.AdminService/PurgeUser");
    while !writing.is_finished() {
        assert!(is_valid(&channel, &kept).await, "after {calls} calls");
        let denied = refusal(&channel, unlink, &kept).await.unwrap();
        assert_eq!(denied.reason, "ROLE_DENIED");
        calls += 2;
    }
    writing.join().unwrap();
    println!("{calls} calls beside 1,000 replacements");
}
