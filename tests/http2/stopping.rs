//! A server that is asked to stop waits for calls, and for nothing else.

use std::time::{Duration, Instant};

use polynym::proto::v1;

use super::PATIENCE;
use super::place::{Place, in_each_place};
use super::raw::{HEADERS, Raw, SETTINGS};
use crate::calls::{handle, identity};

const CREATE: &str = "/polynym.v1.RegistryService/CreateUser";

/// Stops a server once a connection is as `prepare` leaves it; tells how long that took, and what
/// the log says.
fn stop(place: &Place, drain: &str, prepare: impl FnOnce(&mut Raw)) -> (Duration, String) {
    let (server, log) = place.serve_logged(&["--drain", drain]);
    let mut raw = Raw::with_window(&server, 0);
    prepare(&mut raw);
    let start = Instant::now();
    server.signal("TERM");
    assert!(server.wait().success());
    (start.elapsed(), std::fs::read_to_string(log.path()).unwrap())
}

/// Makes a call, and takes nothing but the head of its answer.
fn ask(raw: &mut Raw) {
    let user = v1::User { identities: vec![identity(handle("joe"))], ..Default::default() };
    raw.ask(1, CREATE, &v1::CreateUserRequest { user: Some(user), ..Default::default() });
    raw.until(HEADERS).unwrap();
}

in_each_place! {
    a_peer_without_calls_that_never_says_goodbye_is_not_waited_for
    a_peer_that_watches_health_is_not_waited_for
    a_call_whose_answer_is_not_taken_is_waited_for_and_told
    a_second_signal_ends_the_program_at_once
}

fn a_second_signal_ends_the_program_at_once(place: &Place) {
    let (server, log) = place.serve_logged(&["--drain", "600s"]);
    let mut raw = Raw::with_window(&server, 0);
    ask(&mut raw);
    server.signal("TERM");
    let start = Instant::now();
    while !std::fs::read_to_string(log.path()).unwrap().contains("a second signal stops at once") {
        assert!(start.elapsed() < PATIENCE, "the first signal is not heard");
        std::thread::sleep(Duration::from_millis(10));
    }
    server.signal("TERM");
    assert_eq!(server.wait().code(), Some(130));
}

fn a_peer_without_calls_that_never_says_goodbye_is_not_waited_for(place: &Place) {
    let (took, log) = stop(place, "120s", |raw| drop(raw.until(SETTINGS).unwrap()));
    assert!(took < PATIENCE, "{took:?}");
    assert!(!log.contains("in time"), "{log}");
}

fn a_peer_that_watches_health_is_not_waited_for(place: &Place) {
    let (took, log) = stop(place, "120s", |raw| {
        raw.ask(
            1,
            "/grpc.health.v1.Health/Watch",
            &tonic_health::pb::HealthCheckRequest::default(),
        );
        raw.until(HEADERS).unwrap();
    });
    assert!(took < PATIENCE, "{took:?}");
    assert!(!log.contains("in time"), "{log}");
}

fn a_call_whose_answer_is_not_taken_is_waited_for_and_told(place: &Place) {
    let (took, log) = stop(place, "2s", |raw| {
        ask(raw);
    });
    assert!((Duration::from_secs(2)..PATIENCE).contains(&took), "{took:?}");
    assert!(log.contains("calls did not finish in time"), "{log}");
}
