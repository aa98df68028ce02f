//! Calls to several servers, and to those that cannot be reached.

use std::fmt;
use std::future::{pending, ready};
use std::io;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::FutureExt;
use tokio::net::TcpSocket;
use tokio::time::timeout;
use tonic::{Code, Status};

use super::{Backoff, Error, Instant, Pool};
use crate::connection::dial::Bytes;
use crate::connection::dial::tests::dial;
use crate::fake::{Answer, Fake, status};
use crate::{Attempt, Builder, Client, ConnectError, Kind, handle};

const MINUTE: Duration = Duration::from_secs(60);

/// An address where nobody listens, and the socket that keeps it.
fn free_address() -> (TcpSocket, String) {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind(([127, 0, 0, 1], 0).into()).unwrap();
    let address = socket.local_addr().unwrap().to_string();
    (socket, address)
}

async fn is_found(client: &Client) -> Result<(), Kind> {
    client.resolve(handle("joe")).await.map(drop).map_err(|error| error.kind())
}

/// Looks up until both servers have had a call.
async fn reach_both(client: &Client, servers: [&Fake; 2]) {
    let calls = async {
        while servers.iter().any(|server| server.counts().is_empty()) {
            is_found(client).await.unwrap();
        }
    };
    timeout(MINUTE, calls).await.unwrap();
}

#[tokio::test]
async fn calls_take_turns_and_a_retry_prefers_another_server() {
    let is_down = Arc::new(AtomicBool::new(false));
    let down = Arc::clone(&is_down);
    let unavailable = status(Code::Unavailable, "STORE_UNAVAILABLE", Duration::ZERO, "");
    let one = Fake::start(move |_| match down.load(Ordering::Relaxed) {
        true => Answer::Fails(unavailable.clone()),
        false => Answer::Found,
    });
    let (one, two) = (one.await, Fake::start(|_| Answer::Found).await);
    let servers = [&one.address, &two.address];
    let client = Builder::new("").servers(servers).timeout(MINUTE).connect().await.unwrap();
    reach_both(&client, [&one, &two]).await;

    is_down.store(true, Ordering::Relaxed);
    let before = one.counts().len();
    for _ in 0..4 {
        assert_eq!(is_found(&client).await, Ok(()));
    }
    assert_eq!(one.counts().len() - before, 2);
}

#[tokio::test]
async fn a_server_that_cannot_be_reached_is_left_out() {
    let there = Fake::start(|_| Answer::Found).await;
    let (_socket, address) = free_address();
    let servers = format!("{},http://{address}", there.address);
    let client = Builder::new(servers).timeout(MINUTE).connect_lazy().unwrap();
    for _ in 0..10 {
        assert_eq!(is_found(&client).await, Ok(()));
    }
}

#[tokio::test]
async fn a_server_that_does_not_answer_holds_up_no_other() {
    let silent = dial(Box::new(|| pending().boxed()));
    let (attempts, ends) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let later = dial(Box::new(move || {
        let (near, far) = tokio::io::duplex(1 << 16);
        ends.lock().unwrap().push(far);
        let outcome: io::Result<Box<dyn Bytes>> = match attempts.fetch_add(1, Ordering::Relaxed) {
            0 => Err(io::ErrorKind::ConnectionRefused.into()),
            _ => Ok(Box::new(near)),
        };
        ready(outcome).boxed()
    }));
    let pool = Pool::new(vec![silent, later], Backoff::default(), true);
    assert_eq!(pool.link(None, Instant::now() + MINUTE).await.unwrap().server, 1);
}

#[tokio::test]
async fn addresses_that_a_server_no_longer_has_are_left() {
    let servers = [Fake::start(|_| Answer::Found).await, Fake::start(|_| Answer::Found).await];
    let servers = servers.each_ref().map(|server| server.address.as_str());
    let client = Builder::new("").servers(servers).timeout(MINUTE).connect().await.unwrap();
    let mut state = client.pool().shared.state();
    state.set_addresses(0, &[None]);
    state.set_addresses(1, &[None]);
    assert!(state.open.is_empty());
    assert_eq!(state.steps.len(), 4);
}

#[tokio::test]
async fn calls_that_are_lost_with_a_connection_count_once() {
    let server = Fake::start(|_| Answer::Found).await;
    let client = server.builder().connect().await.unwrap();
    let link = client.pool().link(None, Instant::now() + MINUTE).await.unwrap();
    let of = |cause: h2::Reason| Error::from(Status::from_error(Box::new(h2::Error::from(cause))));
    let (lost, unsent) =
        (of(h2::Reason::PROTOCOL_ERROR), Error::unreachable(Arc::new(fmt::Error), &"away".into()));
    assert!(lost.is_of_connection() && !lost.is_never_sent());
    let counts = [&unsent, &lost, &lost].map(|error| client.pool().note(&link, Some(error)));
    assert_eq!(counts, [true, true, false]);
}

#[tokio::test]
async fn a_call_waits_for_its_server() {
    let (socket, address) = free_address();
    let client = Builder::new(&address).timeout(MINUTE).connect_lazy().unwrap();
    let call = is_found(&client);
    let server = async { Fake::start_with(socket.listen(8).unwrap(), |_| Answer::Found) };
    let (found, _server) = tokio::join!(call, server);
    assert_eq!(found, Ok(()));
}

#[tokio::test]
async fn a_call_without_patience_fails_at_once() {
    let (socket, address) = free_address();
    let builder = Builder::new(&address).timeout(MINUTE).wait_for_ready(false);
    let client = builder.clone().connect_lazy().unwrap();
    assert_eq!(is_found(&client).await, Err(Kind::Unavailable));
    let server = Fake::start_with(socket.listen(8).unwrap(), |_| Answer::Found);
    // No delay after the failure, either.
    assert_eq!(is_found(&client).await, Ok(()));
    assert_eq!(server.counts(), [1]);
    assert!(builder.connect().await.is_ok());
}

#[tokio::test]
async fn connecting_fails_if_no_server_can_be_reached_in_time() {
    let (_socket, address) = free_address();
    let builder = Builder::new(&address).timeout(Duration::from_millis(200));
    let Err(ConnectError::Unreachable(error)) = builder.connect().await else {
        panic!("nobody listens")
    };
    assert_eq!((error.kind(), error.code()), (Kind::Unavailable, Code::Unavailable));
    let text = format!("the server {address} cannot be reached");
    assert_eq!(error.to_string(), format!("Unavailable: {text}"));
    let text = ConnectError::Unreachable(error).to_string();
    assert!(text.contains(&address) && text.contains("refused"), "{text}");
}

#[tokio::test]
async fn a_name_that_cannot_be_resolved_is_a_server_that_cannot_be_reached() {
    let builder = Builder::new("http://nobody.invalid:7171").wait_for_ready(false);
    let error = builder.connect_lazy().unwrap().resolve(handle("joe")).await.unwrap_err();
    assert_eq!(error.message(), "the server nobody.invalid:7171 cannot be reached");
}

#[tokio::test]
async fn an_observer_that_panics_fails_no_call() {
    let server = Fake::start(|_| Answer::Found).await;
    let builder = server.builder().observer(|_| panic!("the observer's own"));
    assert_eq!(is_found(&builder.connect_lazy().unwrap()).await, Ok(()));
}

#[tokio::test]
async fn observers_learn_of_each_attempt() {
    let refusal = status(Code::Unavailable, "RULES_CHANGING", Duration::from_millis(1), "");
    let server = Fake::start(move |call| match call.number {
        1 => Answer::Fails(refusal.clone()),
        _ => Answer::Found,
    });
    let server = server.await;
    let seen = Arc::new(Mutex::new(Vec::<Attempt>::new()));
    let seen_by = Arc::clone(&seen);
    let builder = server.builder().observer(move |attempt| {
        seen_by.lock().unwrap().push(attempt.clone());
    });
    assert_eq!(is_found(&builder.connect_lazy().unwrap()).await, Ok(()));

    let seen = seen.lock().unwrap();
    let outcomes: Vec<_> = seen.iter().map(|it| (it.number, it.code, it.reason.as_str())).collect();
    assert_eq!(outcomes, [(1, Code::Unavailable, "RULES_CHANGING"), (2, Code::Ok, "")]);
    assert_eq!(seen[0].service, "polynym.v1.DirectoryService");
    assert_eq!(seen[0].method, "ResolveIdentity");
    assert_eq!(format!("http://{}", seen[0].server), server.address);
}
