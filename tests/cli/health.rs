//! `polynym health`: its exit status is the health of the server.

use std::time::{Duration, Instant};

use serde_json::json as value;

use super::{assert_fails, json, stdout};
use crate::server::{Server, polynym};

#[test]
fn a_server_serves_until_its_store_is_gone() {
    let folder = tempfile::tempdir().unwrap();
    let store = format!("embedded:{}", folder.path().display());
    let server = Server::start(&["--create", "--store", &store]);
    assert_eq!(stdout(&server.run(&["health"])), "SERVING\n");
    assert_eq!(json(&server.run(&["health", "--json"])), [value!({ "status": "SERVING" })]);

    let file = folder.path().join("directory.redb");
    std::fs::rename(&file, folder.path().join("moved.redb")).unwrap();
    let start = Instant::now();
    let mut output = server.run(&["health"]);
    while output.status.success() && start.elapsed() < Duration::from_secs(10) {
        std::thread::sleep(Duration::from_millis(100));
        output = server.run(&["health"]);
    }
    assert_eq!((output.status.code(), stdout(&output)), (Some(1), "NOT_SERVING\n".to_owned()));
}

#[test]
fn a_server_that_is_not_there_is_not_healthy() {
    let output = polynym(&["health", "--server", "http://127.0.0.1:1"]).output().unwrap();
    assert_fails(&output, 1, &["cannot reach http://127.0.0.1:1"]);
}
