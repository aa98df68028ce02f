//! Changes of many users, by a filter or a file.

use std::fs;
use std::path::Path;
use std::process::{Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::json as value;
use tempfile::TempDir;

use super::client::{one, text};
use super::{assert_fails, json, stderr, stdout};
use crate::server::{Server, polynym, signal};

/// The id of no user.
const NOBODY: &str = "20be0ffc-314a-bd53-7a50-013a65ca76d2";

/// A server with as many users as the two teams have, and a folder for files.
fn teams(sizes: [usize; 2], arguments: &[&str]) -> (Server, TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let store = format!("embedded:{}", folder.path().join("store").display());
    let users = folder.path().join("users.jsonl");
    let mut lines = String::new();
    for (team, size) in ["red", "blue"].into_iter().zip(sizes) {
        for n in 0..size {
            let identity = value!({ "identifier": { "handle": format!("{team}{n}") } });
            let user = value!({
                "displayName": format!("{team} {n}"), "identities": [identity],
                "attributes": { "team": { "stringValue": team } },
            });
            lines += &format!("{user}\n");
        }
    }
    fs::write(&users, lines).unwrap();
    let server = Server::start(&["--store", &store]);
    stdout(&server.run(&["import", users.to_str().unwrap()]));
    if arguments.is_empty() {
        return (server, folder);
    }
    server.signal("TERM");
    assert!(server.wait().success());
    (Server::start(&[&["--store", &store], arguments].concat()), folder)
}

/// Runs a command in a folder.
fn run_in(folder: &Path, server: &Server, arguments: &[&str]) -> Output {
    polynym(arguments).env("POLYNYM_SERVER", &server.url).current_dir(folder).output().unwrap()
}

fn count(server: &Server, filter: &str) -> i64 {
    one(server, &["user", "count", "--filter", filter])["count"].as_i64().unwrap()
}

#[test]
fn a_filter_chooses_the_users_to_change() {
    let (server, folder) = teams([13, 2], &[]);
    let red = ["--filter", "attributes.team = red"];
    one(&server, &["user", "disable", "handle:red0"]);
    one(&server, &["user", "delete", "handle:red1"]);

    let dry = [&["user", "disable", "--dry-run"][..], &red].concat();
    let shown = stdout(&server.run(&dry));
    let expected = "11 users would be disabled (the first 10 are shown, 1 more follow), 1 were \
        disabled already, 1 in other states were left out\n";
    assert!(shown.ends_with(expected) && shown.contains("┆ red 1"), "{shown}");
    assert_eq!(one(&server, &dry)["users"].as_array().unwrap().len(), 10);
    assert_eq!(count(&server, "state = DISABLED"), 1);

    let disable = [&["user", "disable", "--reason", "left", "--json"][..], &red].concat();
    let output = run_in(folder.path(), &server, &disable);
    let answer = json(&output).remove(0);
    let operation = text(&answer, "operation_id").to_owned();
    assert!(operation.starts_with("disable-"), "{operation}");
    assert_eq!(
        answer,
        value!({
            "operation_id": operation, "changed": 11, "unchanged": 1, "skipped": 1, "failed": 0,
            "reasons": {},
        })
    );
    let begun = format!("operation {operation}: the users that the filter matches to disable");
    assert!(stderr(&output).contains(&begun), "{output:?}");
    assert_eq!(one(&server, &["bulk", "get", &operation])["counts"]["changed"], "11");
    assert_eq!(count(&server, "state = DISABLED"), 12);
    assert_eq!(count(&server, "attributes.team = blue AND state = ACTIVE"), 2);
    let event = one(&server, &["user", "history", "handle:red5", "--limit", "1"]);
    assert_eq!((&event["operationId"], &event["reason"]), (&value!(operation), &value!("left")));

    let set = ["user", "set", "--attribute", "team=green", "--remove-attribute", "room"];
    let update = [&set[..], &red, &["--operation-id", "moving"]].concat();
    assert_eq!(stdout(&server.run(&update)), "12 users updated, 1 in other states were left out\n");
    assert_eq!(count(&server, "attributes.team = green"), 12);
    let unsorted = ["--remove-attribute", "b", "--remove-attribute", "a", "--operation-id", "ba"];
    let update = [&["user", "set"][..], &red, &unsorted].concat();
    let first = stdout(&server.run(&update));
    assert_eq!(stdout(&server.run(&update)), first);
    let enable = ["user", "enable", "--filter", "attributes.team = green", "--yes"];
    assert_eq!(stdout(&server.run(&enable)), "12 users enabled\n");
    let delete = ["user", "delete", "--filter", "attributes.team = green"];
    assert_eq!(stdout(&server.run(&delete)), "12 users deleted\n");
    assert_eq!(count(&server, "state = DELETED"), 13);
    let name = ["user", "set", "--filter", "state = ACTIVE", "--name", "Joe"];
    assert_fails(&server.run(&name), 2, &["--name"]);
}

#[test]
fn deleted_users_are_restored() {
    let (server, folder) = teams([3, 1], &[]);
    for name in ["handle:red0", "handle:red1", "handle:blue0"] {
        one(&server, &["user", "delete", name]);
    }
    let red = ["--filter", "state = DELETED attributes.team = red"];
    let dry = stdout(&server.run(&[&["user", "undelete", "--dry-run"][..], &red].concat()));
    assert!(dry.ends_with("2 users would be restored\n") && dry.contains("┆ red 0"), "{dry}");
    // Only a single user is found by an identifier.
    let one_user = stdout(&server.run(&["user", "undelete", "--dry-run", "handle:blue0"]));
    assert!(one_user.ends_with("1 users would be restored\n"), "{one_user}");
    assert_eq!(count(&server, "state = DELETED"), 3);
    let restore = [&["user", "undelete", "--json"][..], &red].concat();
    let answer = json(&run_in(folder.path(), &server, &restore)).remove(0);
    assert!(text(&answer, "operation_id").starts_with("restore-"), "{answer}");
    assert_eq!(count(&server, "state = DELETED"), 1);
    one(&server, &["user", "undelete", "handle:blue0"]);
    assert_eq!(count(&server, "state = ACTIVE"), 4);
}

#[test]
fn a_file_names_the_users_to_change() {
    let (server, folder) = teams([3, 1], &[]);
    let id = one(&server, &["resolve", "handle:red1"])["user"]["userId"].clone();
    let file = folder.path().join("leavers.txt");
    let named = format!(
        "# leavers\nhandle:red0\n{}\n\nhandle:nobody # typo\njoe\n{NOBODY}\n",
        id.as_str().unwrap()
    );
    fs::write(&file, named).unwrap();
    let delete = ["user", "delete", "--file", "leavers.txt"];
    let dry = run_in(folder.path(), &server, &[&delete[..], &["--dry-run"]].concat());
    let shown = stdout(&dry);
    assert!(shown.contains("2 users would be deleted, 3 failed\n"), "{shown}");
    assert!(shown.contains("┆ red 0") && shown.contains("┆ red 1"), "{shown}");
    assert_eq!(count(&server, "state = DELETED"), 0);
    let output = run_in(folder.path(), &server, &delete);
    assert_eq!(output.status.code(), Some(1));
    let shown = stdout_of(&output);
    assert!(shown.starts_with("2 users deleted, 3 failed\n"), "{output:?}");
    assert!(shown.contains("  1 USER_NOT_FOUND\n"), "{output:?}");
    for name in ["handle:nobody # ", "joe # "] {
        assert!(stderr(&output).lines().any(|line| line.starts_with(name)), "{output:?}");
    }

    fs::write(folder.path().join("again.txt"), "handle:red2\n").unwrap();
    let again = ["user", "delete", "--file", "again.txt", "--operation-id", "leavers"];
    for _ in 0..2 {
        assert_eq!(stdout(&run_in(folder.path(), &server, &again)), "1 users deleted\n");
    }
    let listed = one(&server, &["bulk", "get", "leavers"]);
    assert_eq!((&listed["listedUsers"], &listed["filter"]), (&value!("1"), &value!(null)));
    assert!(stdout(&server.run(&["bulk", "get", "leavers"])).contains("  list: 1 users\n"));
    let others = ["user", "delete", "--filter", "state = ACTIVE", "--operation-id", "leavers"];
    assert_fails(&server.run(&others), 1, &["leavers"]);
    let disable = ["user", "disable", "--file", "again.txt", "--operation-id", "leavers"];
    assert_eq!(run_in(folder.path(), &server, &disable).status.code(), Some(1));
    assert_eq!(count(&server, "state = DELETED"), 3);

    fs::write(&file, "handle:blue0\nhadle:joe\n").unwrap();
    let wrong = run_in(folder.path(), &server, &delete);
    assert_fails(&wrong, 2, &["leavers.txt line 2"]);
    assert_eq!(count(&server, "state = DELETED"), 3);
    for arguments in [
        &["user", "delete"][..],
        &["user", "delete", "handle:blue0", "--filter", "state = ACTIVE"],
        &["user", "delete", "--filter", " "],
        &["user", "delete", "--filter", "state = ACTIVE", "--etag", "x"],
    ] {
        assert_fails(&server.run(arguments), 2, &["--filter"][..0]);
    }
    assert_eq!(count(&server, "state = DELETED"), 3);
}

#[test]
fn an_operation_stops_at_ctrl_c_and_goes_on_by_its_id() {
    const USERS: usize = 1_000;
    let (server, folder) = teams([USERS, 0], &[]);
    let disable = ["user", "disable", "--filter", "attributes.team = red", "--json"];
    let arguments = [&disable[..], &["--operation-id", "leavers"]].concat();
    let mut child = polynym(&arguments)
        .env("POLYNYM_SERVER", &server.url)
        .current_dir(folder.path())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let start = Instant::now();
    while count(&server, "state = DISABLED") == 0 {
        assert!(start.elapsed() < Duration::from_secs(60) && child.try_wait().unwrap().is_none());
    }
    signal(child.id(), "INT");
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{output:?}");
    assert!(stderr(&output).contains("--operation-id leavers"), "{output:?}");
    let changed = json_of(&output)["changed"].as_u64().unwrap() as usize;
    assert!(changed < USERS, "{output:?}");
    assert_eq!(one(&server, &["bulk", "get", "leavers"])["state"], "BULK_CHANGE_STATE_STOPPED");

    let output = run_in(folder.path(), &server, &arguments);
    assert_eq!(json(&output)[0]["changed"], USERS);
    assert_eq!(count(&server, "state = DISABLED"), USERS as i64);
}

/// The standard output, whatever the exit status.
fn stdout_of(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

/// The first JSON object of the standard output, whatever the exit status.
fn json_of(output: &Output) -> serde_json::Value {
    serde_json::from_str(stdout_of(output).lines().next().unwrap()).unwrap()
}

#[test]
fn the_server_changes_users_in_the_background() {
    let (server, _folder) = teams([3, 2], &[]);
    let start = |action: &str, more: &[&str]| {
        let arguments = [&["bulk", "start", action, "--follow", "--yes"][..], more].concat();
        stdout(&server.run(&arguments))
    };
    let shown = start("disable", &["--filter", "attributes.team = red", "--operation-id", "b1"]);
    let users = "users: 3 checked, 3 changed, 0 unchanged, 0 skipped\n";
    assert!(shown.starts_with("bulk change b1\n") && shown.contains(users), "{shown}");
    assert!(shown.contains("state: completed\n"), "{shown}");
    assert_eq!(count(&server, "state = DISABLED"), 3);

    let dry = ["--filter", "state = DISABLED", "--operation-id", "b2", "--dry-run"];
    let shown = start("enable", &dry);
    assert!(shown.contains("bulk change b2 (dry run)\n"), "{shown}");
    assert!(shown.contains("3 checked, 3 would change"), "{shown}");
    let attribute = ["--filter", "", "--attribute", "plan=free", "--remove-attribute", "team"];
    let shown = start("set", &attribute);
    assert!(shown.contains("change: set plan=free -team\n"), "{shown}");
    assert!(shown.contains("bulk change bulk-") && shown.contains("filter: all users\n"));
    assert_eq!(count(&server, "attributes.plan = free"), 5);

    let listed = stdout(&server.run(&["bulk", "list"]));
    let positions = ["┆ set plan=free", "│ b2 ", "│ b1 "].map(|text| listed.find(text));
    assert!(positions.is_sorted() && positions[0].is_some(), "{listed}");
    for command in ["get", "stop", "resume"] {
        let change = one(&server, &["bulk", command, "b1"]);
        assert_eq!(change["state"], "BULK_CHANGE_STATE_COMPLETED", "{command}");
    }
    assert_eq!(stdout(&server.run(&["bulk", "get", "b1", "--failures"])), "");
    let refused = server.run(&["bulk", "start", "set", "--filter", "", "--yes"]);
    assert!(stderr(&refused).contains("needs --attribute"), "{refused:?}");
    assert_fails(&server.run(&["bulk", "get", "b3"]), 1, &["BULK_CHANGE_NOT_FOUND"]);
}
