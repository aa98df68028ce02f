//! What is counted, as Prometheus reads it.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};

use super::{err, json};
use crate::server::{Server, polynym};

fn metrics(address: SocketAddr) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream
        .write_all(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        .unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    text
}

#[test]
fn an_identity_that_goes_to_whoever_had_it_verified_is_counted() {
    // Free a moment ago: what listens there next is the server, unless another program is very
    // quick.
    let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let server = Server::start(&["--sample", "--metrics-listen", &address.to_string()]);
    let told = metrics(address);
    assert!(told.contains("polynym_displaced_identities_total 0\n"), "{told}");
    assert!(
        told.contains("polynym_panics_total 0\n") && told.contains("polynym_build_info{version="),
        "{told}"
    );
    let run = |arguments: &[&str]| {
        let output = server.run(arguments);
        assert!(output.status.success(), "{arguments:?}: {}", err(&output));
        json(&output).pop().unwrap()
    };
    run(&["tenant", "set", "--json", "--verified-wins", "on"]);
    run(&["user", "create", "--json", "--identity", "email:both@example.com"]);
    let winner = run(&["user", "create", "--json"]);
    let id = winner["user"]["userId"].as_str().or(winner["userId"].as_str()).unwrap();
    run(&["identity", "link", "--json", "--verified", id, "email:both@example.com"]);
    let told = metrics(address);
    assert!(told.contains("polynym_displaced_identities_total 1\n"), "{told}");
    assert!(!told.contains("example.com"), "{told}");
}

#[test]
fn a_place_for_metrics_that_is_taken_is_told() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let place = taken.local_addr().unwrap().to_string();
    let output =
        polynym(&["serve", "--sample", "--listen", "127.0.0.1:0", "--metrics-listen", &place])
            .output()
            .unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(err(&output).contains(&format!("cannot tell metrics on {place}")), "{}", err(&output));
}
