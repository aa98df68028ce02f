//! Imports and exports over HTTP, as files of lines.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::server::{Server, polynym};
use crate::stdout;

const IMPORT: &str = "/polynym.v1.AdminService/ImportUsers";
const EXPORT: &str = "/polynym.v1.AdminService/ExportUsers";
const LINES: &str = "application/x-ndjson";

/// A server with an HTTP listener.
pub struct HttpServer {
    pub server: Server,
    address: String,
    _folder: TempDir,
}

/// A response: its status line with its headers, and its body.
struct Answer {
    head: String,
    body: String,
}

impl HttpServer {
    pub fn start(arguments: &[&str]) -> Self {
        let mut command = polynym(&["serve", "--listen", "127.0.0.1:0", "--log", "error"]);
        let folder = tempfile::tempdir().unwrap();
        let store = format!("embedded:{}", folder.path().join("store").display());
        let own = ["--http-listen", "127.0.0.1:0", "--store", &store];
        let arguments = [&own, arguments].concat();
        let mut server = Server::start_with(&mut command, &arguments);
        let line = server.line();
        let address = line.trim_end().rsplit("//").next().unwrap().to_owned();
        Self { server, address, _folder: folder }
    }

    /// Connects, and sends a request of which `length` bytes of the body are announced.
    fn send(&self, path: &str, content_type: &str, body: &[u8], length: usize) -> TcpStream {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        let head = format!(
            "POST {path} HTTP/1.1\r\nHost: {}\r\nContent-Type: {content_type}\r\n\
             Content-Length: {length}\r\nConnection: close\r\n\r\n",
            self.address
        );
        stream.write_all(head.as_bytes()).unwrap();
        stream.write_all(body).unwrap();
        stream
    }

    fn post(&self, path: &str, content_type: &str, body: &[u8]) -> Answer {
        Answer::read(self.send(path, content_type, body, body.len()))
    }

    /// Imports lines. Returns those of the response.
    pub fn import(&self, query: &str, lines: &str) -> Vec<Value> {
        let answer = self.post(&format!("{IMPORT}?{query}"), LINES, lines.as_bytes());
        assert!(answer.head.contains(" 200 ") && answer.head.contains(LINES), "{}", answer.head);
        answer.lines()
    }
}

impl Answer {
    /// Reads an answer until the connection ends.
    fn read(mut stream: TcpStream) -> Self {
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).unwrap();
        let (head, body) = split(&answer, b"\r\n\r\n");
        let head = String::from_utf8(head.to_vec()).unwrap().to_ascii_lowercase();
        let body = if head.contains("\r\ntransfer-encoding: chunked") {
            unchunked(body)
        } else {
            body.to_vec()
        };
        Self { head, body: String::from_utf8(body).unwrap() }
    }

    fn lines(&self) -> Vec<Value> {
        self.body.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }
}

/// The bytes of a body in chunks.
fn unchunked(mut chunks: &[u8]) -> Vec<u8> {
    let mut body = Vec::new();
    loop {
        let (size, rest) = split(chunks, b"\r\n");
        let size = usize::from_str_radix(std::str::from_utf8(size).unwrap(), 16).unwrap();
        if size == 0 {
            return body;
        }
        body.extend_from_slice(&rest[..size]);
        chunks = &rest[size + 2..];
    }
}

/// The bytes before and after the first of these.
fn split<'b>(bytes: &'b [u8], at: &[u8]) -> (&'b [u8], &'b [u8]) {
    let position = bytes.windows(at.len()).position(|window| window == at).unwrap();
    (&bytes[..position], &bytes[position + at.len()..])
}

fn user(handle: &str) -> String {
    format!("{{\"identities\":[{{\"identifier\":{{\"handle\":\"{handle}\"}}}}]}}\n")
}

#[test]
fn bad_lines_are_rejected_and_the_others_imported() {
    let server = HttpServer::start(&[]);
    let long = format!("{{\"displayName\":\"{}\"}}\n", "x".repeat(4 << 20));
    let another = user("joe").replacen('{', r#"{"displayName":"Another","#, 1);
    let lines = [&user("joe"), "\n", "{\n", &another, &long, r#"{"fame":1}"#].concat();
    let answer = server.import("", &lines);
    let mut rejects: Vec<_> = answer[..answer.len() - 1]
        .iter()
        .map(|line| (line["reject"]["line"].as_str().unwrap(), &line["reject"]["reason"]))
        .collect();
    // Lines that are no users are rejected before others are imported.
    rejects.sort_unstable_by_key(|(line, _)| *line);
    let [invalid, taken] = ["LINE_INVALID", "IDENTITY_TAKEN"].map(Value::from);
    assert_eq!(rejects, [("3", &invalid), ("4", &taken), ("5", &invalid), ("6", &invalid)]);
    let report = &answer.last().unwrap()["report"];
    for (count, expected) in [("created", "1"), ("rejected", "4"), ("lines", "5")] {
        assert_eq!(report[count], expected, "{report}");
    }
}

#[test]
fn many_bad_lines_are_all_reported() {
    let server = HttpServer::start(&[]);
    let answer = server.import("", &"nonsense\n".repeat(5_000));
    assert_eq!(answer.len(), 5_001);
    assert_eq!(answer[5_000]["report"]["rejected"], "5000");
}

#[test]
fn an_export_over_http_is_that_of_the_command_line_and_can_be_imported() {
    let server = HttpServer::start(&["--tenants", "open"]);
    let sample = stdout(&polynym(&["sample", "--users", "300", "--dirty", "0"]).output().unwrap());
    let answer = server.import("tenant=one", &sample);
    assert_eq!(answer.last().unwrap()["report"]["created"], "300", "{answer:?}");

    let exported = server.post(EXPORT, "application/json", br#"{"tenant":"one"}"#);
    assert!(exported.head.contains(LINES), "{}", exported.head);
    let by_command = server.server.run(&["export", "--tenant", "one"]);
    assert_eq!(exported.body, stdout(&by_command));
    assert_eq!(exported.body.lines().count(), 301, "the tenant and its users");

    let other = HttpServer::start(&["--tenants", "open"]);
    let answer = other.import("", &exported.body);
    assert_eq!(answer.last().unwrap()["report"]["created"], "301", "{answer:?}");
    let again = other.post(EXPORT, "application/json", br#"{"tenant":"one"}"#);
    assert_eq!(again.body.lines().count(), 301);
}

#[test]
fn options_are_in_the_query() {
    let server = HttpServer::start(&[]);
    server.import("", &user("joe"));
    let both = user("joe").replace("]}", r#",{"identifier":{"handle":"grace"}}]}"#);
    let answer = server.import("on_existing=update&validate_only=true", &both);
    let change = &answer[0]["change"];
    assert_eq!(change["changes"]["identities"][0]["after"]["display"], "grace", "{answer:?}");
    assert_eq!(answer[1]["report"]["changed"], "1");

    let named = user("joe").replacen('{', r#"{"displayName":"Another","#, 1);
    let answer = server.import("on_conflict=skip_identity", &named);
    assert_eq!(answer[0]["reject"]["skipped"], true, "{answer:?}");
    assert_eq!(answer[1]["report"]["created"], "1");
}

/// No header names the operation.
#[test]
fn each_import_takes_effect_again() {
    let server = HttpServer::start(&[]);
    server.import("", &user("joe"));
    for name in ["Ann", "Joe", "Ann"] {
        let named = user("joe").replacen('{', &format!(r#"{{"displayName":"{name}","#), 1);
        let answer = server.import("on_existing=update", &named);
        assert_eq!(answer.last().unwrap()["report"]["changed"], "1", "{answer:?}");
        let shown = stdout(&server.server.run(&["resolve", "handle:joe", "--json"]));
        let shown: Value = serde_json::from_str(&shown).unwrap();
        assert_eq!(shown["user"]["displayName"], name, "{shown}");
    }
}

#[test]
fn wrong_requests_fail_before_the_first_line() {
    let server = HttpServer::start(&[]);
    let answer = server.post(IMPORT, "application/json", b"{}");
    assert!(answer.head.contains(" 415 ") && answer.head.contains("accept-post: "));
    let answer = server.post(&format!("{IMPORT}?tenants=x"), LINES, b"");
    assert!(answer.head.contains(" 400 ") && answer.body.contains("FIELD_INVALID"));
    let answer = server.post(&format!("{IMPORT}?key=shoe_size"), LINES, user("joe").as_bytes());
    assert!(answer.head.contains(" 400 "), "{}", answer.head);
    let error: Value = serde_json::from_str(&answer.body).unwrap();
    assert_eq!(error["code"], "invalid_argument");
    let answer = server.post(EXPORT, "application/json", br#"{"tenant":"nobody"}"#);
    assert!(answer.head.contains(" 404 "), "{}", answer.head);
    for (path, content_type) in [
        (format!("{IMPORT}?validate_only=true&validate_only=false"), LINES),
        (format!("{EXPORT}?tenant=default"), "application/json"),
    ] {
        let answer = server.post(&path, content_type, b"{}");
        assert!(answer.head.contains(" 400 ") && answer.body.contains("FIELD_INVALID"), "{path}");
    }
    let mut stream = TcpStream::connect(&server.address).unwrap();
    let old = format!(
        "POST {EXPORT} HTTP/1.0\r\nHost: {}\r\nContent-Type: application/json\r\n\
         Content-Length: 2\r\n\r\n{{}}",
        server.address
    );
    stream.write_all(old.as_bytes()).unwrap();
    let answer = Answer::read(stream);
    assert!(answer.head.contains(" 505 "), "{}", answer.head);
}

/// The rest of the body does not arrive.
#[test]
fn an_import_whose_lines_stop_ends_with_an_error() {
    let server = HttpServer::start(&["--call-timeout", "1s"]);
    let answer = Answer::read(server.send(IMPORT, LINES, user("joe").as_bytes(), 1_000));
    let last = answer.lines().pop().unwrap();
    assert_eq!(last["error"]["code"], "deadline_exceeded", "{last}");
    assert!(server.server.run(&["resolve", "handle:joe"]).status.success());
}

#[test]
fn the_document_is_compressed_and_known_by_its_etag() {
    let server = HttpServer::start(&[]);
    let get = |headers: &str| {
        let mut stream = TcpStream::connect(&server.address).unwrap();
        let request =
            format!("GET /openapi.json HTTP/1.0\r\nHost: {}\r\n{headers}\r\n", server.address);
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).unwrap();
        let end = answer.windows(4).position(|bytes| bytes == b"\r\n\r\n").unwrap();
        let head = String::from_utf8(answer[..end].to_vec()).unwrap();
        (head, answer[end + 4..].to_vec())
    };
    let (head, body) = get("");
    let document: Value = serde_json::from_slice(&body).unwrap();
    assert_eq!(document["openapi"], "3.1.0");
    assert_eq!(document["servers"][0], json!({ "url": "/", "description": "This server." }));
    let etag = head.lines().find_map(|line| line.strip_prefix("etag: ")).unwrap();
    let (packed, gzip) = get("Accept-Encoding: gzip\r\n");
    assert!(packed.contains("content-encoding: gzip") && gzip.len() < body.len() / 4);
    let (head, body) = get(&format!("If-None-Match: {etag}\r\n"));
    assert!(head.contains(" 304 ") && body.is_empty(), "{head}");
}
