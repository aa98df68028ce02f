//! The connection to a server: its address, TLS, and the headers of each call.

use std::error::Error;
use std::fmt;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use http::Uri;
use tonic::metadata::MetadataMap;
use tonic::service::Interceptor;
use tonic::service::interceptor::InterceptedService;
use tonic::transport::{self, Certificate, Channel, ClientTlsConfig, Endpoint, Identity};
use tonic::{Request, Status};

use crate::token::Token;

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

/// A connection whose calls carry the caller's token and headers. It has no other rule of the
/// client: neither deadlines nor retries.
pub type Connection = InterceptedService<Channel, Headers>;

/// Changes the metadata of each attempt of a call, such as for tracing.
pub type OnCall = Arc<dyn Fn(&mut MetadataMap) + Send + Sync>;

/// The headers of every call.
#[derive(Clone)]
pub struct Headers {
    pub(crate) token: Token,
    pub(crate) metadata: MetadataMap,
    pub(crate) on_call: Option<OnCall>,
}

impl Interceptor for Headers {
    fn call(&mut self, mut request: Request<()>) -> Result<Request<()>, Status> {
        let metadata = request.metadata_mut();
        if let Some(token) = self.token.current() {
            metadata.insert("authorization", token);
        }
        for entry in self.metadata.iter() {
            if let tonic::metadata::KeyAndValueRef::Ascii(name, value) = entry {
                metadata.insert(name, value.clone());
            }
        }
        if let Some(on_call) = &self.on_call {
            on_call(metadata);
        }
        Ok(request)
    }
}

/// Why a client cannot connect.
#[derive(Debug)]
#[non_exhaustive]
pub enum ConnectError {
    /// A setting is wrong, or names a file that cannot be read.
    Setting(String),
    /// The server cannot be reached.
    Unreachable(transport::Error),
}

impl fmt::Display for ConnectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Setting(message) => f.write_str(message),
            Self::Unreachable(error) => {
                let causes = std::iter::successors(error.source(), |&cause| cause.source());
                match causes.last() {
                    Some(cause) => write!(f, "the server cannot be reached: {cause}"),
                    None => write!(f, "the server cannot be reached: {error}"),
                }
            }
        }
    }
}

impl Error for ConnectError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Setting(_) => None,
            Self::Unreachable(error) => Some(error),
        }
    }
}

impl From<transport::Error> for ConnectError {
    fn from(error: transport::Error) -> Self {
        Self::Unreachable(error)
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

/// The URL of a server: `host:port` without a scheme is plain text on loopback, else TLS.
pub fn server_url(server: &str) -> Result<Uri, ConnectError> {
    let wrong = || {
        ConnectError::Setting(format!(
            "{server:?} is not a server: write a URL such as https://users.example.com:7171"
        ))
    };
    let parse = |text: &str| text.parse::<Uri>().map_err(|_| wrong());
    if server.contains("://") {
        let url = parse(server)?;
        let is_known = matches!(url.scheme_str(), Some("http" | "https"));
        return if is_known && url.host().is_some() { Ok(url) } else { Err(wrong()) };
    }
    let plain = parse(&format!("http://{server}"))?;
    if is_loopback(&plain) { Ok(plain) } else { parse(&format!("https://{server}")) }
}

/// Whether the host is this machine.
pub fn is_loopback(url: &Uri) -> bool {
    let host = url.host().unwrap_or_default().trim_matches(['[', ']']);
    host == "localhost" || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

/// The endpoint of a server.
pub fn endpoint(url: Uri, files: &TlsFiles) -> Result<Endpoint, ConnectError> {
    let is_tls = url.scheme_str() == Some("https");
    let endpoint = Endpoint::from(url)
        .user_agent(USER_AGENT)?
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
mod tests {
    use super::*;

    #[test]
    fn a_host_without_a_scheme_is_plain_text_on_loopback_alone() {
        for (server, url) in [
            ("127.0.0.1:7171", "http://127.0.0.1:7171/"),
            ("localhost:7171", "http://localhost:7171/"),
            ("[::1]:7171", "http://[::1]:7171/"),
            ("users:7171", "https://users:7171/"),
            ("http://users:7171", "http://users:7171/"),
            ("https://127.0.0.1:7171", "https://127.0.0.1:7171/"),
        ] {
            assert_eq!(server_url(server).unwrap().to_string(), url);
        }
        for wrong in ["", "ftp://users", "a b", "https://"] {
            assert!(server_url(wrong).is_err(), "{wrong}");
        }
    }
}
