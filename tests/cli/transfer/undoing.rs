//! `polynym undo`: the server undoes an operation as a bulk change.

use std::fs;
use std::process::Stdio;

use serde_json::json as value;

use crate::server::{Server, polynym, signal};
use crate::{json, stderr, stdout};

const USERS: usize = 1_500;

/// A server whose users were imported by the operation `first`.
fn imported(folder: &std::path::Path, count: usize) -> Server {
    let store = format!("embedded:{}", folder.join("store").display());
    let server = Server::start(&["--store", &store]);
    let line = |n| format!("{}\n", value!({ "displayName": format!("User {n}") }));
    let file = folder.join("users.jsonl");
    fs::write(&file, (0..count).map(line).collect::<String>()).unwrap();
    stdout(&server.run(&["import", file.to_str().unwrap(), "--operation-id", "first"]));
    server
}

fn bulk(server: &Server, id: &str) -> serde_json::Value {
    json(&server.run(&["bulk", "get", id, "--json"])).remove(0)
}

#[test]
fn the_server_undoes_an_operation() {
    let folder = tempfile::tempdir().unwrap();
    let server = imported(folder.path(), 3);
    let user = json(&server.run(&["user", "search", "state = ACTIVE", "--json"])).remove(0);
    let user = user["userId"].as_str().unwrap().to_owned();
    stdout(&server.run(&["user", "disable", &user, "--operation-id", "leavers"]));

    let undo = server.run(&["undo", "first", "--json", "--operation-id", "undo-1"]);
    assert_eq!(undo.status.code(), Some(1), "{undo:?}");
    assert!(String::from_utf8_lossy(&undo.stderr).contains("bulk change undo-1 undoes first"));
    let answer: serde_json::Value = serde_json::from_slice(&undo.stdout).unwrap();
    let kept = value!({ "user_id": user, "reason": "CHANGED_SINCE" });
    let blocker = value!({ "operation_id": "leavers", "caller": "anonymous", "users": 1 });
    assert_eq!(
        answer,
        value!({
            "operation_id": "first", "dry_run": false, "users": 3, "reverted": 2, "kept": 1,
            "first_kept": [kept], "blockers": [blocker], "bulk_id": "undo-1",
        })
    );
    let shown = stdout(&server.run(&["bulk", "get", "undo-1"]));
    for text in ["change: undo first", "found: 3 users", "first undo the operation leavers"] {
        assert!(shown.contains(text), "{shown}");
    }
    let done = stdout(&server.run(&["undo", "leavers"]));
    assert_eq!(done, "1 of 1 users are as before\n");
    assert_eq!(stdout(&server.run(&["undo", "first"])), "1 of 3 users are as before\n");
}

#[test]
fn an_undoing_goes_on_without_its_command() {
    let folder = tempfile::tempdir().unwrap();
    let server = imported(folder.path(), USERS);
    let child = polynym(&["undo", "first", "--operation-id", "undo-1"])
        .env("POLYNYM_SERVER", &server.url)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    while server.run(&["bulk", "get", "undo-1"]).status.code() != Some(0) {}
    signal(child.id(), "INT");
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{output:?}");
    assert!(stderr(&output).contains("`polynym bulk stop undo-1` stops it"), "{output:?}");

    stdout(&server.run(&["bulk", "stop", "undo-1"]));
    let stopped = bulk(&server, "undo-1");
    assert_eq!(stopped["state"], "BULK_CHANGE_STATE_STOPPED");
    stdout(&server.run(&["bulk", "resume", "undo-1", "--follow"]));
    let ended = bulk(&server, "undo-1");
    let counts = &ended["counts"];
    let users = USERS.to_string();
    assert_eq!((&counts["changed"], &counts["checked"]), (&value!(users), &value!(users)));
}
