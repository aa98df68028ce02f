//! The examples and promises of README.md.

#![allow(clippy::unwrap_used, reason = "a panic fails the test")]

use std::process::Command;

use polynym_client::testing::Server;
use polynym_client::{Kind, handle};

const PAGE: &str = include_str!("../README.md");
const EXAMPLE: &str = include_str!("../examples/ten_lines.rs");

#[test]
fn the_lines_of_the_page_run() {
    let (_, lines) = EXAMPLE.split_once("\n\n").unwrap();
    assert!(PAGE.contains(lines), "README.md has other lines than examples/ten_lines.rs");

    let server = Server::start_program(client_testbed::program().unwrap()).unwrap();
    let own = std::env::current_exe().unwrap();
    let example = own.ancestors().nth(2).unwrap().join("examples/ten_lines");
    let mut command = Command::new(example);
    let output = command.env("POLYNYM_SERVER", server.address()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(String::from_utf8(output.stdout).unwrap().trim().len(), 36);
}

#[tokio::test]
async fn a_server_for_tests_is_empty_and_ends() {
    let server = Server::start_program(client_testbed::program().unwrap()).unwrap();
    let client = server.client();
    let error = client.resolve(handle("joe")).await.unwrap_err();
    assert_eq!((error.kind(), error.reason()), (Kind::NotFound, "IDENTITY_NOT_FOUND"));

    drop(server);
    let error = client.resolve(handle("joe")).await.unwrap_err();
    assert_eq!((error.kind(), error.reason()), (Kind::Unavailable, ""));
}
