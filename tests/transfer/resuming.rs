//! Imports that are broken off, and go on.

use std::fs;
use std::path::Path;
use std::process::{Child, Stdio};
use std::thread::sleep;
use std::time::Duration;

use fastrand::Rng;
use serde_json::Value;

use super::{embedded, export, sample};
use crate::cli::{err, out};
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
fn broken_off(times: u32, users: &str, seed: u64) {
    let folder = tempfile::tempdir().unwrap();
    let lines = sample(&["--users", users, "--dirty", "0", "--seed", "3"]);
    fs::write(folder.path().join(FILE), lines).unwrap();
    let whole = embedded(folder.path(), "whole");
    let output = start(&whole, folder.path()).wait_with_output().unwrap();
    assert!(output.status.success(), "{}", err(&output));
    let wanted = content(&whole);
    assert_eq!(wanted.len().to_string(), users);

    let mut rng = Rng::with_seed(seed);
    let mut server = embedded(folder.path(), "broken");
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
            assert!(is_done || err(&output).contains("to go on"), "{}", err(&output));
            server = embedded(folder.path(), "broken");
        }
    }
    let output = start(&server, folder.path()).wait_with_output().unwrap();
    assert!(output.status.success(), "{} {}", out(&output), err(&output));
    assert_eq!(content(&server), wanted);
}

#[test]
fn an_import_that_is_broken_off_goes_on() {
    broken_off(5, "3000", 1);
}

#[test]
#[ignore = "runs for minutes"]
fn long_an_import_that_is_broken_off_a_hundred_times_goes_on() {
    broken_off(100, "20000", 2);
}
