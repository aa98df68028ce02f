//! The settings of a client.

use std::fmt;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::time::Duration;

use futures_util::{FutureExt, TryFutureExt};
use http::Uri;
use tokio::io::{AsyncRead, AsyncWrite};
use tonic::metadata::{Ascii, MetadataKey, MetadataMap, MetadataValue};
use tonic::transport::Endpoint;

use crate::attempts::backoff::Backoff;
use crate::attempts::budget::Budget;
use crate::batch::Batches;
use crate::batch::group::MAX_ITEMS;
use crate::client::{Client, Shared};
use crate::connection::address::{is_loopback, server_urls};
use crate::connection::dial::{Bytes, Dial, Opener, TlsFiles, endpoint};
use crate::connection::pool::Pool;
use crate::connection::token::Token;
use crate::connection::{ConnectError, Headers, OnCall};
use crate::observer::{Attempt, Observer};

const DEFAULT_SERVER: &str = "http://127.0.0.1:7171";
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(2);
const DEFAULT_ATTEMPTS: u32 = 3;

impl Client {
    /// Connects to a server such as `https://users.example.com:7171`, or to several with commas
    /// between them, with the token and the authorities that `POLYNYM_TOKEN_FILE` and `POLYNYM_CA`
    /// name, if any. Fails if no server can be reached.
    pub async fn connect(server: &str) -> Result<Self, ConnectError> {
        Self::builder().server(server).connect().await
    }

    /// Settings from the environment: `POLYNYM_SERVER`, `POLYNYM_TOKEN_FILE` and `POLYNYM_CA`.
    pub fn builder() -> Builder {
        Builder::from_environment()
    }
}

/// The settings of a client.
#[derive(Clone)]
pub struct Builder {
    server: String,
    token: Option<String>,
    token_file: Option<PathBuf>,
    /// The file of the environment, if the caller names no token.
    default_token_file: Option<PathBuf>,
    files: TlsFiles,
    insecure: bool,
    tenant: String,
    timeout: Duration,
    attempts: u32,
    wait_for_ready: bool,
    backoff: Backoff,
    batching: bool,
    metadata: MetadataMap,
    on_call: Option<OnCall>,
    observer: Option<Observer>,
    endpoint: Option<Arc<dyn Fn(Endpoint) -> Endpoint + Send + Sync>>,
}

impl Builder {
    /// Settings for servers, without those of the environment.
    pub fn new(server: impl Into<String>) -> Self {
        Self {
            server: server.into(),
            token: None,
            token_file: None,
            default_token_file: None,
            files: TlsFiles::default(),
            insecure: false,
            tenant: String::new(),
            timeout: DEFAULT_TIMEOUT,
            attempts: DEFAULT_ATTEMPTS,
            wait_for_ready: true,
            backoff: Backoff::default(),
            batching: true,
            metadata: MetadataMap::new(),
            on_call: None,
            observer: None,
            endpoint: None,
        }
    }

    /// Settings of the environment.
    fn from_environment() -> Self {
        let text = |name| std::env::var(name).ok().filter(|text| !text.is_empty());
        let server = text("POLYNYM_SERVER").unwrap_or_else(|| DEFAULT_SERVER.to_owned());
        let files = TlsFiles { ca: text("POLYNYM_CA").map(PathBuf::from), identity: None };
        let default_token_file = text("POLYNYM_TOKEN_FILE").map(PathBuf::from);
        Self { default_token_file, files, ..Self::new(server) }
    }

    /// The server: a URL, or `host:port`, which is plain text on loopback and TLS elsewhere. Or
    /// several, with commas between them.
    #[must_use]
    pub fn server(self, server: impl Into<String>) -> Self {
        Self { server: server.into(), ..self }
    }

    /// The servers. Calls take turns among those that are connected.
    #[must_use]
    pub fn servers<S: Into<String>>(self, servers: impl IntoIterator<Item = S>) -> Self {
        let servers: Vec<String> = servers.into_iter().map(Into::into).collect();
        self.server(servers.join(","))
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

    /// The highest number of attempts of a call that reach the server; 3 by default, and 1 for no
    /// retries.
    #[must_use]
    pub fn attempts(self, attempts: u32) -> Self {
        Self { attempts, ..self }
    }

    /// Whether calls wait until their deadlines for a server that cannot be reached; they do by
    /// default.
    #[must_use]
    pub fn wait_for_ready(self, wait_for_ready: bool) -> Self {
        Self { wait_for_ready, ..self }
    }

    /// The first and the longest delay between attempts to reach a server; 50 ms and 1 s by
    /// default.
    #[must_use]
    pub fn backoff(self, first: Duration, longest: Duration) -> Self {
        Self { backoff: Backoff { first, longest }, ..self }
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

    /// Calls a function after each attempt of a call, such as for logs and metrics. A call goes on
    /// if it panics.
    #[must_use]
    pub fn observer(self, observer: impl Fn(&Attempt) + Send + Sync + 'static) -> Self {
        Self { observer: Some(Arc::new(observer)), ..self }
    }

    /// Changes other settings of tonic, such as keepalive.
    #[must_use]
    pub fn endpoint(self, change: impl Fn(Endpoint) -> Endpoint + Send + Sync + 'static) -> Self {
        Self { endpoint: Some(Arc::new(change)), ..self }
    }

    /// Connects, and fails if no server can be reached in the time of a call.
    pub async fn connect(self) -> Result<Client, ConnectError> {
        let client = self.connect_lazy()?;
        match client.pool().link(None, client.deadline(None)).await {
            Ok(_) => Ok(client),
            Err(error) => Err(ConnectError::Unreachable(error)),
        }
    }

    /// Connects at the first call.
    pub fn connect_lazy(self) -> Result<Client, ConnectError> {
        self.check()?;
        let urls = server_urls(&self.server)?;
        let headers = self.headers(&urls)?;
        let dials = urls.into_iter().map(|url| self.dial(url, &headers, None));
        let dials = dials.collect::<Result<_, _>>()?;
        Ok(self.client(dials))
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
        self.check()?;
        let mut urls = server_urls(&self.server)?;
        let headers = self.headers(&urls)?;
        let boxed = |stream| -> Box<dyn Bytes> { Box::new(stream) };
        let opener: Opener = Box::new(move || connect().map_ok(boxed).boxed());
        let dial = self.dial(urls.remove(0), &headers, Some(opener))?;
        Ok(self.client(vec![dial]))
    }

    /// Refuses settings with which no call could succeed, or which exclude each other.
    fn check(&self) -> Result<(), ConnectError> {
        let Backoff { first, longest } = self.backoff;
        let faults = [
            (self.timeout.is_zero(), "the timeout must be greater than zero"),
            (self.attempts == 0, "a call has at least one attempt"),
            (
                first.is_zero() || longest < first,
                "the first delay must be greater than zero, and the longest no less",
            ),
            (
                self.token.is_some() && self.token_file.is_some(),
                "token and token_file exclude each other",
            ),
        ];
        match faults.iter().find(|(is_fault, _)| *is_fault) {
            Some((_, message)) => Err(ConnectError::Setting((*message).to_owned())),
            None => Ok(()),
        }
    }

    fn headers(&self, urls: &[Uri]) -> Result<Headers, ConnectError> {
        let file = self.token_file.as_ref().or(self.default_token_file.as_ref());
        let token = match (&self.token, file) {
            (Some(token), _) => Token::fixed(token),
            (None, Some(path)) => Token::file(path.clone()),
            (None, None) => Ok(Token::Absent),
        };
        let token = token.map_err(ConnectError::Setting)?;
        let is_plain = |url: &&Uri| url.scheme_str() == Some("http") && !is_loopback(url);
        if let Some(url) = urls.iter().find(is_plain)
            && !self.insecure
            && !matches!(token, Token::Absent)
        {
            return Err(ConnectError::Setting(format!(
                "a token to {url} would be readable on the network: use https://, or set insecure"
            )));
        }
        let (metadata, on_call) = (self.metadata.clone(), self.on_call.clone());
        Ok(Headers { token, metadata, on_call })
    }

    fn dial(
        &self,
        url: Uri,
        headers: &Headers,
        opener: Option<Opener>,
    ) -> Result<Arc<Dial>, ConnectError> {
        let endpoint = endpoint(url, &self.files)?;
        let endpoint = match &self.endpoint {
            Some(change) => change(endpoint),
            None => endpoint,
        };
        Ok(Arc::new(Dial::new(endpoint, headers.clone(), opener)))
    }

    fn client(self, dials: Vec<Arc<Dial>>) -> Client {
        let shared = Shared {
            pool: Pool::new(dials, self.backoff, self.wait_for_ready),
            attempts: self.attempts,
            batches: self.batching.then(Batches::default),
            backoff: self.backoff,
            wait_for_ready: self.wait_for_ready,
            budget: Budget::default(),
            max_items: AtomicUsize::new(MAX_ITEMS),
            observer: self.observer,
        };
        Client::new(shared, &self.tenant, self.timeout)
    }
}

impl fmt::Debug for Builder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Builder").field("server", &self.server).finish_non_exhaustive()
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
    async fn settings_that_cannot_be_are_refused() {
        let fault = |builder: Builder| builder.connect_lazy().err().unwrap().to_string();
        let builder = || Builder::new("http://127.0.0.1:7171");
        let second = Duration::from_secs(1);
        assert!(fault(builder().timeout(Duration::ZERO)).contains("timeout"));
        assert!(fault(builder().attempts(0)).contains("attempt"));
        assert!(fault(builder().backoff(Duration::ZERO, second)).contains("delay"));
        assert!(fault(builder().backoff(2 * second, second)).contains("delay"));
        assert!(fault(builder().token("a").token_file("b")).contains("exclude each other"));
        assert!(fault(builder().servers([""; 0])).contains("is not a server"));
        let default_token_file = Some(PathBuf::from("b"));
        let environment = Builder { default_token_file, ..builder() };
        assert!(environment.token("a").connect_lazy().is_ok());
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
