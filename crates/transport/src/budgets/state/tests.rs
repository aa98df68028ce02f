//! Tests of the state of connections.

use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::time::{sleep, timeout};

use super::super::byte_budget::{GUARANTEED_BYTES, MAX_CONNECTION_BYTES, MAX_SHARED_BYTES};
use super::*;

fn connection_of(server: &Arc<ServerUsage>, caller: &Caller) -> Arc<ConnectionState> {
    let connection = ConnectionState::new(server.clone());
    connection.assign_to(caller);
    Arc::new(connection)
}

fn connection(server: &Arc<ServerUsage>) -> Arc<ConnectionState> {
    connection_of(server, &Caller::anonymous())
}

fn named(name: &str) -> Caller {
    Caller { name: name.to_owned(), ..Caller::anonymous() }
}

#[test]
fn a_connection_stays_within_its_limit_and_releases_everything() {
    let server = Arc::new(ServerUsage::default());
    let connection = connection(&server);
    let mut reservations: Vec<_> = (0..17).map(|_| Reservation::for_call(&connection)).collect();
    let held: Vec<_> = reservations
        .iter_mut()
        .map(|reservation| reservation.reserve(MAX_CONNECTION_BYTES / 16))
        .collect();
    assert_eq!(held.iter().filter(|held| **held).count(), 16);
    assert!(connection.activity.has_calls());
    reservations[0].release(MAX_CONNECTION_BYTES / 16);
    assert!(reservations[16].resize(MAX_CONNECTION_BYTES / 16));
    reservations.clear();
    assert_eq!((connection.bytes.reserved(), server.bytes.get()), (0, 0));
    assert!(!connection.activity.has_calls());
}

#[test]
fn each_connection_has_its_guaranteed_bytes() {
    let server = Arc::new(ServerUsage::default());
    let mut greedy: Vec<_> = (0..3)
        .map(|_| Reservation::for_call(&connection(&server)))
        .map(|mut reservation| (reservation.reserve(MAX_CONNECTION_BYTES), reservation))
        .collect();
    assert!(!greedy.pop().is_some_and(|(held, _)| held), "the third exceeds the total");
    let mut modest = Reservation::for_call(&connection(&server));
    assert!(
        modest.connection.bytes.has_room()
            && modest.reserve(GUARANTEED_BYTES)
            && !modest.reserve(4 << 20)
    );
    assert!(!modest.connection.bytes.has_room());
    drop(greedy);
    assert!(modest.reserve(4 << 20));
}

#[test]
fn a_caller_has_its_share_on_all_its_connections() {
    let server = Arc::new(ServerUsage::default());
    let (greedy, modest) = (named("greedy"), named("modest"));
    let part = MAX_SHARED_BYTES as usize / 64;
    let reserve = |caller: &Caller| {
        let mut reservation = Reservation::for_call(&connection_of(&server, caller));
        (reservation.reserve(part + GUARANTEED_BYTES), reservation)
    };
    let greedy_held: Vec<_> = (0..40).map(|_| reserve(&greedy)).collect();
    assert_eq!(greedy_held.iter().filter(|(fits, _)| *fits).count(), 32, "half of all");
    let mut of_greedy = Reservation::for_call(&connection_of(&server, &greedy));
    assert!(of_greedy.reserve(GUARANTEED_BYTES) && !of_greedy.connection.bytes.has_room());
    let (fits, of_modest) = reserve(&modest);
    assert!(fits && of_modest.connection.bytes.has_room());
    drop((greedy_held, of_greedy, of_modest));
    let left = [&greedy, &modest].map(|caller| caller.state.shared_bytes.load(Ordering::Relaxed));
    assert_eq!((left, server.bytes.get()), ([0, 0], 0));
}

#[test]
fn a_connection_without_a_caller_has_its_guaranteed_bytes() {
    let server = Arc::new(ServerUsage::default());
    let connection = Arc::new(ConnectionState::new(server.clone()));
    let mut reservation = Reservation::for_call(&connection);
    assert!(reservation.reserve(GUARANTEED_BYTES) && !reservation.reserve(1));
    connection.assign_to(&Caller::anonymous());
    assert!(reservation.reserve(1) && server.bytes.get() == 1);
    drop(reservation);
    assert_eq!(server.bytes.get(), 0);
}

/// Makes calls one after the other. Returns the time of the longest.
async fn longest_of(count: usize, call: impl AsyncFn()) -> Duration {
    let mut longest = Duration::ZERO;
    for _ in 0..count {
        let begin = std::time::Instant::now();
        call().await;
        longest = longest.max(begin.elapsed());
    }
    longest
}

#[tokio::test]
async fn a_connection_is_unused_after_a_period_without_calls() {
    let connection = connection(&Arc::default());
    let limit = Duration::from_millis(200);
    let unused = || timeout(3 * limit, connection.activity.wait_unused(limit));
    assert!(connection.activity.streams.try_add(1));
    assert!(unused().await.is_err(), "a stream is open");
    connection.activity.streams.remove();
    loop {
        let calls = longest_of(40, async || {
            drop(Reservation::for_call(&connection));
            sleep(limit / 10).await;
        });
        let (outcome, longest) = tokio::join!(unused(), calls);
        // On a busy machine, the calls may come too late.
        if longest < limit {
            assert!(outcome.is_err(), "calls came again and again");
            break;
        }
    }
    assert!(unused().await.is_ok());
}

#[tokio::test]
async fn a_call_that_never_ends_is_stuck() {
    let connection = connection(&Arc::default());
    let limit = Duration::from_secs(1);
    loop {
        let quiet = timeout(3 * limit, connection.activity.wait_stuck(limit));
        let calls = longest_of(12, async || {
            let call = Reservation::for_call(&connection);
            sleep(limit / 4).await;
            drop(call);
        });
        let (quiet, longest) = tokio::join!(quiet, calls);
        // On a busy machine, the calls may be too long.
        if longest < limit {
            assert!(quiet.is_err(), "short calls, one after the other, are not stuck");
            break;
        }
    }
    let _call = Reservation::for_call(&connection);
    assert!(timeout(60 * limit, connection.activity.wait_stuck(limit)).await.is_ok());
}

#[tokio::test]
async fn a_request_of_the_site_is_in_use_and_never_stuck() {
    let connection = connection(&Arc::default());
    let limit = Duration::from_millis(20);
    let wait = Duration::from_secs(1);
    let request = Reservation::for_site_request(&connection);
    assert!(connection.activity.has_calls());
    let (stuck, unused, idle, finished) = tokio::join!(
        timeout(wait, connection.activity.wait_stuck(limit)),
        timeout(wait, connection.activity.wait_unused(limit)),
        timeout(wait, connection.activity.wait_idle()),
        timeout(wait, connection.activity.wait_without_long_calls()),
    );
    assert!(stuck.is_err() && unused.is_err() && idle.is_err() && finished.is_err());
    drop(request);
    let _call = Reservation::for_call(&connection);
    connection.activity.wait_without_long_calls().await;
}
