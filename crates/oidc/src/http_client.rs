//! The requests to a provider: each on a connection of its own, bounded in time and bytes, to where
//! nobody can change the answer. Redirects are not followed.

use std::future::pending;
use std::pin::Pin;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use bytes::Bytes;
use http::header::HOST;
use http::{HeaderValue, Response, Uri};
use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use openidconnect::{AsyncHttpClient, HttpRequest, HttpResponse};
use polynym_access::{is_loopback, is_safe_url};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::ServerName;
use tokio_rustls::rustls::{ClientConfig, DEFAULT_VERSIONS, RootCertStore};
use url::{Host, Url};

use crate::fault::Fault;

/// The time of a request.
const TIMEOUT: Duration = Duration::from_secs(5);
/// The maximum bytes of the body of an answer, and of its head.
const MAX_BODY_BYTES: usize = 256 << 10;
const MAX_HEAD_BYTES: usize = 32 << 10;

/// Connects with the authorities of the system; none if they cannot be used.
static TLS: LazyLock<Option<TlsConnector>> = LazyLock::new(|| {
    let mut roots = RootCertStore::empty();
    let _ = roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()));
    let builder = builder.with_protocol_versions(DEFAULT_VERSIONS).ok()?;
    let config = builder.with_root_certificates(roots).with_no_client_auth();
    Some(TlsConnector::from(Arc::new(config)))
});

/// Sends requests to a provider.
#[derive(Clone, Copy, Debug)]
pub struct HttpClient {
    /// Whether the provider is on this machine, where it needs no TLS.
    pub is_local: bool,
}

impl<'c> AsyncHttpClient<'c> for HttpClient {
    type Error = Fault;
    type Future = Pin<Box<dyn Future<Output = Result<HttpResponse, Fault>> + Send + 'c>>;

    fn call(&'c self, request: HttpRequest) -> Self::Future {
        Box::pin(
            async move { timeout(TIMEOUT, self.send(request)).await.unwrap_or(Err(Fault::Silent)) },
        )
    }
}

impl HttpClient {
    async fn send(self, request: HttpRequest) -> Result<HttpResponse, Fault> {
        let url = Url::parse(&request.uri().to_string()).map_err(|_| Fault::Insecure)?;
        if !is_safe_url(&url) || (url.scheme() == "http" && !self.is_local) {
            return Err(Fault::Insecure);
        }
        let host = url.host().ok_or(Fault::Insecure)?;
        let port = url.port_or_known_default().ok_or(Fault::Insecure)?;
        let stream = match &host {
            Host::Domain(name) => TcpStream::connect((*name, port)).await,
            Host::Ipv4(address) => TcpStream::connect((*address, port)).await,
            Host::Ipv6(address) => TcpStream::connect((*address, port)).await,
        };
        let stream = stream.map_err(|error| Fault::Unreachable(error.to_string()))?;
        if url.scheme() == "http" {
            return exchange(stream, request).await;
        }
        let name = match host {
            Host::Domain(name) => ServerName::try_from(name.to_owned()).ok(),
            Host::Ipv4(address) => Some(ServerName::from(std::net::IpAddr::from(address))),
            Host::Ipv6(address) => Some(ServerName::from(std::net::IpAddr::from(address))),
        };
        let (name, tls) = name.zip(TLS.as_ref()).ok_or(Fault::Insecure)?;
        let encrypted = tls.connect(name, stream).await;
        exchange(encrypted.map_err(|error| Fault::Unreachable(error.to_string()))?, request).await
    }
}

/// Whether a URL of this machine needs no TLS.
pub fn is_local(issuer: &str) -> bool {
    Url::parse(issuer).is_ok_and(|url| is_loopback(&url))
}

/// Sends a request, and reads the whole answer.
async fn exchange(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    request: HttpRequest,
) -> Result<HttpResponse, Fault> {
    let broken = |error: hyper::Error| Fault::Unreachable(error.to_string());
    let mut builder = http1::Builder::new();
    builder.max_buf_size(MAX_HEAD_BYTES);
    let (mut sender, connection) = builder.handshake(TokioIo::new(stream)).await.map_err(broken)?;
    let answer = async {
        let response = sender.send_request(with_host(request)?).await.map_err(broken)?;
        let (parts, body) = response.into_parts();
        let body = Limited::new(body, MAX_BODY_BYTES).collect().await.map_err(|error| {
            match error.downcast_ref::<LengthLimitError>() {
                Some(_) => Fault::TooLarge,
                None => Fault::Unreachable(error.to_string()),
            }
        })?;
        Ok(Response::from_parts(parts, body.to_bytes().to_vec()))
    };
    // The connection is driven until the answer is read, and closed then.
    let driven = async {
        let _ = connection.await;
        pending().await
    };
    tokio::select! {
        answer = answer => answer,
        never = driven => never,
    }
}

/// The request as it is sent on a connection: with the path alone, and the host as a header.
fn with_host(request: HttpRequest) -> Result<http::Request<Full<Bytes>>, Fault> {
    let (mut parts, body) = request.into_parts();
    let host = parts.uri.authority().map(|authority| HeaderValue::try_from(authority.as_str()));
    parts.headers.insert(HOST, host.and_then(Result::ok).ok_or(Fault::Insecure)?);
    let path = parts.uri.path_and_query().map_or("/", |path| path.as_str());
    parts.uri = path.parse::<Uri>().map_err(|_| Fault::Insecure)?;
    Ok(http::Request::from_parts(parts, Full::from(body)))
}
