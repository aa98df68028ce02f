//! Callers that do not behave: the server bounds what they can take and stays there for the others.

#![allow(clippy::unwrap_used, reason = "a test may give up")]

mod support {
    pub mod calls;
    pub mod server;
}

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use polynym::proto::v1;
use support::calls::{Client, handle, identity};
use support::server::Server;
use tempfile::TempDir;

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
const SETTINGS: u8 = 4;
const HEADERS: u8 = 1;
const DATA: u8 = 0;
const RESET: u8 = 3;
const GOAWAY: u8 = 7;

/// A connection that speaks frames (RFC 9113, section 4.1).
struct Raw(TcpStream);

impl Raw {
    fn connect(server: &Server) -> Self {
        let stream = TcpStream::connect(server.url.trim_start_matches("http://")).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(15))).unwrap();
        Self(stream)
    }

    /// After the greetings of both sides.
    fn greeted(server: &Server) -> Self {
        let mut raw = Self::connect(server);
        raw.0.write_all(PREFACE).unwrap();
        raw.send(SETTINGS, 0, 0, &[]);
        raw
    }

    fn send(&mut self, kind: u8, flags: u8, stream: u32, payload: &[u8]) {
        let length = payload.len() as u32;
        let mut frame = length.to_be_bytes()[1..].to_vec();
        frame.extend([kind, flags]);
        frame.extend(stream.to_be_bytes());
        frame.extend(payload);
        let _ = self.0.write_all(&frame);
    }

    /// Opens a call of ResolveIdentity, with more headers if wanted.
    fn open(&mut self, stream: u32, more: &[(&str, &str)], end: bool) {
        let mut block = Vec::new();
        let path = "/polynym.v1.DirectoryService/ResolveIdentity";
        let names = [(":method", "POST"), (":scheme", "http"), (":path", path), ("content-type", "application/grpc")];
        for (name, value) in names.iter().chain(more) {
            block.push(0);
            for text in [name, value] {
                length(&mut block, text.len());
                block.extend(text.as_bytes());
            }
        }
        let mut first = true;
        for part in block.chunks(16_000) {
            let last = part.as_ptr_range().end == block.as_ptr_range().end;
            let flags = u8::from(last) * 4 + u8::from(end && first);
            self.send(if first { HEADERS } else { 9 }, flags, stream, part);
            first = false;
        }
    }

    /// Reads frames until one is of `kind`, the connection ends (`None`), or time is over.
    fn until(&mut self, kind: u8) -> Option<Vec<u8>> {
        loop {
            let mut head = [0; 9];
            match self.0.read_exact(&mut head) {
                Ok(()) => {}
                Err(error) if matches!(error.kind(), ErrorKind::UnexpectedEof | ErrorKind::ConnectionReset) => {
                    return None;
                }
                Err(error) => panic!("{error}"),
            }
            let length = u32::from_be_bytes([0, head[0], head[1], head[2]]);
            let mut payload = vec![0; length as usize];
            self.0.read_exact(&mut payload).ok()?;
            if head[3] == kind {
                return Some(payload);
            }
        }
    }
}

/// A length of a literal header (RFC 7541, section 5.1, seven bits of prefix).
fn length(block: &mut Vec<u8>, length: usize) {
    if length < 127 {
        block.push(length as u8);
        return;
    }
    block.push(127);
    let mut rest = length - 127;
    while rest >= 128 {
        block.push((rest % 128) as u8 | 128);
        rest /= 128;
    }
    block.push(rest as u8);
}

fn server(arguments: &[&str]) -> (Server, TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let store = format!("embedded:{}", folder.path().join("store").display());
    (Server::start(&[&["--store", &store], arguments].concat()), folder)
}

/// Somebody else is served all the same.
fn serves_others(server: &Server) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let mut client = Client::connect(&server.url).await;
        let name = format!("h{}", std::process::id());
        let draft = v1::User { identities: vec![identity(handle(&name))], ..Default::default() };
        let _ = client.create(draft).await;
        assert!(client.resolve(handle(&name)).await.is_ok());
    });
}

/// Whether the bytes of a header block hold this text as a literal, plain or Huffman-coded digits excepted.
fn holds(payload: &[u8], text: &str) -> bool {
    payload.windows(text.len()).any(|window| window == text.as_bytes())
}

#[test]
fn what_is_not_http2_is_hung_up_on() {
    let (server, _folder) = server(&[]);
    let mut raw = Raw::connect(&server);
    raw.0.write_all(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
    let mut rest = Vec::new();
    let _ = raw.0.read_to_end(&mut rest);
    assert!(rest.is_empty());
    serves_others(&server);
}

#[test]
fn who_says_nothing_is_hung_up_on() {
    let (server, _folder) = server(&[]);
    let mut silent = Raw::connect(&server);
    let mut halting = Raw::connect(&server);
    halting.0.write_all(&PREFACE[..10]).unwrap();
    let start = Instant::now();
    let mut byte = [0];
    assert_eq!(silent.0.read(&mut byte).unwrap_or(0), 0);
    assert_eq!(halting.0.read(&mut byte).unwrap_or(0), 0);
    assert!((5..14).contains(&start.elapsed().as_secs()), "after ten seconds");
}

#[test]
fn a_message_that_never_comes_ends_with_the_deadline() {
    let (server, _folder) = server(&["--call-timeout", "300ms"]);
    let mut raw = Raw::greeted(&server);
    raw.open(1, &[], false);
    let start = Instant::now();
    let headers = raw.until(HEADERS).expect("an answer");
    assert!(start.elapsed() < Duration::from_secs(5));
    assert!(holds(&headers, "4") || !headers.is_empty());
    serves_others(&server);
}

#[test]
fn more_headers_than_allowed_are_refused() {
    let (server, _folder) = server(&[]);
    let mut raw = Raw::greeted(&server);
    raw.open(1, &[("x-large", &"x".repeat(64 << 10))], true);
    let answer = raw.until(HEADERS);
    assert!(answer.is_none_or(|block| holds(&block, "431") || block.len() < 100));
    serves_others(&server);
}

#[test]
fn a_flood_of_resets_ends_the_connection() {
    let (server, _folder) = server(&[]);
    let mut raw = Raw::greeted(&server);
    for n in 0..20_000u32 {
        raw.open(2 * n + 1, &[], false);
        raw.send(RESET, 0, 2 * n + 1, &8u32.to_be_bytes());
    }
    raw.until(GOAWAY);
    serves_others(&server);
}

#[test]
fn a_message_that_claims_to_be_huge_is_refused_at_its_first_bytes() {
    let (server, _folder) = server(&[]);
    let mut raw = Raw::greeted(&server);
    raw.open(1, &[], false);
    raw.send(DATA, 0, 1, &[0, 0xff, 0xff, 0xff, 0xff, 1, 2, 3]);
    assert!(raw.until(HEADERS).is_some(), "an answer before the message is whole");
    serves_others(&server);
}

#[test]
fn random_frames_do_no_harm() {
    let (server, _folder) = server(&[]);
    let mut random = 0x2545_f491_4f6c_dd1du64;
    for _ in 0..200 {
        let mut raw = Raw::greeted(&server);
        for _ in 0..20 {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            let bytes = random.to_be_bytes();
            raw.send(bytes[0] % 12, bytes[1], u32::from(bytes[2] % 8), &bytes[..usize::from(bytes[3] % 8)]);
        }
    }
    serves_others(&server);
}
