//! Interrupted imports, which resume.

use std::io::{Read, Write};
use std::process::Stdio;
use std::thread::sleep;
use std::time::{Duration, Instant};

use serde_json::{Map, json};

use super::{embedded, export, import, import_with_kills, sample};
use crate::scrape::free_address;
use crate::server::{Server, polynym, signal};
use crate::stderr;
use crate::stdout;

#[test]
fn a_killed_import_resumes() {
    import_with_kills(5, "3000", 1, |folder| embedded(folder, "broken"));
}

#[test]
#[ignore = "runs for minutes"]
fn long_an_import_killed_a_hundred_times_resumes() {
    import_with_kills(100, "20000", 2, |folder| embedded(folder, "broken"));
}

/// Ctrl-C: calls in progress finish, no others begin, and the command explains how to continue.
#[cfg(unix)]
#[test]
fn an_interrupted_import_resumes() {
    let folder = tempfile::tempdir().unwrap();
    let server = embedded(folder.path(), "store");
    let lines = sample(&["--users", "2000", "--dirty", "0", "--seed", "5"]);

    // Its input has no end, so it cannot end before the interrupt.
    let mut client = polynym(&["import", "-"])
        .current_dir(folder.path())
        .env("POLYNYM_SERVER", &server.url)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = client.stdin.take().unwrap();
    input.write_all(&lines[..lines.len() / 2]).unwrap();
    let is_begun = || !stdout(&server.run(&["user", "list", "--limit", "1", "--json"])).is_empty();
    while !is_begun() {
        sleep(Duration::from_millis(20));
    }
    signal(client.id(), "INT");
    let output = client.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{}", stderr(&output));
    assert!(
        stderr(&output).contains("run the same command again to continue"),
        "{}",
        stderr(&output)
    );

    drop(input);

    let output = import(&server, folder.path(), &[], &lines);
    assert!(output.status.success(), "{}", stderr(&output));
    let text = stdout(&output);
    assert!(!text.starts_with("0 imported") && !text.contains(" 0 there already"), "{text}");
    assert_eq!(export(&server, &[]).len(), 2_000);
}

#[test]
fn an_undone_import_can_be_repeated() {
    let folder = tempfile::tempdir().unwrap();
    let server = embedded(folder.path(), "store");
    let lines = concat!(
        r#"{"displayName":"Joe","identities":[{"identifier":{"email":"joe@example.com"}}]}"#,
        "\n",
        r#"{"state":"STATE_DISABLED","identities":[{"identifier":{"handle":"ann"}}]}"#,
        "\n",
        r#"{"displayName":"Nobody"}"#,
        "\n",
        r#"{"displayName":"Nobody"}"#,
        "\n",
    );
    let states = || {
        let users: Vec<serde_json::Value> =
            export(&server, &[]).iter().map(|line| serde_json::from_str(line).unwrap()).collect();
        let state = |user: &serde_json::Value| (user["userId"].clone(), user["state"].clone());
        users.iter().map(state).collect::<Vec<_>>()
    };
    let first = import(&server, folder.path(), &["--operation-id", "first"], lines.as_bytes());
    assert!(stdout(&first).starts_with("4 imported, 0 there already"), "{}", stdout(&first));
    let wanted = states();
    assert!(server.run(&["undo", "first"]).status.success());
    assert!(states().iter().all(|(_, state)| state == "STATE_DELETED"));

    for operation in ["second", "first"] {
        let again =
            import(&server, folder.path(), &["--operation-id", operation], lines.as_bytes());
        let expected = match operation {
            "second" => "0 imported, 4 restored, 0 there already",
            _ => "0 imported, 4 there already",
        };
        assert!(again.status.success(), "{}", stderr(&again));
        assert!(stdout(&again).starts_with(expected), "{}", stdout(&again));
        assert_eq!(states(), wanted);
    }
}

/// Lines of users whose export is several times what a client receives ahead.
fn large_users() -> Vec<u8> {
    let mut lines = String::new();
    for n in 0..200 {
        let note = json!({ "stringValue": "x".repeat(4_000) });
        let notes: Map<_, _> = (0..8).map(|n| (format!("note{n}"), note.clone())).collect();
        let identities = json!([{ "identifier": { "handle": format!("user{n}") } }]);
        let user = json!({ "identities": identities, "attributes": notes });
        lines += &format!("{user}\n");
    }
    lines.into_bytes()
}

#[test]
fn an_export_continues_after_its_server_was_restarted() {
    let folder = tempfile::tempdir().unwrap();
    let store = format!("embedded:{}", folder.path().join("store").display());
    let address = free_address().to_string();
    let serve = || {
        let mut command = polynym(&["serve", "--listen", &address, "--log", "error"]);
        Server::start_with(&mut command, &["--store", &store, "--drain", "500ms"])
    };
    let server = serve();
    let imported = import(&server, folder.path(), &[], &large_users());
    assert!(imported.status.success(), "{}", stderr(&imported));
    let whole = export(&server, &[]);

    let mut child = polynym(&["export", "--server", &server.url])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut output = child.stdout.take().unwrap();
    let mut text = vec![0; 1 << 20];
    output.read_exact(&mut text).unwrap();
    server.signal("TERM");
    assert!(server.wait().success());
    let restarted = serve();
    output.read_to_end(&mut text).unwrap();
    let ended = child.wait_with_output().unwrap();
    let told = stderr(&ended);
    assert!(ended.status.success(), "{told}");
    for said in ["interrupted after", "200 users, not as of one moment"] {
        assert!(told.contains(said), "{told}");
    }
    let text = String::from_utf8(text).unwrap();
    let (tenants, users): (Vec<_>, Vec<_>) =
        text.lines().partition(|line| line.contains("\"tenant_record\""));
    assert_eq!(tenants.len(), 1);
    assert!(users == whole, "{} users", users.len());
    drop(restarted);
}

#[test]
fn an_import_tells_how_to_continue_after_its_server_has_stopped() {
    let folder = tempfile::tempdir().unwrap();
    let store = format!("embedded:{}", folder.path().join("store").display());
    let server = Server::start(&["--store", &store, "--drain", "1s"]);
    let mut child = polynym(&["import", "-", "--server", &server.url])
        .current_dir(folder.path())
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    input.write_all(&sample(&["--users", "20", "--dirty", "0"])).unwrap();
    let since = Instant::now();
    while export(&server, &[]).len() < 20 {
        assert!(since.elapsed() < Duration::from_secs(60), "nothing is imported");
        sleep(Duration::from_millis(50));
    }
    server.signal("TERM");
    let told = stderr(&child.wait_with_output().unwrap());
    assert!(server.wait().success());
    for said in ["interrupted after 20 lines", "STREAM_ENDED", "run the same command again"] {
        assert!(told.contains(said), "{told}");
    }
    drop(input);
}
