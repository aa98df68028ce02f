//! Accepts connections until shutdown, then lets calls in flight finish.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;

use super::calls::handler::CallHandler;
use super::connection;
use super::connection::tls::{CERTIFICATE_DAYS_LEFT, Tls};
use super::options::Options;
use super::routes::Routes;

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
                    tracing::warn!(%error, "cannot accept a connection");
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

/// Serves `routes` on `listener` until `shutdown` completes. Then new calls are refused, and calls
/// in flight may finish within [`Options::drain`].
pub async fn serve<R: Routes>(
    listener: Listener,
    routes: R,
    options: Options,
    shutdown: impl Future<Output = ()>,
) {
    let handler = Arc::new(CallHandler::new(routes, options));
    let (drain, draining) = watch::channel(false);
    let mut connections = JoinSet::new();
    tokio::select! {
        () = accept(&listener, &mut connections, &handler, options, &draining) => {}
        never = listener.reload() => match never {},
        never = update_gauges(&listener, &handler) => match never {},
        () = shutdown => {}
    }

    drop(listener);
    drain.send_replace(true);
    let mut cut_off = 0;
    while let Some(ended) = connections.join_next().await {
        cut_off += usize::from(ended.is_ok_and(|cut_off| cut_off));
    }

    if cut_off > 0 {
        tracing::warn!(connections = cut_off, "calls did not finish in time");
    }
}

async fn accept<R: Routes>(
    listener: &Listener,
    connections: &mut JoinSet<bool>,
    handler: &Arc<CallHandler<R>>,
    options: Options,
    draining: &watch::Receiver<bool>,
) {
    let permits = Arc::new(Semaphore::new(options.max_connections));
    while let Ok(permit) = permits.clone().acquire_owned().await {
        let stream = listener.next().await;
        let (handler, draining) = (handler.clone(), draining.clone());
        let tls = listener.tls.clone();
        connections.spawn(async move {
            let cut_off = connection::accept(stream, tls, handler, options, draining).await;
            drop(permit);
            cut_off
        });
        while connections.try_join_next().is_some() {}
    }
}

/// Updates the gauges in a loop.
async fn update_gauges<R: Routes>(listener: &Listener, handler: &CallHandler<R>) -> Infallible {
    loop {
        handler.set_gauges();
        if let Some(tls) = &listener.tls {
            metrics::gauge!(CERTIFICATE_DAYS_LEFT.0).set(tls.seconds_left() / 86_400.0);
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
}
