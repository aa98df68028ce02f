//! The examples and promises of README.md.

#![allow(clippy::unwrap_used, reason = "a panic fails the test")]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use futures_util::TryStreamExt;
use polynym_client::testing::Server;
use polynym_client::v1::{ListTenantsRequest, SearchUsersRequest, User};
use polynym_client::{Kind, handle};

const PAGE: &str = include_str!("../README.md");
const EXAMPLE: &str = include_str!("../examples/ten_lines.rs");

#[test]
fn the_lines_of_the_page_run() {
    let (_, lines) = EXAMPLE.split_once("\n\n").unwrap();
    assert!(PAGE.contains(lines), "README.md has other lines than examples/ten_lines.rs");

    let server = Server::start_program(client_testbed::program().unwrap()).unwrap();
    let mut command = Command::new(example("ten_lines"));
    let output = command.env("POLYNYM_SERVER", server.address()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(String::from_utf8(output.stdout).unwrap().trim().len(), 36);
}

fn example(name: &str) -> PathBuf {
    let own = std::env::current_exe().unwrap();
    own.ancestors().nth(2).unwrap().join("examples").join(name)
}

/// A program that ends with its test.
struct Program(Child);

impl Drop for Program {
    fn drop(&mut self) {
        self.0.kill().and_then(|()| self.0.wait()).unwrap();
    }
}

#[test]
fn the_web_service_signs_up_and_looks_up() {
    let server = Server::start_program(client_testbed::program().unwrap()).unwrap();
    let mut command = Command::new(example("web"));
    command.env("POLYNYM_SERVER", server.address()).stdout(Stdio::piped());
    let mut web = Program(command.spawn().unwrap());
    let mut line = String::new();
    BufReader::new(web.0.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let call = |line_of_request: &str| {
        let mut stream = TcpStream::connect(line.trim().trim_start_matches("http://")).unwrap();
        write!(stream, "{line_of_request} HTTP/1.0\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let (_, answer) = answer.split_once(' ').unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        (head[..3].to_owned(), body.to_owned())
    };
    let status = |line_of_request: &str| call(line_of_request).0;

    assert_eq!(status("GET /users/joe@example.com"), "404");
    assert_eq!(status("POST /sign-up?email=Joe@Example.com&name=Joe"), "201");
    assert_eq!(status("POST /sign-up?email=joe@example.com&name=Joe"), "200");
    assert_eq!(status("POST /sign-up?email=joe&name=Joe"), "400");
    let (status, body) = call("GET /users/joe@example.com");
    assert_eq!(status, "200");
    assert!(body.contains(r#""name":"Joe""#), "{body}");
}

#[tokio::test]
async fn lists_have_all_items_of_their_pages() {
    let server = Server::start_program(client_testbed::program().unwrap()).unwrap();
    let client = server.client();
    for name in ["joe", "ann", "eve"] {
        client.get_or_create(handle(name), User::default()).await.unwrap();
    }
    let request = SearchUsersRequest { page_size: 1, ..Default::default() };
    let users: Vec<_> = client.directory().search_users_all(request).try_collect().await.unwrap();
    assert_eq!(users.len(), 3);
    let request = ListTenantsRequest { page_size: 1, ..Default::default() };
    let tenants: Vec<_> = client.admin().list_tenants_all(request).try_collect().await.unwrap();
    assert_eq!(tenants.len(), 1);
    let names = client.admin().list_attribute_names_all(Default::default());
    assert_eq!(names.try_collect::<Vec<String>>().await.unwrap(), [""; 0]);
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
