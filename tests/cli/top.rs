//! `polynym top` without a terminal.

use serde_json::Value;

use super::stderr;
use crate::scrape::free_address;
use crate::server::{Server, polynym};

#[test]
fn one_measurement_is_printed_without_a_terminal() {
    let address = free_address();
    let server = Server::start(&["--sample", "--admin-listen", &address.to_string()]);
    let url = format!("http://{address}");
    let top = |more: &[&str]| {
        let arguments = ["top", "--metrics", &url, "--interval", "2s"];
        let mut command = polynym(&[&arguments, more].concat());
        let child = command.stdout(std::process::Stdio::piped()).spawn().unwrap();
        std::thread::sleep(std::time::Duration::from_millis(700));
        assert!(server.run(&["resolve", "handle:joe"]).status.success());
        server.run(&["resolve", "handle:nobody"]);
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
    assert!(method["calls"].as_f64().unwrap() > 0.5 && method["times"]["p99"].is_number());
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
