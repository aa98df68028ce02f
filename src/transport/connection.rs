//! One connection: HTTP/2 with bounds on all that the other side controls.

use std::convert::Infallible;
use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use hyper::server::conn::http2;
use hyper::service::service_fn;
use hyper_util::rt::TokioTimer;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::time::sleep;

use super::call_handler::CallHandler;
use super::connection_task::{CallExecutor, ConnectionTask};
use super::memory_budget::ConnectionBudget;
use super::options::Options;
use super::peer::Peer;
use super::routes::Routes;
use super::tls::{Accepted, Tls};
use super::unvectored_io::UnvectoredIo;
use crate::access::Counted;

/// The counter of TLS handshakes: its name, and what it counts.
pub const HANDSHAKES: (&str, &str) =
    ("polynym_tls_handshakes_total", "TLS handshakes, by outcome: ok, failed or late");

/// Streams that one connection may have open.
const STREAMS: u32 = 200;
/// The largest list of headers that is read at all. A list above the bound in `request_check` and
/// below this one gets an answer that says so.
const HEADER_BYTES: u32 = 32 << 10;
/// The bytes of an answer that wait in the connection's own buffer.
const SEND_BYTES: usize = 256 << 10;
/// Streams that the other side may open and reset before they are looked at (CVE-2023-44487).
const RESETS: usize = 64;
/// The time for the TLS handshake, and then for the HTTP/2 preface.
const HANDSHAKE: Duration = Duration::from_secs(10);
/// The interval of keep-alive pings on a silent connection, and the time to answer one.
const KEEPALIVE: (Duration, Duration) = (Duration::from_secs(30), Duration::from_secs(20));

/// Serves a connection until it ends, grows old, or the server drains. Returns whether calls were
/// cut off.
pub async fn accept<R: Routes>(
    stream: TcpStream,
    tls: Option<Tls>,
    handler: Arc<CallHandler<R>>,
    options: Options,
    mut draining: watch::Receiver<bool>,
) -> bool {
    let open = handler.clone();
    let _open = Open::new(&open.connections);
    let stranger = handler.strangers.enter();
    let Some(tls) = tls else {
        let peer = Peer::new(None, stranger);
        return greet(stream, peer, pending(), handler, options, draining).await;
    };
    let accepted = tokio::select! {
        accepted = within_handshake(tls.accept(stream), &mut draining) => accepted,
        () = stranger.evicted() => None,
    };
    match accepted {
        Some(Ok(Accepted { stream, certificate, mut authorities })) => {
            handshake("ok");
            let is_certified = certificate.is_some();
            let distrusted = async move {
                // Where nobody can change the authorities any more, the server is stopping.
                if !is_certified || authorities.changed().await.is_err() {
                    pending::<()>().await;
                }
            };
            let peer = Peer::new(certificate, stranger);
            handler.count_certified(&peer);
            greet(stream, peer, distrusted, handler, options, draining).await
        }
        Some(Err(error)) => {
            handshake("failed");
            tracing::debug!(%error, "a TLS handshake failed");
            false
        }
        None => {
            handshake("late");
            false
        }
    }
}

/// A connection that is counted until it ends.
struct Open<'a>(&'a Counted);

impl<'a> Open<'a> {
    fn new(count: &'a Counted) -> Self {
        count.add(usize::MAX);
        Self(count)
    }
}

impl Drop for Open<'_> {
    fn drop(&mut self) {
        self.0.remove();
    }
}

fn handshake(outcome: &'static str) {
    metrics::counter!(HANDSHAKES.0, "outcome" => outcome).increment(1);
}

/// Waits for the preface, and serves a connection that has one. `distrusted` returns once the
/// client's certificate may not be trusted any more.
async fn greet<R: Routes>(
    mut stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    peer: Peer,
    distrusted: impl Future<Output = ()>,
    handler: Arc<CallHandler<R>>,
    options: Options,
    mut draining: watch::Receiver<bool>,
) -> bool {
    let peer = Arc::new(peer);
    let served = {
        let peer = peer.clone();
        async move {
            let check = handler.preface_check.is_http2(&mut stream);
            let is_http2 = within_handshake(check, &mut draining).await.unwrap_or(false);
            is_http2 && serve(stream, peer, distrusted, handler, options, draining).await
        }
    };
    tokio::select! {
        cut_off = served => cut_off,
        () = peer.evicted() => {
            tracing::debug!("a connection without a valid call makes room for another");
            false
        }
    }
}

/// The outcome of the first exchange; none where it takes too long or the server drains.
async fn within_handshake<T>(
    exchange: impl Future<Output = T>,
    draining: &mut watch::Receiver<bool>,
) -> Option<T> {
    tokio::select! {
        outcome = tokio::time::timeout(HANDSHAKE, exchange) => outcome.ok(),
        () = drain_started(draining) => None,
    }
}

async fn serve<R: Routes>(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    peer: Arc<Peer>,
    distrusted: impl Future<Output = ()>,
    handler: Arc<CallHandler<R>>,
    options: Options,
    mut draining: watch::Receiver<bool>,
) -> bool {
    let budget = Arc::new(ConnectionBudget::new(handler.total.clone()));
    let service = service_fn(|request| {
        let (handler, budget, peer) = (handler.clone(), budget.clone(), peer.clone());
        async move { Ok::<_, Infallible>(handler.call(&budget, &peer, request).await) }
    });
    let begin = CallExecutor::new(options.task_per_call);
    let connection =
        builder(begin.clone()).serve_connection(UnvectoredIo::after_preface(stream), service);
    let mut calls = ConnectionTask::new(connection, begin);
    tokio::select! {
        _ = &mut calls => return false,
        () = budget.stuck(call_age_limit(options.call_timeout)) => {
            tracing::info!("a connection is closed: its client does not take its answers");
            return false;
        }
        () = drain_started(&mut draining) => {}
        () = ended(&budget, &peer, distrusted, options) => {
            calls.connection.as_mut().graceful_shutdown();
            tokio::select! {
                _ = &mut calls => return false,
                () = sleep(options.drain) => return false,
                () = drain_started(&mut draining) => {}
            }
        }
    }
    calls.connection.as_mut().graceful_shutdown();

    tokio::select! {
        _ = &mut calls => false,
        () = budget.idle() => false,
        () = sleep(options.drain) => budget.has_calls(),
    }
}

/// Waits until the connection is too old, had no calls for too long, or its client's certificate
/// counts no longer.
async fn ended(
    budget: &ConnectionBudget,
    peer: &Peer,
    distrusted: impl Future<Output = ()>,
    options: Options,
) {
    tokio::select! {
        () = peer.expired() => {}
        () = distrusted => peer.distrust(),
        () = sleep(options.connection_age) => {}
        () = budget.unused(options.connection_idle) => {}
    }
}

/// Waits until the server drains.
async fn drain_started(draining: &mut watch::Receiver<bool>) {
    let _ = draining.wait_for(|yes| *yes).await;
}

/// The age limit of a call: its deadline, and half of that for its answer to be taken.
fn call_age_limit(timeout: Duration) -> Duration {
    timeout + timeout / 2
}

fn builder(begin: CallExecutor) -> http2::Builder<CallExecutor> {
    let mut builder = http2::Builder::new(begin);
    builder
        .timer(TokioTimer::new())
        .max_concurrent_streams(STREAMS)
        .max_header_list_size(HEADER_BYTES)
        .max_send_buf_size(SEND_BYTES)
        .max_pending_accept_reset_streams(RESETS)
        .keep_alive_interval(KEEPALIVE.0)
        .keep_alive_timeout(KEEPALIVE.1);
    builder
}
