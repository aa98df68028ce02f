//! Accepts connections until it is stopped, then lets calls under way finish.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;

use super::call_handler::CallHandler;
use super::connection;
use super::options::Options;
use super::routes::Routes;
use super::tls::{CERTIFICATE_DAYS_LEFT, Tls};

/// A place where connections are accepted.
pub struct Listener {
    /// The socket.
    pub tcp: TcpListener,
    /// The encryption, if there is any.
    pub tls: Option<Tls>,
}

impl Listener {
    /// Keeps the certificate up to date.
    pub async fn reload(&self) -> Infallible {
        match &self.tls {
            Some(tls) => tls.reload().await,
            None => std::future::pending().await,
        }
    }

    /// The next connection. Where the machine has no file left for it, some may be free soon.
    pub async fn next(&self) -> TcpStream {
        loop {
            match self.tcp.accept().await {
                Ok((stream, _)) => {
                    let _ = stream.set_nodelay(true);
                    return stream;
                }
                Err(error) => {
                    tracing::warn!(%error, "a connection could not be accepted");
                    tokio::time::sleep(Duration::from_millis(100)).await;
                }
            }
        }
    }
}

impl From<TcpListener> for Listener {
    /// Without encryption.
    fn from(tcp: TcpListener) -> Self {
        Self { tcp, tls: None }
    }
}

/// Serves `routes` on `listener` until `shutdown` completes. Then further calls are refused, and
/// calls under way may finish within [`Options::drain`].
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
        never = measure(&listener, &handler) => match never {},
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
    let places = Arc::new(Semaphore::new(options.max_connections));
    while let Ok(place) = places.clone().acquire_owned().await {
        let stream = listener.next().await;
        let (handler, draining) = (handler.clone(), draining.clone());
        let tls = listener.tls.clone();
        connections.spawn(async move {
            let cut_off = connection::accept(stream, tls, handler, options, draining).await;
            drop(place);
            cut_off
        });
        while connections.try_join_next().is_some() {}
    }
}

/// Sets the gauges of what is in use, in a loop.
async fn measure<R: Routes>(listener: &Listener, handler: &CallHandler<R>) -> Infallible {
    loop {
        handler.set_gauges();
        if let Some(tls) = &listener.tls {
            metrics::gauge!(CERTIFICATE_DAYS_LEFT.0).set(tls.seconds_left() / 86_400.0);
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
}
