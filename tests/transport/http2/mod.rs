//! Misbehaving clients: the server bounds their resources and keeps serving other clients.

mod floods;
mod protocol;
pub mod raw;
mod slow;
mod small_frames;
mod stopping;
pub mod store;
mod unread;

use std::io::{Read, Write};
use std::time::{Duration, Instant};

use polynym_proto::v1;
use tonic::{Code, Status};

use crate::calls::{Client, handle, identity};
use crate::server::Server;
use raw::{DATA, GOAWAY, HEADERS, PREFACE, RESET, Raw};
use store::{TestStore, tests_on_store};

/// Runs a client future to completion.
pub fn block_on<T>(client: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(client)
}

/// A time limit that a busy machine meets.
pub const TIMEOUT: Duration = Duration::from_secs(60);

/// Asserts that another client is served. With a short call timeout, a busy machine may need
/// several attempts.
pub fn serves_others(server: &Server) {
    block_on(async {
        let mut client = Client::connect(&server.url).await;
        let user =
            v1::User { identities: vec![identity(handle("another_user"))], ..Default::default() };
        let since = Instant::now();
        loop {
            let _ = client.create(user.clone()).await;
            match client.resolve(handle("another_user")).await {
                Ok(_) => return,
                Err(status) if since.elapsed() < TIMEOUT && is_slow(&status) => {}
                Err(status) => panic!("{status:?}"),
            }
        }
    });
}

/// Returns true if the call timed out, or if the create before it did.
pub fn is_slow(status: &Status) -> bool {
    matches!(status.code(), Code::DeadlineExceeded | Code::NotFound)
}

/// Returns true if a header block contains this text as a plain literal, not Huffman-coded.
fn holds(payload: &[u8], text: &str) -> bool {
    payload.windows(text.len()).any(|window| window == text.as_bytes())
}

tests_on_store! {
    other_protocols_are_disconnected
    silent_clients_are_disconnected
    a_missing_message_ends_at_the_deadline
    oversized_headers_are_refused
    a_flood_of_resets_ends_the_connection
    the_log_reports_other_protocols_but_not_resets
    an_oversized_message_is_refused_at_its_prefix
    random_frames_do_no_harm
}

fn other_protocols_are_disconnected(store: &TestStore) {
    let server = store.serve(&[]);
    let mut raw = Raw::connect(&server);
    raw.0.write_all(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
    let mut rest = Vec::new();
    let _ = raw.0.read_to_end(&mut rest);
    assert!(rest.is_empty());
    serves_others(&server);
}

fn silent_clients_are_disconnected(store: &TestStore) {
    let server = store.serve(&[]);
    let mut silent = Raw::connect(&server);
    let mut halting = Raw::connect(&server);
    halting.0.write_all(&PREFACE[..10]).unwrap();
    let start = Instant::now();
    let mut byte = [0];
    assert_eq!(silent.0.read(&mut byte).unwrap_or(0), 0);
    assert_eq!(halting.0.read(&mut byte).unwrap_or(0), 0);
    assert!((Duration::from_secs(5)..TIMEOUT).contains(&start.elapsed()), "after ten seconds");
}

fn a_missing_message_ends_at_the_deadline(store: &TestStore) {
    let server = store.serve(&["--call-timeout", "300ms"]);
    let mut raw = Raw::greeted(&server);
    raw.open(1, &[], false);
    let start = Instant::now();
    let headers = raw.until(HEADERS).expect("an answer");
    assert!(start.elapsed() < TIMEOUT);
    assert!(holds(&headers, "4") || !headers.is_empty());
    serves_others(&server);
}

fn oversized_headers_are_refused(store: &TestStore) {
    let server = store.serve(&[]);
    let mut raw = Raw::greeted(&server);
    raw.open(1, &[("x-large", &"x".repeat(64 << 10))], true);
    let answer = raw.until(HEADERS);
    assert!(answer.is_none_or(|block| holds(&block, "431") || block.len() < 100));
    serves_others(&server);
}

fn a_flood_of_resets_ends_the_connection(store: &TestStore) {
    let server = store.serve(&[]);
    let mut raw = Raw::greeted(&server);
    for n in 0..20_000u32 {
        raw.open(2 * n + 1, &[], false);
        raw.send(RESET, 0, 2 * n + 1, &8u32.to_be_bytes());
    }
    raw.until(GOAWAY);
    serves_others(&server);
}

/// Connection errors of clients are not logged, except those that help to configure a client.
fn the_log_reports_other_protocols_but_not_resets(store: &TestStore) {
    let (server, log) = store.serve_logged(&[]);
    let mut raw = Raw::greeted(&server);
    for n in 0..2_000u32 {
        raw.open(2 * n + 1, &[], false);
        raw.send(RESET, 0, 2 * n + 1, &8u32.to_be_bytes());
    }

    raw.until(GOAWAY);
    for start in [&b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"[..], &[22, 3, 1, 2, 0, 1, 0, 1, 252, 3, 3]]
    {
        let mut stranger = Raw::connect(&server);
        stranger.0.write_all(start).unwrap();
        let _ = stranger.0.read_to_end(&mut Vec::new());
    }
    server.signal("TERM");
    server.wait();
    let log = std::fs::read_to_string(log.path()).unwrap();
    assert!(log.contains("HTTP/1") && log.contains("TLS"), "{log}");
    assert!(!log.contains("reset"), "{log}");
}

fn an_oversized_message_is_refused_at_its_prefix(store: &TestStore) {
    let server = store.serve(&[]);
    let mut raw = Raw::greeted(&server);
    raw.open(1, &[], false);
    raw.send(DATA, 0, 1, &[0, 0xff, 0xff, 0xff, 0xff, 1, 2, 3]);
    assert!(raw.until(HEADERS).is_some(), "an answer before the message is complete");
    serves_others(&server);
}

fn random_frames_do_no_harm(store: &TestStore) {
    let server = store.serve(&[]);
    let mut random = 0x2545_f491_4f6c_dd1du64;
    for _ in 0..200 {
        let mut raw = Raw::greeted(&server);
        for _ in 0..20 {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            let bytes = random.to_be_bytes();
            raw.send(
                bytes[0] % 12,
                bytes[1],
                u32::from(bytes[2] % 8),
                &bytes[..usize::from(bytes[3] % 8)],
            );
        }
    }
    serves_others(&server);
}
