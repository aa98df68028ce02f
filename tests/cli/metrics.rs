//! Metrics in the Prometheus format.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};

use super::{json, stderr};
use crate::scrape::free_address;
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
fn takeovers_by_verified_identities_are_counted() {
    let address = free_address();
    let server = Server::start(&["--sample", "--metrics-listen", &address.to_string()]);
    let scraped = metrics(address);
    assert!(scraped.contains("polynym_displaced_identities_total 0\n"), "{scraped}");
    assert!(
        scraped.contains("polynym_panics_total 0\n")
            && scraped.contains("polynym_build_info{version="),
        "{scraped}"
    );

    let run = |arguments: &[&str]| {
        let output = server.run(arguments);
        assert!(output.status.success(), "{arguments:?}: {}", stderr(&output));
        json(&output).pop().unwrap()
    };
    run(&["tenant", "set", "--json", "--verified-wins", "on"]);
    run(&["user", "create", "--json", "--identity", "email:both@example.com"]);
    let winner = run(&["user", "create", "--json"]);
    let id = winner["user"]["userId"].as_str().or(winner["userId"].as_str()).unwrap();
    run(&["identity", "link", "--json", "--verified", id, "email:both@example.com"]);
    let scraped = metrics(address);
    assert!(scraped.contains("polynym_displaced_identities_total 1\n"), "{scraped}");
    assert!(!scraped.contains("example.com"), "{scraped}");
}

#[test]
fn a_metrics_address_in_use_is_reported() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let output =
        polynym(&["serve", "--sample", "--listen", "127.0.0.1:0", "--metrics-listen", &address])
            .output()
            .unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(
        stderr(&output).contains(&format!("cannot listen on {address}")),
        "{}",
        stderr(&output)
    );
}
