//! A collector of traces.

use std::convert::Infallible;
use std::path::Path;
use std::sync::{Arc, Mutex};

use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper::server::conn::http2;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::{DEFAULT_VERSIONS, ServerConfig};

use crate::tls::Authority;

/// The messages that a collector has received.
#[derive(Clone, Default)]
pub struct Received(Arc<Mutex<Vec<Message>>>);

/// A message: its headers, and its bytes.
type Message = (String, Vec<u8>);

impl Received {
    /// The bytes of all messages.
    pub fn bytes(&self) -> Vec<u8> {
        self.0.lock().unwrap().iter().flat_map(|(_, bytes)| bytes.clone()).collect()
    }

    /// Whether a message has a part.
    pub fn has(&self, part: &[u8]) -> bool {
        self.bytes().windows(part.len()).any(|window| window == part)
    }

    /// The headers of all messages.
    pub fn headers(&self) -> String {
        self.0.lock().unwrap().iter().map(|(headers, _)| headers.as_str()).collect()
    }

    async fn serve(self, stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static) {
        let record = service_fn(move |request: hyper::Request<Incoming>| {
            let received = self.0.clone();
            async move {
                let headers = format!("{:?}\n", request.headers());
                let body = request.into_body().collect().await.unwrap();
                received.lock().unwrap().push((headers, body.to_bytes().to_vec()));
                let response = hyper::Response::builder()
                    .header("content-type", "application/grpc")
                    .header("grpc-status", "0");
                Ok::<_, Infallible>(response.body(String::new()).unwrap())
            }
        });
        let builder = http2::Builder::new(TokioExecutor::new());
        let _ = builder.serve_connection(TokioIo::new(stream), record).await;
    }
}

/// Starts a collector.
pub async fn collector() -> (String, Received) {
    start(None).await
}

/// Starts a collector that encrypts, with the certificate of a server.
pub async fn collector_with_tls(authority: &Authority) -> (String, Received) {
    let path = |name| authority.path(name);
    let certificate = CertificateDer::from_pem_file(Path::new(&path("server.pem"))).unwrap();
    let key = PrivateKeyDer::from_pem_file(Path::new(&path("server.key"))).unwrap();
    let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_protocol_versions(DEFAULT_VERSIONS)
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key)
        .unwrap();
    config.alpn_protocols = vec![b"h2".to_vec()];
    start(Some(TlsAcceptor::from(Arc::new(config)))).await
}

async fn start(tls: Option<TlsAcceptor>) -> (String, Received) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let scheme = if tls.is_some() { "https" } else { "http" };
    let url = format!("{scheme}://{}", listener.local_addr().unwrap());
    let received = Received::default();
    let recorded = received.clone();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let (recorded, tls) = (recorded.clone(), tls.clone());
            tokio::spawn(async move {
                match tls {
                    None => recorded.serve(stream).await,
                    Some(tls) => match tls.accept(stream).await {
                        Ok(stream) => recorded.serve(stream).await,
                        Err(error) => println!("a handshake has failed: {error}"),
                    },
                }
            });
        }
    });
    (url, received)
}
