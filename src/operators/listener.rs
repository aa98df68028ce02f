//! Connections of operators: few, and each for a short time.

use std::sync::Arc;
use std::time::Duration;

use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::pages::Pages;
use crate::transport::{Listener, Tls, UnauthenticatedConnections};

/// Connections at once. One more closes the oldest, so that nobody can keep others out.
const CONNECTIONS: usize = 64;
/// The time for a TLS handshake, and for the headers of a request.
const HEADERS: Duration = Duration::from_secs(10);
/// The age at which a connection is closed.
const AGE: Duration = Duration::from_secs(300);
/// The bytes of a request's headers, and of an answer that waits.
const BUFFER: usize = 16 << 10;

/// Serves the pages until it is dropped.
pub async fn serve(listener: Listener, pages: Pages) {
    let open = UnauthenticatedConnections::new(CONNECTIONS);
    tokio::select! {
        () = accept(&listener, &open, &pages) => {}
        never = listener.reload() => match never {},
    }
}

async fn accept(listener: &Listener, open: &Arc<UnauthenticatedConnections>, pages: &Pages) {
    loop {
        let stream = listener.next().await;
        let (entry, pages, tls) = (open.add(), pages.clone(), listener.tls.clone());
        tokio::spawn(async move {
            tokio::select! {
                () = connection(stream, tls, pages) => {}
                () = entry.evicted() => {}
                () = tokio::time::sleep(AGE) => {}
            }
        });
    }
}

async fn connection(stream: TcpStream, tls: Option<Tls>, pages: Pages) {
    let Some(tls) = tls else { return exchange(stream, pages, &[]).await };
    if let Ok(Ok(accepted)) = timeout(HEADERS, tls.accept(stream)).await {
        let names = accepted.certificate.map(|certificate| certificate.names);
        exchange(accepted.stream, pages, &names.unwrap_or_default()).await;
    }
}

/// Answers requests, one after the other.
async fn exchange(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    pages: Pages,
    names: &[String],
) {
    let service = TowerToHyperService::new(pages.router(names));
    let served = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADERS)
        .max_buf_size(BUFFER)
        .serve_connection(TokioIo::new(stream), service)
        .await;
    if let Err(error) = served {
        tracing::debug!(%error, "an operator's connection has failed");
    }
}
