//! The connections of browsers: whose they are, and what the server waits for.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use crate::browser::Site;
use crate::tokens::GuardedSite;

/// The time limit of reads, which matters in a failure alone.
const TIMEOUT: Duration = Duration::from_secs(120);

/// The body of an upload.
const UPLOAD: &str = "--x\r\ncontent-disposition: form-data; name=\"file\"; \
    filename=\"a.csv\"\r\n\r\nemail\r\na@example.com\r\n--x--\r\n";

/// A connection to a server.
struct Connection(TcpStream);

impl Connection {
    fn open(site: &Site) -> Self {
        let stream = TcpStream::connect(site.url.trim_start_matches("http://")).unwrap();
        stream.set_read_timeout(Some(TIMEOUT)).unwrap();
        Self(stream)
    }

    /// Sends the head of a request, and the text after it.
    fn send(&mut self, request: &str, headers: &[&str], body: &str) {
        let lines = [&[request, "host: localhost"], headers].concat().join("\r\n");
        self.0.write_all(format!("{lines}\r\n\r\n{body}").as_bytes()).unwrap();
    }

    /// Begins an upload, and waits until the server asks for its body.
    fn begin_upload(site: &Site) -> Self {
        let mut upload = Self::open(site);
        let length = format!("content-length: {}", UPLOAD.len());
        let content_type = "content-type: multipart/form-data; boundary=x";
        let headers = [&*length, content_type, "expect: 100-continue", "connection: close"];
        upload.send("POST /console/t/default/import HTTP/1.1", &headers, "");
        let mut interim = [0; 25];
        upload.0.read_exact(&mut interim).unwrap();
        assert_eq!(&interim, b"HTTP/1.1 100 Continue\r\n\r\n");
        upload
    }

    /// Sends the body of an upload, which leads to its page.
    fn end_upload(mut self) {
        self.0.write_all(UPLOAD.as_bytes()).unwrap();
        let answer = self.rest();
        assert!(answer.starts_with("HTTP/1.1 303"), "{answer}");
    }

    /// The bytes that the server sends before it closes the connection.
    fn rest(&mut self) -> String {
        let mut text = String::new();
        self.0.read_to_string(&mut text).unwrap();
        text
    }

    /// Whether the server has closed the connection, on which it sends nothing.
    fn is_closed(&mut self) -> bool {
        self.0.set_read_timeout(Some(Duration::from_millis(20))).unwrap();
        self.0.read(&mut [0]).is_ok_and(|count| count == 0)
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn strangers_do_not_end_the_connections_of_callers() {
    // A quarter of the connections may be without a credential.
    let callers = [("ana", "viewer", "default")];
    let site = GuardedSite::start_with(&callers, &["--max-connections", "8"]);
    let mut browser = site.browser("ana").await;
    browser.get("/console/t/default/policies").await.assert_has(&["Policies of"]);
    let mut strangers: Vec<_> = (0..3).map(|_| Connection::open(&site.site)).collect();
    while !strangers.iter_mut().any(Connection::is_closed) {}
    for _ in 0..2 {
        browser.get("/console/t/default/policies").await.assert_has(&["Policies of"]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_caller_has_half_of_the_connections() {
    let callers = [("ana", "resolver", "*"), ("ben", "resolver", "*")];
    let site = GuardedSite::start_with(&callers, &["--max-connections", "8"]);
    let first = site.browser("ana").await;
    let mut open = Vec::new();
    // No page of a resolver calls the API, which would be one more connection.
    while open.len() < 3 {
        let mut more = site.site.browser().await;
        more.steal(&first);
        assert_eq!(more.get("/console/t/default/").await.status, 200);
        open.push(more);
    }
    let mut beyond = site.site.browser().await;
    beyond.steal(&first);
    let refused = beyond.get("/console/t/default/").await;
    assert_eq!(refused.status, 429);
    refused.assert_has(&["this caller has half of the server's connections"]);
    site.browser("ben").await;
}

#[test]
fn an_upload_may_take_longer_than_a_connection() {
    let limits = ["--connection-idle", "500ms", "--connection-age", "1s", "--drain", "1ms"];
    let site = Site::start(&limits);
    let upload = Connection::begin_upload(&site);
    for _ in 0..4 {
        let mut idle = Connection::open(&site);
        idle.send("GET /healthz HTTP/1.1", &[], "");
        assert!(idle.rest().ends_with("ok\n"));
    }
    upload.end_upload();
}

#[test]
fn a_stop_waits_for_requests() {
    let site = Site::start(&["--drain", "600s"]);
    let upload = Connection::begin_upload(&site);
    site.server.signal("TERM");
    // A connection without a call would be closed meanwhile.
    std::thread::sleep(Duration::from_secs(1));
    upload.end_upload();
    assert!(site.server.wait().success());
}

#[test]
fn a_request_with_an_encoding_of_its_length_ends_its_connection() {
    let site = Site::start(&[]);
    let mut connection = Connection::open(&site);
    let headers = ["transfer-encoding: chunked", "content-type: application/x-www-form-urlencoded"];
    let body = "4\r\nq=%40\r\n0\r\n\r\n";
    connection.send("POST /console/t/default/search HTTP/1.1", &headers, body);
    let answer = connection.rest();
    assert!(answer.contains("\r\nconnection: close\r\n"), "{answer}");
}
