//! One connection: HTTP/2 with bounds on all that the other side controls.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use hyper::server::conn::http2;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use tokio::net::TcpStream;
use tokio::sync::watch;

use super::Options;
use super::gathered::Gathered;
use super::guard::Guard;

/// Streams that one connection may have open.
const STREAMS: u32 = 200;
/// The largest list of headers, in bytes.
const HEADER_BYTES: u32 = 8 << 10;
/// How much of an answer waits in memory for a caller who does not read.
const SEND_BYTES: usize = 256 << 10;
/// Streams that the other side may open and reset before they are looked at (CVE-2023-44487).
const RESETS: usize = 64;
/// How long the other side may take to say that it speaks HTTP/2.
const HANDSHAKE: Duration = Duration::from_secs(10);
/// How often a silent connection is asked whether it is still there, and how long it may take to answer.
const KEEPALIVE: (Duration, Duration) = (Duration::from_secs(30), Duration::from_secs(20));
/// The first bytes of every HTTP/2 connection (RFC 9113, section 3.4).
const PREFACE: &[u8; 24] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// Serves a connection until it ends, grows old, or the server drains.
pub async fn serve(stream: TcpStream, guard: Arc<Guard>, options: Options, mut draining: watch::Receiver<bool>) {
    let greeted = tokio::time::timeout(HANDSHAKE, speaks_http2(&stream));
    if !tokio::select! { greeted = greeted => greeted.unwrap_or(false), _ = draining.wait_for(|yes| *yes) => false } {
        return;
    }
    let service = service_fn(|request| {
        let guard = guard.clone();
        async move { Ok::<_, Infallible>(guard.call(request).await) }
    });
    let mut connection = std::pin::pin!(builder().serve_connection(Gathered::new(stream), service));
    tokio::select! {
        _ = &mut connection => return,
        _ = draining.wait_for(|yes| *yes) => {}
        () = tokio::time::sleep(options.connection_age) => {}
    }
    connection.as_mut().graceful_shutdown();
    let _ = tokio::time::timeout(options.drain, connection).await;
}

fn builder() -> http2::Builder<TokioExecutor> {
    let mut builder = http2::Builder::new(TokioExecutor::new());
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

/// Waits for the preface without taking it.
async fn speaks_http2(stream: &TcpStream) -> bool {
    let mut start = [0; PREFACE.len()];
    loop {
        match stream.peek(&mut start).await {
            Ok(length) if length > 0 && start[..length] == PREFACE[..length] => {
                if length == PREFACE.len() {
                    return true;
                }
                // What has come stays readable: without a pause this would spin.
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            _ => return false,
        }
    }
}
