//! A stopping server waits for calls in progress, and for nothing else.

use std::time::{Duration, Instant};

use polynym_proto::v1;

use super::TIMEOUT;
use super::raw::{HEADERS, Raw, SETTINGS};
use super::store::{TestStore, tests_on_store};
use crate::calls::{handle, identity};

const CREATE: &str = "/polynym.v1.RegistryService/CreateUser";

/// Stops a server after `prepare` has set up a connection whose streams have this window. Returns
/// the duration of the stop, and the log.
fn stop(
    store: &TestStore,
    drain: &str,
    window: u32,
    prepare: impl FnOnce(&mut Raw),
) -> (Duration, String) {
    let (server, log) = store.serve_logged(&["--drain", drain]);
    let mut raw = Raw::with_window(&server, window);
    prepare(&mut raw);
    let start = Instant::now();
    server.signal("TERM");
    assert!(server.wait().success());
    (start.elapsed(), std::fs::read_to_string(log.path()).unwrap())
}

/// Makes a call and reads only the headers of its answer.
fn ask(raw: &mut Raw) {
    let user = v1::User { identities: vec![identity(handle("joe"))], ..Default::default() };
    raw.ask(1, CREATE, &v1::CreateUserRequest { user: Some(user), ..Default::default() });
    raw.until(HEADERS).unwrap();
}

tests_on_store! {
    an_idle_peer_does_not_delay_a_stop
    a_health_watch_does_not_delay_a_stop
    an_unread_answer_delays_a_stop_until_the_drain_limit
    a_second_signal_stops_the_server_at_once
}

fn a_second_signal_stops_the_server_at_once(store: &TestStore) {
    let (server, log) = store.serve_logged(&["--drain", "600s"]);
    let mut raw = Raw::with_window(&server, 0);
    ask(&mut raw);
    server.signal("TERM");
    let start = Instant::now();
    while !std::fs::read_to_string(log.path()).unwrap().contains("a second signal stops at once") {
        assert!(start.elapsed() < TIMEOUT, "the first signal is not handled");
        std::thread::sleep(Duration::from_millis(10));
    }

    server.signal("TERM");
    assert_eq!(server.wait().code(), Some(130));
}

fn an_idle_peer_does_not_delay_a_stop(store: &TestStore) {
    let (took, log) = stop(store, "120s", 0, |raw| drop(raw.until(SETTINGS).unwrap()));
    assert!(took < TIMEOUT, "{took:?}");
    assert!(!log.contains("in time"), "{log}");
}

fn a_health_watch_does_not_delay_a_stop(store: &TestStore) {
    let (took, log) = stop(store, "120s", 65_535, |raw| {
        raw.ask(
            1,
            "/grpc.health.v1.Health/Watch",
            &tonic_health::pb::HealthCheckRequest::default(),
        );
        raw.until(HEADERS).unwrap();
    });
    assert!(took < TIMEOUT, "{took:?}");
    assert!(!log.contains("in time"), "{log}");
}

fn an_unread_answer_delays_a_stop_until_the_drain_limit(store: &TestStore) {
    let (took, log) = stop(store, "2s", 0, |raw| {
        ask(raw);
    });
    assert!((Duration::from_secs(2)..TIMEOUT).contains(&took), "{took:?}");
    assert!(log.contains("calls did not finish in time"), "{log}");
}
