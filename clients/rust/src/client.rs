//! The client and its settings.

use std::fmt;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use futures_util::TryFutureExt;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tonic::metadata::{Ascii, MetadataKey, MetadataMap, MetadataValue};
use tonic::service::interceptor::InterceptedService;
use tonic::transport::{Channel, Endpoint};
use tower::service_fn;

use crate::batch::Batches;
use crate::connection::{
    ConnectError, Connection, Headers, OnCall, TlsFiles, endpoint, is_loopback, server_url,
};
use crate::reconnect::{Open, Reconnect};
use crate::services::{Admin, Directory, Inbox, Registry};
use crate::token::Token;

const DEFAULT_SERVER: &str = "http://127.0.0.1:7171";
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(2);
const DEFAULT_ATTEMPTS: u32 = 3;

/// A client of one server. Clones share its connection.
#[derive(Clone)]
pub struct Client {
    shared: Arc<Shared>,
    tenant: Arc<str>,
    timeout: Duration,
}

struct Shared {
    connections: Reconnect,
    attempts: u32,
    batches: Option<Batches>,
}

impl Client {
    /// Connects to a server such as `https://users.example.com:7171`, with the token and the
    /// authorities that `POLYNYM_TOKEN_FILE` and `POLYNYM_CA` name, if any.
    pub async fn connect(server: &str) -> Result<Self, ConnectError> {
        Self::builder().server(server).connect().await
    }

    /// Settings from the environment: `POLYNYM_SERVER`, `POLYNYM_TOKEN_FILE` and `POLYNYM_CA`.
    pub fn builder() -> Builder {
        Builder::from_environment()
    }

    /// The look-ups of users.
    pub fn directory(&self) -> Directory {
        Directory(self.clone())
    }

    /// The changes of users.
    pub fn registry(&self) -> Registry {
        Registry(self.clone())
    }

    /// The notices to users.
    pub fn inbox(&self) -> Inbox {
        Inbox(self.clone())
    }

    /// The administration of the directory.
    pub fn admin(&self) -> Admin {
        Admin(self.clone())
    }

    /// The same client with another tenant for requests that name none.
    #[must_use]
    pub fn with_tenant(&self, tenant: &str) -> Self {
        Self { tenant: tenant.into(), ..self.clone() }
    }

    /// The same client with another deadline for calls that set none.
    #[must_use]
    pub fn with_timeout(&self, timeout: Duration) -> Self {
        Self { timeout, ..self.clone() }
    }

    /// The connection, for calls by the caller's own rules. The client may replace it by another
    /// one once the server is silent.
    pub fn connection(&self) -> Connection {
        self.shared.connections.connection()
    }

    pub(crate) fn connections(&self) -> &Reconnect {
        &self.shared.connections
    }

    pub(crate) fn tenant(&self) -> &str {
        &self.tenant
    }

    pub(crate) fn timeout(&self) -> Duration {
        self.timeout
    }

    pub(crate) fn max_attempts(&self) -> u32 {
        self.shared.attempts
    }

    pub(crate) fn batches(&self) -> Option<&Batches> {
        self.shared.batches.as_ref()
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = f.debug_struct("Client");
        debug.field("tenant", &self.tenant).field("timeout", &self.timeout).finish_non_exhaustive()
    }
}

/// The settings of a client.
#[derive(Clone)]
pub struct Builder {
    server: String,
    token: Option<String>,
    token_file: Option<PathBuf>,
    files: TlsFiles,
    insecure: bool,
    tenant: String,
    timeout: Duration,
    attempts: u32,
    batching: bool,
    metadata: MetadataMap,
    on_call: Option<OnCall>,
    endpoint: Option<Arc<dyn Fn(Endpoint) -> Endpoint + Send + Sync>>,
}

impl Builder {
    /// Settings for a server, without those of the environment.
    pub fn new(server: impl Into<String>) -> Self {
        Self {
            server: server.into(),
            token: None,
            token_file: None,
            files: TlsFiles::default(),
            insecure: false,
            tenant: String::new(),
            timeout: DEFAULT_TIMEOUT,
            attempts: DEFAULT_ATTEMPTS,
            batching: true,
            metadata: MetadataMap::new(),
            on_call: None,
            endpoint: None,
        }
    }

    fn from_environment() -> Self {
        let text = |name| std::env::var(name).ok().filter(|text| !text.is_empty());
        let server = text("POLYNYM_SERVER").unwrap_or_else(|| DEFAULT_SERVER.to_owned());
        let files = TlsFiles { ca: text("POLYNYM_CA").map(PathBuf::from), identity: None };
        let token_file = text("POLYNYM_TOKEN_FILE").map(PathBuf::from);
        Self { token_file, files, ..Self::new(server) }
    }

    /// The server: a URL, or `host:port`, which is plain text on loopback and TLS elsewhere.
    #[must_use]
    pub fn server(self, server: impl Into<String>) -> Self {
        Self { server: server.into(), ..self }
    }

    /// The caller's token.
    #[must_use]
    pub fn token(self, token: impl Into<String>) -> Self {
        Self { token: Some(token.into()), ..self }
    }

    /// The file of the caller's token. It is read again when it changes.
    #[must_use]
    pub fn token_file(self, path: impl Into<PathBuf>) -> Self {
        Self { token_file: Some(path.into()), ..self }
    }

    /// The file of the certificate authorities, as PEM, instead of the system's.
    #[must_use]
    pub fn ca(mut self, path: impl Into<PathBuf>) -> Self {
        self.files.ca = Some(path.into());
        self
    }

    /// The files of the caller's certificate and its key, as PEM.
    #[must_use]
    pub fn certificate(mut self, path: impl Into<PathBuf>, key: impl Into<PathBuf>) -> Self {
        self.files.identity = Some((path.into(), key.into()));
        self
    }

    /// Allows a token over plain text to another machine.
    #[must_use]
    pub fn insecure(self, insecure: bool) -> Self {
        Self { insecure, ..self }
    }

    /// The tenant of requests that name none.
    #[must_use]
    pub fn tenant(self, tenant: impl Into<String>) -> Self {
        Self { tenant: tenant.into(), ..self }
    }

    /// The time of a call with all attempts; 2 s by default. Streams have none.
    #[must_use]
    pub fn timeout(self, timeout: Duration) -> Self {
        Self { timeout, ..self }
    }

    /// The highest number of attempts of a call; 3 by default, and 1 for no retries.
    #[must_use]
    pub fn attempts(self, attempts: u32) -> Self {
        Self { attempts, ..self }
    }

    /// Whether concurrent look-ups share calls; they do by default.
    #[must_use]
    pub fn batching(self, batching: bool) -> Self {
        Self { batching, ..self }
    }

    /// A header of every call.
    #[must_use]
    pub fn header(mut self, name: MetadataKey<Ascii>, value: MetadataValue<Ascii>) -> Self {
        self.metadata.insert(name, value);
        self
    }

    /// Changes the metadata of each attempt of a call, such as to propagate a trace.
    #[must_use]
    pub fn on_call(self, on_call: impl Fn(&mut MetadataMap) + Send + Sync + 'static) -> Self {
        Self { on_call: Some(Arc::new(on_call)), ..self }
    }

    /// Changes other settings of tonic, such as keepalive.
    #[must_use]
    pub fn endpoint(self, change: impl Fn(Endpoint) -> Endpoint + Send + Sync + 'static) -> Self {
        Self { endpoint: Some(Arc::new(change)), ..self }
    }

    /// Connects, and fails if the server cannot be reached.
    pub async fn connect(self) -> Result<Client, ConnectError> {
        let (endpoint, headers) = self.prepare()?;
        Ok(self.client(endpoint.connect().await?, headers, Some(endpoint)))
    }

    /// Connects at the first call.
    pub fn connect_lazy(self) -> Result<Client, ConnectError> {
        let (endpoint, headers) = self.prepare()?;
        Ok(self.client(endpoint.connect_lazy(), headers, Some(endpoint)))
    }

    /// Connects at the first call by `connect`, such as to a server in the same program, of which
    /// the address is only the name.
    pub fn connect_with<F, S>(
        self,
        connect: impl Fn() -> F + Send + 'static,
    ) -> Result<Client, ConnectError>
    where
        F: Future<Output = io::Result<S>> + Send + 'static,
        S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    {
        let (endpoint, headers) = self.prepare()?;
        let connector = service_fn(move |_| connect().map_ok(TokioIo::new));
        Ok(self.client(endpoint.connect_with_connector_lazy(connector), headers, None))
    }

    fn prepare(&self) -> Result<(Endpoint, Headers), ConnectError> {
        let url = server_url(&self.server)?;
        let token = match (&self.token, &self.token_file) {
            (Some(token), _) => Token::fixed(token),
            (None, Some(path)) => Token::file(path.clone()),
            (None, None) => Ok(Token::Absent),
        };
        let token = token.map_err(ConnectError::Setting)?;
        let is_plain = url.scheme_str() == Some("http") && !is_loopback(&url);
        if is_plain && !self.insecure && !matches!(token, Token::Absent) {
            return Err(ConnectError::Setting(format!(
                "a token to {url} would be readable on the network: use https://, or set insecure"
            )));
        }
        let endpoint = endpoint(url, &self.files)?;
        let endpoint =
            self.endpoint.as_ref().map_or_else(|| endpoint.clone(), |f| f(endpoint.clone()));
        let (metadata, on_call) = (self.metadata.clone(), self.on_call.clone());
        Ok((endpoint, Headers { token, metadata, on_call }))
    }

    /// A client of a channel. Further ones are those of the endpoint, if any.
    fn client(self, channel: Channel, headers: Headers, endpoint: Option<Endpoint>) -> Client {
        let connection = InterceptedService::new(channel, headers.clone());
        let open = endpoint.map(|endpoint| -> Open {
            Box::new(move || InterceptedService::new(endpoint.connect_lazy(), headers.clone()))
        });
        let connections = Reconnect::new(connection, open);
        let batches = self.batching.then(Batches::default);
        let shared = Arc::new(Shared { connections, attempts: self.attempts, batches });
        Client { shared, tenant: self.tenant.into(), timeout: self.timeout }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Kind;
    use crate::v1::CreateUserRequest;

    #[tokio::test]
    async fn a_change_that_no_server_saw_has_not_happened() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        drop(listener);
        let client = Builder::new(format!("http://{address}")).connect_lazy().unwrap();
        let refused = client.registry().create_user(CreateUserRequest::default()).await;
        assert_eq!(refused.unwrap_err().kind(), Kind::Unavailable);
    }

    #[tokio::test]
    async fn a_token_in_plain_text_stays_on_this_machine() {
        let outcome = Builder::new("http://users:7171").token("secret").connect_lazy();
        let error = outcome.err().map(|error| error.to_string()).unwrap_or_default();
        assert!(error.contains("insecure") && !error.contains("secret "), "{error}");
        assert!(Builder::new("http://users:7171").token("a").insecure(true).connect_lazy().is_ok());
        assert!(Builder::new("http://127.0.0.1:7171").token("a").connect_lazy().is_ok());
        assert!(Builder::new("http://users:7171").connect_lazy().is_ok());
    }
}
