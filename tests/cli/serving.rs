//! Start and stop of a server.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use super::{assert_fails, json, stderr, stdout};
use crate::server::{self, Server, polynym};

fn entries(folder: &Path) -> usize {
    std::fs::read_dir(folder).unwrap().count()
}

/// Starts a server with sample users; its temporary folder lies in `folder`.
fn temporary(folder: &Path) -> Server {
    let mut command = polynym(&["serve", "--sample", "--listen", "127.0.0.1:0", "--log", "error"]);
    Server::start_with(command.env("TMPDIR", folder), &[])
}

#[test]
fn a_signal_stops_the_server_and_removes_its_temporary_folder() {
    for signal in ["TERM", "INT"] {
        let folder = tempfile::tempdir().unwrap();
        let server = temporary(folder.path());
        assert_eq!(entries(folder.path()), 1);
        server.signal(signal);
        assert_eq!(server.wait().code(), Some(0));
        assert_eq!(entries(folder.path()), 0);
    }
}

#[test]
fn a_sample_server_prints_three_commands_that_work() {
    let mut server = Server::start(&["--sample"]);
    let lines: Vec<_> = (0..4).map(|_| server.line()).collect();
    let commands: Vec<_> = lines.iter().filter_map(|line| line.strip_prefix("  ")).collect();
    assert_eq!(commands.len(), 3, "{lines:?}");
    assert!(commands[2].starts_with("grpcurl -plaintext"));
    for command in &commands[..2] {
        let shell = command.replacen("polynym", env!("CARGO_BIN_EXE_polynym"), 1);
        let output = std::process::Command::new("sh").args(["-c", &shell]).output().unwrap();
        assert!(output.status.success(), "{command}: {}", stderr(&output));
    }
}

#[test]
fn a_sample_server_has_its_console_or_names_what_is_missing() {
    let mut server = Server::start(&["--sample", "--http-listen", "127.0.0.1:0"]);
    let url = server.http_url();
    assert_eq!(server.line(), format!("console on {url}/console\n"));

    let mut server = Server::start(&["--sample"]);
    let lines: Vec<_> = (0..6).map(|_| server.line()).collect();
    assert!(lines[5].contains("console") && lines[5].contains("--http-listen"), "{lines:?}");
}

#[test]
fn users_survive_a_restart_and_a_sample_changes_none() {
    let folder = tempfile::tempdir().unwrap();
    let store = format!("embedded:{}", folder.path().join("store").display());
    let server = Server::start(&["--sample", "--store", &store]);
    let joe = json(&server.run(&["resolve", "--json", "handle:joe"])).remove(0);
    let id = joe["user"]["userId"].as_str().unwrap();
    let changed =
        json(&server.run(&["user", "update", "--json", id, "--name", "Joseph"])).remove(0);
    server.signal("TERM");
    assert!(server.wait().success());

    let server = Server::start(&["--sample", "--store", &store]);
    assert_eq!(json(&server.run(&["user", "get", "--json", id])), [changed]);
}

#[test]
fn a_store_is_created_only_on_request() {
    let parent = tempfile::tempdir().unwrap();
    let folder = parent.path().join("mount/store");
    let store = format!("embedded:{}", folder.display());
    let serve = ["serve", "--listen", "127.0.0.1:0", "--store", &store];
    let output = polynym(&serve).output().unwrap();
    assert_fails(&output, 1, &["has no store", "mounted"]);
    assert!(!folder.parent().unwrap().exists());

    let message = stderr(&output);
    let commands: Vec<_> =
        message.lines().filter_map(|line| line.trim().strip_prefix("polynym ")).collect();
    let [init, create] = commands[..] else { panic!("{message}") };

    let created = Server::start_with(
        polynym(&create.split(' ').collect::<Vec<_>>()).args(["--listen", "127.0.0.1:0"]),
        &[],
    );
    let is_private =
        |folder: &Path| std::fs::metadata(folder).unwrap().permissions().mode() & 0o777 == 0o700;
    assert!(is_private(&folder) && is_private(folder.parent().unwrap()));

    created.signal("TERM");
    assert!(created.wait().success());
    std::fs::remove_dir_all(&folder).unwrap();

    assert!(polynym(&init.split(' ').collect::<Vec<_>>()).status().unwrap().success());
    let mut plain = polynym(&serve);
    let _served = Server::start_with(plain.env_remove("POLYNYM_CREATE"), &[]);
}

#[test]
fn a_store_in_use_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    let store = format!("embedded:{}", folder.path().display());
    let _server = Server::start(&["--store", &store]);
    let output =
        polynym(&["serve", "--listen", "127.0.0.1:0", "--store", &store]).output().unwrap();
    assert_fails(&output, 1, &["in use by another process"]);
    assert_eq!(stdout(&output), "");
}

#[test]
fn a_server_without_credentials_logs_a_warning() {
    for (listen, part) in
        [("127.0.0.1:0", "every user of this machine"), ("0.0.0.0:0", "anybody who reaches")]
    {
        let folder = tempfile::tempdir().unwrap();
        let log_file = tempfile::NamedTempFile::new().unwrap();
        let store = format!("embedded:{}", folder.path().display());
        let arguments =
            ["serve", "--listen", listen, "--insecure", "--store", &store, "--log-format", "json"];
        let mut command = polynym(&arguments);
        drop(Server::start_with(command.stderr(log_file.reopen().unwrap()), &[]));
        let log = std::fs::read_to_string(log_file.path()).unwrap();
        let lines: Vec<serde_json::Value> =
            log.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert!(
            lines.iter().any(|l| l["message"].as_str().is_some_and(|m| m.contains(part))),
            "{lines:?}"
        );
    }
}

#[test]
fn configured_limits_apply() {
    let server = Server::start(&["--sample", "--max-batch", "2", "--max-identities", "1"]);
    let output = server.run(&["resolve", "handle:joe", "handle:grace", "handle:alice"]);
    assert_fails(&output, 1, &["BATCH_TOO_LARGE"]);
    let output =
        server.run(&["user", "create", "--identity", "handle:ada", "--identity", "handle:ada2"]);
    assert_fails(&output, 1, &["LIMIT_EXCEEDED"]);
}

/// The store is a database that never responds.
#[test]
fn a_signal_stops_a_server_whose_store_is_opening() {
    for signal in ["TERM", "INT"] {
        let database = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let store = format!("mongodb://{}/polynym", database.local_addr().unwrap());
        let arguments =
            ["serve", "--listen", "127.0.0.1:0", "--call-timeout", "600s", "--store", &store];
        let mut child = polynym(&arguments).spawn().unwrap();
        let _silent = database.accept().unwrap();
        server::signal(child.id(), signal);
        let start = std::time::Instant::now();
        let status = loop {
            if let Some(status) = child.try_wait().unwrap() {
                break status;
            }
            if start.elapsed().as_secs() > 60 {
                child.kill().unwrap();
                panic!("a server that is opening its store does not stop");
            }
            std::thread::sleep(std::time::Duration::from_millis(20));
        };
        assert_eq!(status.code(), Some(0));
    }
}
