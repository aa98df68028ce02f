//! One connection: HTTP/2, or HTTP/1.1 on the HTTP listener, with bounds on all that the client
//! controls.

use std::convert::Infallible;
use std::future::pending;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use hyper::body::Incoming;
use hyper::server::conn::{http1, http2};
use hyper::service::service_fn;
use hyper_util::rt::TokioTimer;
use tokio::io::{AsyncRead, AsyncWrite, DuplexStream};
use tokio::net::TcpStream;
use tokio::sync::watch;

use super::calls::call_protocol::Grpc;
use super::calls::handler::CallHandler;
use super::calls::response_body::ResponseBody;
use super::eviction::EvictionEntry;
use super::http::Http;
use super::options::Options;
use super::peer::Peer;
use super::preface::{PREFACE, read_start};
use polynym_access::ActiveCount;

pub mod cores;
mod fair_io;
mod frame_credit;
mod http1_io;
pub mod in_memory;
mod lifetime;
mod task;
pub mod tls;
mod unvectored_io;

use super::budgets::state::ConnectionState;
use fair_io::{FairIo, ReadSlice};
use http1_io::{HeaderTimer, Http1Io};
use lifetime::{drain_started, run};
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
/// The buffer of a connection of HTTP/1.1: it holds the headers of a request.
const MAX_HTTP1_BUFFER_BYTES: usize = 2 * MAX_HEADER_BYTES as usize;
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

/// The state that all connections of a listener share.
pub struct Server {
    pub handler: Arc<CallHandler>,
    /// The HTTP side; none for gRPC alone.
    pub http: Option<Arc<Http>>,
    pub options: Options,
}

/// Serves a connection until it ends, grows old, or the server drains. `unauthenticated` is its
/// entry among those without a valid call. Returns whether calls were cut off.
pub async fn accept(
    stream: TcpStream,
    tls: Option<Tls>,
    unauthenticated: EvictionEntry,
    server: Server,
    mut draining: watch::Receiver<bool>,
) -> bool {
    let handler = server.handler.clone();
    let _counted = CountedConnection::new(&handler.connections);
    let address = stream.peer_addr().ok();
    let Some(tls) = tls else {
        let peer = Peer::new(address, None, unauthenticated);
        return serve_after_preface(stream, peer, pending(), server, draining).await;
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
            serve_after_preface(stream, peer, certificate_revoked, server, draining).await
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

/// Serves a connection of the program itself, on behalf of the client at `address`, as [`accept`]
/// does.
pub async fn accept_in_memory(
    stream: DuplexStream,
    address: Option<SocketAddr>,
    server: Server,
    draining: watch::Receiver<bool>,
) -> bool {
    let handler = server.handler.clone();
    let _counted = CountedConnection::new(&handler.connections);
    let peer = Peer::new(address, None, handler.unauthenticated.add());
    serve_after_preface(stream, peer, pending(), server, draining).await
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
async fn serve_after_preface(
    mut stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    peer: Peer,
    certificate_revoked: impl Future<Output = ()>,
    server: Server,
    mut draining: watch::Receiver<bool>,
) -> bool {
    let peer = Arc::new(peer);
    let served = {
        let peer = peer.clone();
        async move {
            let Some(http) = &server.http else {
                let check = server.handler.preface_check.is_http2(&mut stream);
                let is_http2 = within_handshake(check, &mut draining).await.unwrap_or(false);
                let connection = Connection { peer, certificate_revoked, server, draining };
                return is_http2 && connection.serve_grpc(stream).await;
            };
            let http = http.clone();
            let start = within_handshake(read_start(&mut stream), &mut draining).await;
            let connection = Connection { peer, certificate_revoked, server, draining };
            match start {
                Some(start) if *start == *PREFACE => connection.serve_http(stream, http).await,
                Some(start) if !start.is_empty() => {
                    connection.serve_http1(stream, start, http).await
                }
                _ => false,
            }
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

/// A connection whose protocol is known.
struct Connection<F> {
    peer: Arc<Peer>,
    certificate_revoked: F,
    server: Server,
    draining: watch::Receiver<bool>,
}

impl<F: Future<Output = ()>> Connection<F> {
    /// The state of the connection, assigned to its caller if that one is known.
    fn state(&self) -> Arc<ConnectionState> {
        let handler = &self.server.handler;
        let state = Arc::new(ConnectionState::new(handler.usage.clone()));
        handler.assign_to_known_caller(&self.peer, &state);
        state
    }

    async fn serve_grpc(self, stream: impl Stream) -> bool {
        let (handler, peer, state) = (self.server.handler.clone(), self.peer.clone(), self.state());
        let answer = |request: Request<Incoming>| {
            let (handler, state, peer) = (handler.clone(), state.clone(), peer.clone());
            async move {
                let method = handler.methods.get(request.uri().path());
                Ok(handler.call(method, &state, &peer, &Grpc, request).await)
            }
        };
        self.serve_http2(stream, &state, answer).await
    }

    async fn serve_http(self, stream: impl Stream, http: Arc<Http>) -> bool {
        let (handler, peer, state) = (self.server.handler.clone(), self.peer.clone(), self.state());
        let answer = |request| {
            let (handler, http) = (handler.clone(), http.clone());
            let (state, peer) = (state.clone(), peer.clone());
            async move { Ok(http.answer(&handler, &state, &peer, request).await) }
        };
        self.serve_http2(stream, &state, answer).await
    }

    async fn serve_http2<A>(
        self,
        stream: impl Stream,
        state: &ConnectionState,
        answer: impl Fn(Request<Incoming>) -> A + Send,
    ) -> bool
    where
        A: Future<Output = Result<Response<ResponseBody>, Infallible>> + Send + 'static,
    {
        let (executor, slice) = (CallExecutor::default(), Arc::<ReadSlice>::default());
        let io = UnvectoredIo::after_preface(FairIo::http2(stream, slice.clone()));
        let connection = http2_builder(executor.clone()).serve_connection(io, service_fn(answer));
        let task = ConnectionTask::new(connection, executor, slice);
        run(task, state, &self.peer, self.certificate_revoked, self.server.options, self.draining)
            .await
    }

    async fn serve_http1(self, stream: impl Stream, first: Bytes, http: Arc<Http>) -> bool {
        let state = self.state();
        let timer = HeaderTimer::new(state.clone());
        let service = service_fn(|request| {
            timer.note_request();
            let (handler, http) = (self.server.handler.clone(), http.clone());
            let (state, peer) = (state.clone(), self.peer.clone());
            async move { Ok::<_, Infallible>(http.answer(&handler, &state, &peer, request).await) }
        });
        let slice = Arc::<ReadSlice>::default();
        let io = Http1Io::new(FairIo::http1(stream, slice.clone()), first, timer.clone());
        let connection = http1_builder().serve_connection(io, service);
        let task = ConnectionTask::new(connection, CallExecutor::default(), slice);
        let (options, draining) = (self.server.options, self.draining);
        tokio::select! {
            cut_off =
                run(task, &state, &self.peer, self.certificate_revoked, options, draining) =>
            {
                cut_off
            }
            () = timer.late() => {
                tracing::debug!("closed a connection: its headers are late");
                false
            }
        }
    }
}

/// The stream of bytes of a connection.
trait Stream: AsyncRead + AsyncWrite + Unpin + Send + 'static {}

impl<S: AsyncRead + AsyncWrite + Unpin + Send + 'static> Stream for S {}

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

fn http1_builder() -> http1::Builder {
    let mut builder = http1::Builder::new();
    builder
        .timer(TokioTimer::new())
        // `HeaderTimer` limits headers: this timer would also limit idle connections.
        .header_read_timeout(None)
        .max_header_size(MAX_HEADER_BYTES as usize)
        .max_buf_size(MAX_HTTP1_BUFFER_BYTES);
    builder
}
