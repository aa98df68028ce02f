//! `polynym top` without a terminal.

use std::io::{self, BufRead, BufReader, Write};
use std::net::{Shutdown, TcpListener};
use std::process::Stdio;
use std::thread::sleep;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::stderr;
use crate::scrape::{free_address, metrics};
use crate::server::{Server, polynym};

/// Answers the next request with a page.
fn answer(pages: &TcpListener, page: &str) {
    let (mut stream, _) = pages.accept().unwrap();
    let request = BufReader::new(stream.try_clone().unwrap()).lines();
    assert!(request.map(Result::unwrap).any(|line| line.is_empty()));
    let head = "HTTP/1.1 200 OK\r\nConnection: close\r\n";
    write!(stream, "{head}Content-Length: {}\r\n\r\n{page}", page.len()).unwrap();
    stream.shutdown(Shutdown::Write).unwrap();
    io::copy(&mut stream, &mut io::sink()).unwrap();
}

#[test]
fn one_measurement_is_printed_without_a_terminal() {
    let address = free_address();
    let server = Server::start(&["--sample", "--admin-listen", &address.to_string()]);
    let begun = Instant::now();
    // The server sets its gauges soon after its start.
    while !metrics(address).contains("\npolynym_connections ") {
        assert!(begun.elapsed() < Duration::from_secs(60), "{}", metrics(address));
        sleep(Duration::from_millis(10));
    }
    let pages = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", pages.local_addr().unwrap());
    let top = |more: &[&str]| {
        let arguments = ["top", "--metrics", &url, "--interval", "100ms"];
        let mut command = polynym(&[&arguments, more].concat());
        let child = command.stdout(Stdio::piped()).spawn().unwrap();
        // The calls lie between the two pages that it compares, however long they take.
        answer(&pages, &metrics(address));
        assert!(server.run(&["resolve", "handle:joe"]).status.success());
        server.run(&["resolve", "handle:nobody"]);
        answer(&pages, &metrics(address));
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success());
        String::from_utf8(output.stdout).unwrap()
    };
    let text = top(&[]);
    for part in ["ResolveIdentity", "NOT_FOUND", "look-up 0/1024", "connections: 0"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let json: Value = serde_json::from_str(&top(&["--json"])).unwrap();
    let method = &json["methods"][0];
    assert_eq!(method["name"], "ResolveIdentity");
    assert!(method["calls"].as_f64().unwrap() > 0.0 && method["times"]["p99"].is_number());
    assert!(json["errors"]["NOT_FOUND"].is_number());
}

#[test]
fn unreachable_servers_are_named() {
    let url = format!("http://{}", free_address());
    let output = polynym(&["top", "--metrics", &url]).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains(&url), "{}", stderr(&output));
    let server = Server::start(&["--sample"]);
    let output = polynym(&["top", "--metrics", &server.url]).output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{output:?}");
}
