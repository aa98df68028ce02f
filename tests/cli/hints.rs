//! Errors that lead on: each names the next command or flag. The server's log names refused calls.

use std::fs::{self, File};
use std::io::Write;
use std::process::Stdio;

use rcgen::CertificateParams;

use super::client::sample;
use super::{assert_fails, stderr, stdout};
use crate::server::{Server, polynym};
use crate::support::tls::Authority;

#[test]
fn a_call_without_a_right_says_how_to_get_it() {
    let folder = tempfile::tempdir().unwrap();
    let credentials = folder.path().join("callers.toml").to_str().unwrap().to_owned();
    let token = folder.path().join("token").to_str().unwrap().to_owned();
    let create = ["token", "create", "reader", "--role", "resolver", "--credentials", &credentials];
    fs::write(&token, stdout(&polynym(&create).output().unwrap())).unwrap();
    let log = folder.path().join("log");
    let mut command = polynym(&["serve", "--listen", "127.0.0.1:0", "--log", "info", "--sample"]);
    command.stderr(File::create(&log).unwrap());
    let server = Server::start_with(&mut command, &["--credentials", &credentials]);

    let get = ["user", "get", "handle:joe"];
    let none = ["CREDENTIAL_INVALID", "--token-file", "polynym token create"];
    assert_fails(&server.run(&get), 1, &none);
    let own = ["--token-file", &token];
    let list = [&["user", "list"][..], &own].concat();
    assert_fails(&server.run(&list), 1, &["ROLE_DENIED", "viewer", "polynym token list"]);
    let tenant = [&get[..], &own, &["--tenant", "acme"]].concat();
    assert_fails(&server.run(&tenant), 1, &["TENANT_DENIED", "--tenant"]);

    let log = fs::read_to_string(&log).unwrap();
    let line = |part: &str| log.lines().find(|line| line.contains(part)).expect(&log).to_owned();
    let started = line("started");
    for part in [env!("CARGO_PKG_VERSION"), "temporary", server.url.trim_start_matches("http://")] {
        assert!(started.contains(part), "{started}");
    }
    let denied = line("CREDENTIAL_INVALID");
    assert!(denied.contains("call refused") && denied.contains("ResolveIdentity"), "{denied}");
    assert!(denied.contains("127.0.0.1:"), "{denied}");
    let denied = line("ROLE_DENIED");
    assert!(denied.contains("reader") && denied.contains("SearchUsers"), "{denied}");
}

#[test]
fn a_refused_creation_is_logged_with_its_reason_and_without_an_id() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("log");
    let mut command = polynym(&["serve", "--listen", "127.0.0.1:0", "--log", "info", "--sample"]);
    let server = Server::start_with(command.stderr(File::create(&log).unwrap()), &[]);
    let create = ["user", "create", "--identity", "handle:joe"];
    assert_fails(&server.run(&create), 1, &["IDENTITY_TAKEN"]);
    stdout(&server.run(&["user", "create", "--identity", "handle:joe2"]));
    let log = fs::read_to_string(&log).unwrap();
    let lines: Vec<_> = log.lines().filter(|line| line.contains("CreateUser")).collect();
    let [refused, reason, done] = lines[..] else { panic!("{log}") };
    assert!(refused.contains("refused") && !refused.contains("user="), "{refused}");
    assert!(reason.contains("IDENTITY_TAKEN") && reason.contains("127.0.0.1:"), "{reason}");
    assert!(done.contains("done") && done.contains("user="), "{done}");
}

#[test]
fn wrong_addresses_and_numbers_say_what_is_meant() {
    let server = sample();
    let national = server.run(&["user", "get", "phone:030 123456"]);
    assert_fails(&national, 1, &["IDENTIFIER_INVALID", "phone/DE:030123456"]);

    // A server without a listener for operators, and a port with another protocol.
    let nothing = server.run(&["top", "--once", "--metrics", "http://127.0.0.1:1"]);
    assert_fails(&nothing, 1, &["--admin-listen 127.0.0.1:9464", "--metrics"]);
    let other = server.run(&["top", "--once", "--metrics", &server.url]);
    assert_fails(&other, 1, &["--admin-listen 127.0.0.1:9464", "--metrics"]);

    let authority = Authority::new();
    authority
        .issue("server", CertificateParams::new(vec!["users.example.com".to_owned()]).unwrap());
    let server = authority.serve();
    let named = server.run(&["user", "list", "--ca", &authority.path("ca.pem")]);
    assert_fails(
        &named,
        1,
        &["cannot reach", "name the server in --server as its certificate does"],
    );
}

#[test]
fn an_import_whose_server_is_killed_says_how_to_go_on() {
    let server = sample();
    let mut import = polynym(&["import", "-", "--rejects", "/dev/null"])
        .env("POLYNYM_SERVER", &server.url)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = import.stdin.take().unwrap();
    writeln!(lines, r#"{{"identities":[{{"identifier":{{"handle":"before"}}}}]}}"#).unwrap();
    lines.flush().unwrap();
    while !server.run(&["resolve", "handle:before"]).status.success() {}
    server.signal("KILL");
    let _ = server.wait();
    drop(lines);
    let output = import.wait_with_output().unwrap();
    assert_fails(
        &output,
        1,
        &[
            "interrupted after 1 lines",
            "the connection to the server was lost",
            "same command again",
        ],
    );
    assert!(!stderr(&output).contains("TLS"), "{}", stderr(&output));
}
