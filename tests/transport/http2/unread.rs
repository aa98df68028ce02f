//! Clients that do not read their answers: the memory of pending answers is bounded, and the
//! connection is closed.

use std::collections::BTreeSet;
use std::thread::sleep;
use std::time::{Duration, Instant};

use polynym_proto::v1;

use super::raw::{END, Frame, HEADERS, Raw};
use super::store::{TestStore, tests_on_store};
use super::{TIMEOUT, block_on, is_slow, serves_others};
use crate::calls::{Client, handle, identity};

const BATCH: &str = "/polynym.v1.DirectoryService/BatchGetUsers";
const MEBI: usize = 1 << 20;

/// Registers a user of about 440 KiB in several calls and returns its id.
async fn large(url: &str) -> String {
    let mut client = Client::connect(url).await;
    let identities = vec![identity(handle("large"))];
    let mut user = client.create(v1::User { identities, ..Default::default() }).await.unwrap();
    let text = || v1::AttributeValue {
        kind: Some(v1::attribute_value::Kind::StringValue("x".repeat(4_096))),
    };

    for part in 0..9 {
        user.attributes = (0..12).map(|n| (format!("text{part}_{n}"), text())).collect();
        let fields: Vec<_> =
            user.attributes.keys().map(|name| format!("attributes.{name}")).collect();
        let paths: Vec<_> = fields.iter().map(String::as_str).collect();
        // With a short call timeout, a busy machine may need several attempts.
        user = loop {
            let current = v1::User { etag: String::new(), ..user.clone() };
            match client.update(current, &paths).await {
                Ok(updated) => break updated,
                Err(status) => assert!(is_slow(&status), "{status:?}"),
            }
        };
    }

    user.user_id
}

/// Requests 100 answers of nearly 4 MiB each over a connection with this window, and reads nothing
/// before the server has closed it. Returns the frames that were sent until then.
fn ask_and_wait(store: &TestStore, window: u32) -> Vec<Frame> {
    let server = store.serve(&["--call-timeout", "5s"]);
    let user_id = block_on(large(&server.url));
    let request = v1::BatchGetUsersRequest { user_ids: vec![user_id; 9], ..Default::default() };
    let before = server.memory();
    let mut raw = Raw::with_window(&server, window);
    let mut peak = 0;
    let mut measure = || {
        serves_others(&server);
        peak = peak.max(server.memory().saturating_sub(before));
    };

    for n in 0..100 {
        raw.ask(2 * n + 1, BATCH, &request);
        if n % 10 == 9 {
            measure();
        }
    }

    let start = Instant::now();
    while raw.is_held() {
        assert!(start.elapsed() < TIMEOUT, "the connection is not closed");
        measure();
        sleep(Duration::from_millis(100));
    }
    assert!(peak < 128 * MEBI, "{} MiB more than before", peak / MEBI);

    std::iter::from_fn(|| raw.next()).collect()
}

tests_on_store! {
    answers_without_a_window_are_bounded
    unread_answers_in_the_socket_are_bounded
    a_reading_client_keeps_its_connection
}

fn answers_without_a_window_are_bounded(store: &TestStore) {
    let frames = ask_and_wait(store, 0);
    let headers = |end: u8| {
        let headers =
            frames.iter().filter(move |frame| frame.kind == HEADERS && frame.flags & END == end);
        headers.map(|frame| frame.stream).collect::<BTreeSet<_>>()
    };

    let (begun, ended) = (headers(0), headers(END));
    let held = begun.difference(&ended).count();
    assert!(
        (1..=4).contains(&held),
        "{held} answers of nearly 4 MiB are held, which is more than 16 MiB"
    );
    assert!(!ended.is_empty(), "further calls are refused");
}

fn unread_answers_in_the_socket_are_bounded(store: &TestStore) {
    let bytes: usize =
        ask_and_wait(store, 0x7fff_ffff).iter().map(|frame| frame.payload.len()).sum();
    assert!(bytes < 64 * MEBI, "{} MiB were sent before the connection ended", bytes / MEBI);
}

fn a_reading_client_keeps_its_connection(store: &TestStore) {
    let time = Duration::from_secs(5);
    let server = store.serve(&["--call-timeout", "5s"]);
    block_on(async {
        let user_id = large(&server.url).await;
        let mut client = Client::connect(&server.url).await;
        let start = Instant::now();
        while start.elapsed() < 2 * time {
            let request = v1::BatchGetUsersRequest {
                user_ids: vec![user_id.clone(); 2],
                ..Default::default()
            };
            match client.directory.batch_get_users(request).await {
                Ok(answer) => assert_eq!(answer.into_inner().results.len(), 2),
                Err(status) => assert!(is_slow(&status), "{status:?}"),
            }
            tokio::time::sleep(time / 20).await;
        }
    });
}
