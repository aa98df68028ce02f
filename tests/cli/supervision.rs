//! A server under a balancer, an orchestrator or a service manager: what it tells them when it
//! starts and stops.

use std::net::SocketAddr;
use std::process::Child;
use std::time::{Duration, Instant};

use super::{assert_fails, stderr, stdout};
use crate::scrape::{free_address, metrics, page};
use crate::server::{Server, polynym};

/// The maximum time of a step on a busy machine.
const TIMEOUT: Duration = Duration::from_secs(60);
/// A delay that no test waits for.
const LONG: &str = "600s";

/// Waits until this is true.
fn until(condition: impl Fn() -> bool) {
    let start = Instant::now();
    while !condition() {
        assert!(start.elapsed() < TIMEOUT);
        std::thread::sleep(Duration::from_millis(10));
    }
}

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
