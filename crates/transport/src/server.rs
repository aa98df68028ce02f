//! Accepts connections until shutdown, then lets calls in flight finish.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;

use super::calls::handler::{CallHandler, Services};
use super::connection::cores::Cores;
use super::connection::in_memory::{InMemory, InMemoryListener};
use super::connection::tls::{CERTIFICATE_DAYS_LEFT, Tls};
use super::connection::{self, Server};
use super::http::Http;
use super::log_throttle::LogThrottle;
use super::options::Options;

/// Throttles the log while no connection can be accepted.
static ACCEPT_ERRORS: LogThrottle = LogThrottle::new();

/// A socket that accepts connections.
pub struct Listener {
    /// The socket.
    pub tcp: TcpListener,
    /// TLS, if it is configured.
    pub tls: Option<Tls>,
}

impl Listener {
    /// Reloads the certificate in a loop.
    pub async fn reload(&self) -> Infallible {
        match &self.tls {
            Some(tls) => tls.reload().await,
            None => std::future::pending().await,
        }
    }

    /// Accepts the next connection. Retries after errors: file descriptors may become free.
    pub async fn next(&self) -> TcpStream {
        loop {
            match self.tcp.accept().await {
                Ok((stream, _)) => {
                    let _ = stream.set_nodelay(true);
                    return stream;
                }
                Err(error) => {
                    if let Some(suppressed) = ACCEPT_ERRORS.step() {
                        tracing::warn!(%error, suppressed, "cannot accept a connection");
                    }
                    tokio::time::sleep(Duration::from_millis(100)).await;
                }
            }
        }
    }
}

impl From<TcpListener> for Listener {
    /// A listener without TLS.
    fn from(tcp: TcpListener) -> Self {
        Self { tcp, tls: None }
    }
}

/// The listeners of a server.
pub struct Listeners {
    /// The listener of gRPC.
    pub grpc: Listener,
    /// The HTTP listener, if there is one, and what it serves.
    pub http: Option<(Listener, Arc<Http>)>,
    /// The listener of the program's own clients, if there are any.
    pub in_memory: Option<InMemoryListener>,
    /// The cores that serve the connections of the two others.
    pub cores: Cores,
}

impl<L: Into<Listener>> From<L> for Listeners {
    /// A listener of gRPC alone.
    fn from(grpc: L) -> Self {
        Self { grpc: grpc.into(), http: None, in_memory: None, cores: Cores::default() }
    }
}

impl Listeners {
    /// Reloads the certificates in a loop.
    async fn reload(&self) -> Infallible {
        tokio::select! {
            never = self.grpc.reload() => never,
            never = reload(self.http.as_ref()) => never,
        }
    }

    /// Accepts the next connection, of either listener.
    async fn next(&self) -> (TcpStream, Option<Tls>, Option<Arc<Http>>) {
        let Some((listener, http)) = &self.http else {
            return (self.grpc.next().await, self.grpc.tls.clone(), None);
        };
        tokio::select! {
            stream = self.grpc.next() => (stream, self.grpc.tls.clone(), None),
            stream = listener.next() => (stream, listener.tls.clone(), Some(http.clone())),
        }
    }
}

async fn reload(http: Option<&(Listener, Arc<Http>)>) -> Infallible {
    match http {
        Some((listener, _)) => listener.reload().await,
        None => std::future::pending().await,
    }
}

/// Serves `services` on `listeners` until `shutdown` completes. Then new calls are refused, and
/// calls in flight may finish within [`Options::drain`].
pub async fn serve(
    mut listeners: Listeners,
    services: Services,
    options: Options,
    shutdown: impl Future<Output = ()>,
) {
    let handler = Arc::new(CallHandler::new(services, options));
    let (drain, draining) = watch::channel(false);
    let mut connections = JoinSet::new();
    let in_memory = listeners.in_memory.take();
    tokio::select! {
        () = accept(&listeners, in_memory, &mut connections, &handler, options, &draining) => {}
        never = listeners.reload() => match never {},
        never = update_gauges(&listeners.grpc, &handler) => match never {},
        () = shutdown => {}
    }

    drop(listeners);
    drain.send_replace(true);
    let mut cut_off = 0;
    while let Some(ended) = connections.join_next().await {
        cut_off += usize::from(ended.is_ok_and(|cut_off| cut_off));
    }

    if cut_off > 0 {
        tracing::warn!(connections = cut_off, "calls did not finish in time");
    }
}

async fn accept(
    listeners: &Listeners,
    mut in_memory: Option<InMemoryListener>,
    connections: &mut JoinSet<bool>,
    handler: &Arc<CallHandler>,
    options: Options,
    draining: &watch::Receiver<bool>,
) {
    let permits = Arc::new(Semaphore::new(options.max_connections));
    loop {
        let accepted = async {
            let permit = permits.clone().acquire_owned().await;
            (permit, listeners.next().await)
        };
        tokio::select! {
            (permit, (stream, tls, http)) = accepted => {
                let Ok(stream) = stream.into_std() else { continue };
                let server = Server { handler: handler.clone(), http, options };
                let draining = draining.clone();
                let (runtime, seat) = listeners.cores.seat();
                // In the order of acceptance: cores begin in another.
                let unauthenticated = handler.unauthenticated.add();
                let serve = async move {
                    let _held = (permit, seat);
                    // Its own core waits for the socket.
                    let Ok(stream) = TcpStream::from_std(stream) else { return false };
                    connection::accept(stream, tls, unauthenticated, server, draining).await
                };
                connections.spawn_on(serve, &runtime);
            }
            (stream, address) = next(&mut in_memory) => {
                let server = Server { handler: handler.clone(), http: None, options };
                let draining = draining.clone();
                connections.spawn(connection::accept_in_memory(stream, address, server, draining));
            }
        }
        while connections.try_join_next().is_some() {}
    }
}

/// The next connection of the program's own clients.
async fn next(listener: &mut Option<InMemoryListener>) -> InMemory {
    match listener {
        Some(listener) => listener.next().await,
        None => std::future::pending().await,
    }
}

/// Updates the gauges in a loop.
async fn update_gauges(listener: &Listener, handler: &CallHandler) -> Infallible {
    loop {
        handler.set_gauges();
        if let Some(tls) = &listener.tls {
            metrics::gauge!(CERTIFICATE_DAYS_LEFT.0).set(tls.seconds_left() / 86_400.0);
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
}
