//! One connection: HTTP/2 with bounds on all that the client controls.

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

use super::calls::handler::CallHandler;
use super::memory_budget::ConnectionBudget;
use super::options::Options;
use super::peer::Peer;
use super::routes::Routes;
use polynym_access::ActiveCount;

mod task;
pub mod tls;
mod unvectored_io;

use task::{CallExecutor, ConnectionTask};
use tls::{Accepted, Tls};
use unvectored_io::UnvectoredIo;

/// The counter of TLS handshakes.
pub const HANDSHAKES: (&str, &str) =
    ("polynym_tls_handshakes_total", "TLS handshakes, by outcome: ok, failed or late");

/// The maximum number of open streams of a connection.
const MAX_STREAMS: u32 = 200;
/// The largest header list that is read. One between the limit in `request_check` and this one gets
/// an answer that says so.
const MAX_HEADER_BYTES: u32 = 32 << 10;
/// The window of a stream: the bytes that a client may send ahead of what its call has read.
const STREAM_WINDOW_BYTES: u32 = 128 << 10;
/// The window of a connection. Half of it is the budget for unread DATA frames below 256 bytes, by
/// what they lack to that; HTTP/2 ends a connection that exceeds it. gRPC's C core sends each
/// message in a frame of its own: two imports fill their windows with messages of 15 bytes or more.
/// Calls of one message are read as they arrive, and streams are few: little of the window waits.
const CONNECTION_WINDOW_BYTES: u32 = 8 << 20;
/// The size of the buffer for responses.
const SEND_BUFFER_BYTES: usize = 256 << 10;
/// The maximum number of streams that were reset before they were accepted (CVE-2023-44487).
const MAX_PENDING_RESETS: usize = 64;
/// The time limit of the TLS handshake, and then of the HTTP/2 preface.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);
/// The interval of keep-alive pings on a silent connection, and the time to answer one.
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(30);
const KEEPALIVE_TIMEOUT: Duration = Duration::from_secs(20);

/// Serves a connection until it ends, grows old, or the server drains. Returns whether calls were
/// cut off.
pub async fn accept<R: Routes>(
    stream: TcpStream,
    tls: Option<Tls>,
    handler: Arc<CallHandler<R>>,
    options: Options,
    mut draining: watch::Receiver<bool>,
) -> bool {
    let counting_handler = handler.clone();
    let _counted = CountedConnection::new(&counting_handler.connections);
    let unauthenticated = handler.unauthenticated.add();
    let address = stream.peer_addr().ok();
    let Some(tls) = tls else {
        let peer = Peer::new(address, None, unauthenticated);
        return serve_after_preface(stream, peer, pending(), handler, options, draining).await;
    };
    let accepted = tokio::select! {
        accepted = within_handshake(tls.accept(stream), &mut draining) => accepted,
        () = unauthenticated.evicted() => None,
    };
    match accepted {
        Some(Ok(Accepted { stream, certificate, mut authorities })) => {
            count_handshake("ok");
            let is_certified = certificate.is_some();
            let certificate_revoked = async move {
                // Without a sender the server is stopping.
                if !is_certified || authorities.changed().await.is_err() {
                    pending::<()>().await;
                }
            };
            let peer = Peer::new(address, certificate, unauthenticated);
            handler.count_certified(&peer);
            serve_after_preface(stream, peer, certificate_revoked, handler, options, draining).await
        }
        Some(Err(error)) => {
            count_handshake("failed");
            tracing::debug!(%error, "a TLS handshake failed");
            false
        }
        None => {
            count_handshake("late");
            false
        }
    }
}

/// Counts a connection until it is dropped.
struct CountedConnection<'a>(&'a ActiveCount);

impl<'a> CountedConnection<'a> {
    fn new(count: &'a ActiveCount) -> Self {
        count.try_add(usize::MAX);
        Self(count)
    }
}

impl Drop for CountedConnection<'_> {
    fn drop(&mut self) {
        self.0.remove();
    }
}

fn count_handshake(outcome: &'static str) {
    metrics::counter!(HANDSHAKES.0, "outcome" => outcome).increment(1);
}

/// Waits for the preface, then serves the connection. `certificate_revoked` returns once the
/// client's certificate is no longer trusted.
async fn serve_after_preface<R: Routes>(
    mut stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    peer: Peer,
    certificate_revoked: impl Future<Output = ()>,
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
            is_http2 && serve(stream, peer, certificate_revoked, handler, options, draining).await
        }
    };
    tokio::select! {
        cut_off = served => cut_off,
        () = peer.evicted() => {
            tracing::debug!("closed a connection without a valid call to make room");
            false
        }
    }
}

/// Returns the outcome of `exchange`; none if it is late or the server drains.
async fn within_handshake<T>(
    exchange: impl Future<Output = T>,
    draining: &mut watch::Receiver<bool>,
) -> Option<T> {
    tokio::select! {
        outcome = tokio::time::timeout(HANDSHAKE_TIMEOUT, exchange) => outcome.ok(),
        () = drain_started(draining) => None,
    }
}

async fn serve<R: Routes>(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    peer: Arc<Peer>,
    certificate_revoked: impl Future<Output = ()>,
    handler: Arc<CallHandler<R>>,
    options: Options,
    mut draining: watch::Receiver<bool>,
) -> bool {
    let budget = Arc::new(ConnectionBudget::new(handler.global_budget.clone()));
    handler.assign_budget(&peer, &budget);
    let service = service_fn(|request| {
        let (handler, budget, peer) = (handler.clone(), budget.clone(), peer.clone());
        async move { Ok::<_, Infallible>(handler.call(&budget, &peer, request).await) }
    });
    let executor = CallExecutor::new(options.task_per_call);
    let connection = http2_builder(executor.clone())
        .serve_connection(UnvectoredIo::after_preface(stream), service);
    let mut task = ConnectionTask::new(connection, executor);
    tokio::select! {
        _ = &mut task => return false,
        () = budget.stuck(call_age_limit(options.call_timeout)) => {
            tracing::info!("closed a connection: its client does not read its answers");
            return false;
        }
        () = drain_started(&mut draining) => {}
        () = close_due(&budget, &peer, certificate_revoked, options) => {
            task.connection.as_mut().graceful_shutdown();
            tokio::select! {
                _ = &mut task => return false,
                () = sleep(options.drain) => return false,
                () = drain_started(&mut draining) => {}
            }
        }
    }
    task.connection.as_mut().graceful_shutdown();

    tokio::select! {
        _ = &mut task => false,
        () = budget.idle() => false,
        () = sleep(options.drain) => budget.has_calls(),
    }
}

/// Waits until the connection is too old, was idle too long, or its client's certificate is no
/// longer valid.
async fn close_due(
    budget: &ConnectionBudget,
    peer: &Peer,
    certificate_revoked: impl Future<Output = ()>,
    options: Options,
) {
    tokio::select! {
        () = peer.expired() => {}
        () = certificate_revoked => peer.distrust(),
        () = sleep(options.connection_age) => {}
        () = budget.unused(options.connection_idle) => {}
    }
}

/// Waits until the server drains.
async fn drain_started(draining: &mut watch::Receiver<bool>) {
    let _ = draining.wait_for(|is_draining| *is_draining).await;
}

/// The age limit of a call: its timeout, and half of that for its client to read the answer.
fn call_age_limit(timeout: Duration) -> Duration {
    timeout + timeout / 2
}

fn http2_builder(executor: CallExecutor) -> http2::Builder<CallExecutor> {
    let mut builder = http2::Builder::new(executor);
    builder
        .timer(TokioTimer::new())
        .max_concurrent_streams(MAX_STREAMS)
        .max_header_list_size(MAX_HEADER_BYTES)
        .initial_stream_window_size(STREAM_WINDOW_BYTES)
        .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
        .max_send_buf_size(SEND_BUFFER_BYTES)
        .max_pending_accept_reset_streams(MAX_PENDING_RESETS)
        .keep_alive_interval(KEEPALIVE_INTERVAL)
        .keep_alive_timeout(KEEPALIVE_TIMEOUT);
    builder
}
