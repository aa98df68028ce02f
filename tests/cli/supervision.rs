//! A server under a balancer, an orchestrator or a service manager, when it starts and stops.

use std::net::SocketAddr;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{self as unix, UnixDatagram};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use tempfile::NamedTempFile;

use super::{assert_fails, stderr, stdout};
use crate::scrape::{free_address, metrics, page};
use crate::server::{self, Server, polynym, until};

/// The maximum time of a step on a busy machine.
const TIMEOUT: Duration = Duration::from_secs(60);
/// A delay that no test waits for.
const LONG: &str = "600s";

/// A server with sample users, and its port for operators.
fn sample(arguments: &[&str]) -> (Server, SocketAddr) {
    let address = free_address();
    let operators = ["--sample", "--admin-listen", &address.to_string()];
    (Server::start(&[&operators, arguments].concat()), address)
}

#[test]
fn a_stopping_server_serves_for_the_delay_without_being_ready() {
    let (server, operators) = sample(&["--drain-delay", LONG]);
    assert_eq!(page(operators, "/readyz").0, 200);
    server.signal("TERM");
    until(|| page(operators, "/readyz").0 == 503);
    assert!(page(operators, "/readyz").1.starts_with("stopping"));
    assert!(metrics(operators).contains("\npolynym_ready 0\n"));

    until(|| stdout(&server.run(&["health"])) == "NOT_SERVING\n");
    let resolved = server.run(&["resolve", "handle:joe"]);
    assert!(resolved.status.success(), "{}", stderr(&resolved));
    assert!(server.run(&["user", "create", "--name", "X"]).status.success());

    server.signal("TERM");
    assert_eq!(server.wait().code(), Some(130));
}

#[test]
fn a_server_stops_after_the_delay() {
    let (server, operators) = sample(&["--drain-delay", "1s"]);
    let start = Instant::now();
    server.signal("TERM");
    assert!(server.wait().success());
    assert!((Duration::from_secs(1)..TIMEOUT).contains(&start.elapsed()), "{:?}", start.elapsed());
    assert!(std::net::TcpStream::connect(operators).is_err());
}

fn read_to_end(log: &NamedTempFile) -> String {
    std::fs::read_to_string(log.path()).unwrap()
}

/// A server whose database cannot be reached, with its log.
fn without_database(arguments: &[&str]) -> (Child, NamedTempFile) {
    let log = NamedTempFile::new().unwrap();
    let store = format!("mongodb://joe:s3cret@{}/db?serverSelectionTimeoutMS=100", free_address());
    let child = polynym(&["serve", "--listen", "127.0.0.1:0", "--store", &store])
        .args(arguments)
        .stderr(log.reopen().unwrap())
        .spawn()
        .unwrap();
    (child, log)
}

/// The log, which has no password.
fn read(log: &NamedTempFile) -> String {
    let text = read_to_end(log);
    assert!(!text.contains("s3cret") && !text.contains("joe"), "{text}");
    text
}

#[test]
fn a_server_waits_for_its_database_as_long_as_it_is_told() {
    for (wait, waits) in [("0", false), ("10s", true)] {
        let start = Instant::now();
        let (mut child, log) = without_database(&["--wait-for-store", wait]);
        assert_eq!(child.wait().unwrap().code(), Some(1));
        let text = read(&log);
        assert_eq!(text.contains("trying again"), waits, "{text}");
        assert!(text.lines().last().unwrap().contains("cannot reach MongoDB"), "{text}");
        assert!(!waits || start.elapsed() >= Duration::from_secs(10), "{:?}", start.elapsed());
    }
}

#[test]
fn a_signal_ends_a_server_that_waits_for_its_database() {
    for signal in ["TERM", "INT"] {
        let (mut child, log) = without_database(&["--wait-for-store", LONG]);
        until(|| read(&log).contains("trying again"));
        server::signal(child.id(), signal);
        until(|| read(&log).contains("stopped before the store was open"));
        assert_eq!(child.wait().unwrap().code(), Some(0));
    }
}

#[test]
fn a_server_does_not_wait_for_a_store_that_is_missing() {
    let folder = tempfile::tempdir().unwrap();
    let store = format!("embedded:{}", folder.path().join("store").display());
    let serve = ["serve", "--listen", "127.0.0.1:0", "--store", &store];
    let output = polynym(&serve).args(["--wait-for-store", LONG]).output().unwrap();
    assert_fails(&output, 1, &["has no store"]);
}

/// Starts and stops a server whose service manager has this socket, and asserts what it is told.
fn notify(socket: &UnixDatagram, name: &str) {
    socket.set_read_timeout(Some(TIMEOUT)).unwrap();
    let told = || {
        let mut buffer = [0; 64];
        let length = socket.recv(&mut buffer).unwrap();
        String::from_utf8(buffer[..length].to_vec()).unwrap()
    };
    let mut command = polynym(&["serve", "--ephemeral", "--log", "error"]);
    let mut child = command.env("NOTIFY_SOCKET", name).stdin(Stdio::null()).spawn().unwrap();
    assert_eq!(told(), "READY=1");
    server::signal(child.id(), "TERM");
    assert_eq!(told(), "STOPPING=1");
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn a_service_manager_is_told_the_start_and_the_stop() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("notify");
    notify(&UnixDatagram::bind(&path).unwrap(), path.to_str().unwrap());

    let name = format!("polynym-test-{}", std::process::id());
    let address = unix::SocketAddr::from_abstract_name(&name).unwrap();
    notify(&UnixDatagram::bind_addr(&address).unwrap(), &format!("@{name}"));
}

#[test]
fn a_server_starts_even_if_its_service_manager_is_gone() {
    let log = NamedTempFile::new().unwrap();
    let mut command = polynym(&["serve", "--listen", "127.0.0.1:0", "--sample"]);
    command.env("NOTIFY_SOCKET", "/nowhere/notify").stderr(log.reopen().unwrap());
    let server = Server::start_with(&mut command, &["--drain-delay", "0"]);
    until(|| read_to_end(&log).contains("cannot notify the service manager"));
    server.signal("TERM");
    assert!(server.wait().success());
}
