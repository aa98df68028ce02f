//! How to connect to a server.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::future::BoxFuture;
use futures_util::{FutureExt, TryFutureExt};
use http::Uri;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, lookup_host};
use tokio::time::timeout;
use tonic::service::interceptor::InterceptedService;
use tonic::transport::{self, Certificate, ClientTlsConfig, Endpoint, Identity};
use tower::{Service, service_fn};

use super::address::{host, port};
use super::{ConnectError, Connection, Headers};

/// The name of this client in `user-agent`.
const USER_AGENT: &str = concat!("polynym-rust/", env!("CARGO_PKG_VERSION"));

/// The flow-control windows of a stream and of the connection: a large answer must not wait for
/// window updates. Half of the latter is the budget for small messages that wait, by which HTTP/2
/// would end the connection: a window of results in messages of 52 bytes or more fits.
const WINDOW_BYTES: u32 = 1 << 20;
const CONNECTION_WINDOW_BYTES: u32 = 8 << 20;

/// While a call is open, a server that is silent for the interval is asked whether it is there. A
/// connection on which it does not answer in time ends.
const PING_INTERVAL: Duration = Duration::from_secs(10);
const PING_TIMEOUT: Duration = Duration::from_secs(5);
/// The time to reach one address, with TLS.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);

/// The time to reach an address again whose connection has ended.
const REOPEN_TIMEOUT: Duration = Duration::from_millis(500);

/// The bytes to a server and back.
pub trait Bytes: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Bytes for T {}

/// Bytes to a server, once it is reached.
type Opening = BoxFuture<'static, io::Result<Box<dyn Bytes>>>;
/// Opens connections by the caller's own means.
pub type Opener = Box<dyn Fn() -> Opening + Send>;

/// One server.
pub struct Dial {
    endpoint: Endpoint,
    headers: Headers,
    /// None for the server's own addresses.
    opener: Option<Mutex<Opener>>,
}

/// An address of a server; none if the caller opens connections.
pub type Address = Option<SocketAddr>;

impl Dial {
    pub fn new(endpoint: Endpoint, headers: Headers, opener: Option<Opener>) -> Self {
        Self { endpoint, headers, opener: opener.map(Mutex::new) }
    }

    /// The addresses that the server has now.
    pub async fn addresses(&self) -> io::Result<Vec<Address>> {
        if self.opener.is_some() {
            return Ok(vec![None]);
        }
        let url = self.endpoint.uri();
        let found = lookup_host((host(url), port(url))).await?;
        let mut addresses: Vec<_> = found.map(Some).collect();
        addresses.sort_unstable();
        addresses.dedup();
        Ok(addresses)
    }

    /// Connects to an address. A call on a connection that has ended opens it again: the error then
    /// says why it has ended, such as that the server rejects a certificate. If that takes long,
    /// the call can go on to another.
    pub async fn connect(
        self: &Arc<Self>,
        address: Address,
    ) -> Result<Connection, transport::Error> {
        let (dial, mut first) = (Arc::clone(self), Some(self.open(address)));
        let connector = service_fn(move |_: Uri| {
            let again = || {
                let opening = timeout(REOPEN_TIMEOUT, dial.open(address));
                opening.map(|outcome| outcome.unwrap_or_else(|late| Err(late.into()))).boxed()
            };
            first.take().unwrap_or_else(again).map_ok(TokioIo::new)
        });
        let channel = self.endpoint.connect_with_connector(connector).await?;
        Ok(InterceptedService::new(channel, self.headers.clone()))
    }

    /// A connection that begins with its first call.
    pub fn connect_lazy(self: &Arc<Self>) -> Connection {
        let channel = match &self.opener {
            Some(_) => self.endpoint.connect_with_connector_lazy(self.connector()),
            None => self.endpoint.connect_lazy(),
        };
        InterceptedService::new(channel, self.headers.clone())
    }

    fn connector(
        self: &Arc<Self>,
    ) -> impl Service<Uri, Response = TokioIo<Box<dyn Bytes>>, Error = io::Error, Future: Send>
    + Send
    + use<> {
        let dial = Arc::clone(self);
        service_fn(move |_: Uri| dial.open(None).map_ok(TokioIo::new))
    }

    /// The text of an address for observers.
    pub fn name(&self, address: Address) -> String {
        let url = self.endpoint.uri();
        let own = || format!("{}:{}", url.host().unwrap_or_default(), port(url));
        address.map_or_else(own, |found| found.to_string())
    }

    fn open(&self, address: Address) -> Opening {
        match (address, &self.opener) {
            (_, Some(opener)) => opener.lock().unwrap_or_else(PoisonError::into_inner)(),
            (Some(address), None) => reach(address, self.endpoint.get_tcp_nodelay()).boxed(),
            (None, None) => async { Err(io::ErrorKind::AddrNotAvailable.into()) }.boxed(),
        }
    }
}

async fn reach(address: SocketAddr, nodelay: bool) -> io::Result<Box<dyn Bytes>> {
    let stream = TcpStream::connect(address).await?;
    stream.set_nodelay(nodelay)?;
    Ok(Box::new(stream))
}

impl fmt::Debug for Dial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Dial").field(self.endpoint.uri()).finish()
    }
}

/// The files of TLS.
#[derive(Clone, Debug, Default)]
pub struct TlsFiles {
    /// The certificate authorities; the system's without.
    pub ca: Option<PathBuf>,
    /// The caller's certificate and its key.
    pub identity: Option<(PathBuf, PathBuf)>,
}

/// The endpoint of a server.
pub fn endpoint(url: Uri, files: &TlsFiles) -> Result<Endpoint, ConnectError> {
    let is_tls = url.scheme_str() == Some("https");
    let endpoint = Endpoint::from(url)
        .user_agent(USER_AGENT)?
        .connect_timeout(CONNECT_TIMEOUT)
        .initial_stream_window_size(WINDOW_BYTES)
        .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
        .http2_keep_alive_interval(PING_INTERVAL)
        .keep_alive_timeout(PING_TIMEOUT);
    if is_tls { Ok(endpoint.tls_config(tls(files)?)?) } else { Ok(endpoint) }
}

fn tls(files: &TlsFiles) -> Result<ClientTlsConfig, ConnectError> {
    let config = match &files.ca {
        Some(path) => ClientTlsConfig::new().ca_certificate(Certificate::from_pem(read(path)?)),
        None => ClientTlsConfig::new().with_native_roots(),
    };
    let Some((certificate, key)) = &files.identity else { return Ok(config) };
    Ok(config.identity(Identity::from_pem(read(certificate)?, read(key)?)))
}

fn read(path: &Path) -> Result<Vec<u8>, ConnectError> {
    std::fs::read(path)
        .map_err(|error| ConnectError::Setting(format!("{}: {error}", path.display())))
}

#[cfg(test)]
pub mod tests {
    use std::future::pending;

    use tonic::client::Grpc;
    use tonic_prost::ProstCodec;

    use super::*;
    use crate::connection::token::Token;
    use crate::error::Error;

    /// Connects to what `opener` opens.
    pub fn dial(opener: Opener) -> Arc<Dial> {
        let headers = Headers { token: Token::Absent, metadata: Default::default(), on_call: None };
        Arc::new(Dial::new(Endpoint::from_static("http://users"), headers, Some(opener)))
    }

    #[tokio::test]
    async fn a_call_on_a_connection_that_has_ended_soon_goes_on_to_another() {
        let (near, far) = tokio::io::duplex(1 << 16);
        let near = Mutex::new(Some(near));
        let dial = dial(Box::new(move || match near.lock().unwrap().take() {
            Some(near) => async { Ok(Box::new(near) as Box<dyn Bytes>) }.boxed(),
            // The host is gone.
            None => pending().boxed(),
        }));
        let connection = dial.connect(None).await.unwrap();
        drop(far);
        let call = async || {
            let mut grpc = Grpc::new(connection.clone());
            grpc.ready().await.unwrap();
            let (path, codec) = ("/call".parse().unwrap(), ProstCodec::<(), ()>::default());
            Error::from(grpc.unary(tonic::Request::new(()), path, codec).await.unwrap_err())
        };
        // The first may meet a connection that has not seen its end.
        let outcome = async { while !call().await.is_never_sent() {} };
        timeout(Duration::from_secs(30), outcome).await.unwrap();
    }
}
