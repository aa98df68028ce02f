//! One connection: HTTP/2 with bounds on all that the other side controls.

use std::convert::Infallible;
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
use super::routes::Routes;
use super::tls::Tls;
use super::unvectored_io::UnvectoredIo;

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
    let Some(tls) = tls else { return greet(stream, handler, options, draining).await };
    match within_handshake(tls.accept(stream), &mut draining).await {
        Some(Ok(stream)) => greet(stream, handler, options, draining).await,
        Some(Err(error)) => {
            tracing::debug!(%error, "a TLS handshake failed");
            false
        }
        None => false,
    }
}

/// Waits for the preface, and serves a connection that has one.
async fn greet<R: Routes>(
    mut stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    handler: Arc<CallHandler<R>>,
    options: Options,
    mut draining: watch::Receiver<bool>,
) -> bool {
    let check = handler.preface_check.is_http2(&mut stream);
    let is_http2 = within_handshake(check, &mut draining).await.unwrap_or(false);
    is_http2 && serve(stream, handler, options, draining).await
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
    handler: Arc<CallHandler<R>>,
    options: Options,
    mut draining: watch::Receiver<bool>,
) -> bool {
    let budget = Arc::new(ConnectionBudget::new(handler.total.clone()));
    let service = service_fn(|request| {
        let (handler, budget) = (handler.clone(), budget.clone());
        async move { Ok::<_, Infallible>(handler.call(&budget, request).await) }
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
        () = ended(&budget, options) => {
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

/// Waits until the connection is too old, or had no calls for too long.
async fn ended(budget: &ConnectionBudget, options: Options) {
    tokio::select! {
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
