//! Connections of operators, with limits on their number and age.

use std::sync::Arc;
use std::time::Duration;

use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::pages::Pages;
use polynym_transport::{EvictionQueue, Listener, Tls};

/// The maximum connections. A further one closes the oldest, so that no client can lock out others.
const MAX_CONNECTIONS: usize = 64;
/// The timeout of a TLS handshake, and of the headers of a request.
const HEADER_TIMEOUT: Duration = Duration::from_secs(10);
/// The maximum age of a connection.
const MAX_CONNECTION_AGE: Duration = Duration::from_secs(300);
/// The maximum bytes of a request's headers, and of a buffered response.
const MAX_BUFFER_BYTES: usize = 16 << 10;

/// Serves the pages until the future is dropped.
pub async fn serve(listener: Listener, pages: Pages) {
    let permits = EvictionQueue::new(MAX_CONNECTIONS);
    tokio::select! {
        () = accept(&listener, &permits, &pages) => {}
        never = listener.reload() => match never {},
    }
}

async fn accept(listener: &Listener, permits: &Arc<EvictionQueue>, pages: &Pages) {
    loop {
        let stream = listener.next().await;
        let (permit, pages, tls) = (permits.add(), pages.clone(), listener.tls.clone());
        tokio::spawn(async move {
            tokio::select! {
                () = connection(stream, tls, pages) => {}
                () = permit.evicted() => {}
                () = tokio::time::sleep(MAX_CONNECTION_AGE) => {}
            }
        });
    }
}

async fn connection(stream: TcpStream, tls: Option<Tls>, pages: Pages) {
    let Some(tls) = tls else { return exchange(stream, pages, &[]).await };
    if let Ok(Ok(accepted)) = timeout(HEADER_TIMEOUT, tls.accept(stream)).await {
        let names = accepted.certificate.map(|certificate| certificate.names);
        exchange(accepted.stream, pages, &names.unwrap_or_default()).await;
    }
}

/// Answers the requests of a connection.
async fn exchange(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    pages: Pages,
    names: &[String],
) {
    let service = TowerToHyperService::new(pages.router(names));
    let served = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADER_TIMEOUT)
        .max_buf_size(MAX_BUFFER_BYTES)
        .serve_connection(TokioIo::new(stream), service)
        .await;
    if let Err(error) = served {
        tracing::debug!(%error, "an operator's connection failed");
    }
}
