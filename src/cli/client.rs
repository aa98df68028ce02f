//! A connection to a server, and calls that are safe to send twice.

use std::error::Error;
use std::iter::successors;
use std::path::Path;
use std::time::Duration;

use http::HeaderValue;
use locality_uuid::{Generator, Mode};
use tokio_rustls::rustls::pki_types::CertificateDer;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tonic::metadata::{Ascii, MetadataValue};
use tonic::service::Interceptor;
use tonic::service::interceptor::InterceptedService;
use tonic::transport::{self, Certificate, Channel, ClientTlsConfig, Endpoint, Identity};
use tonic::{Code, Request, Response, Status};

use super::failure::{FailedCall, Failure};
use crate::access::Token;
use crate::client::admin_service_client::AdminServiceClient;
use crate::client::directory_service_client::DirectoryServiceClient;
use crate::client::inbox_service_client::InboxServiceClient;
use crate::client::registry_service_client::RegistryServiceClient;
use crate::config::{Client, Flags};
use crate::proto::v1::{GetTenantRequest, Tenant};

/// The pause before a call is sent a second time.
const PAUSE: Duration = Duration::from_millis(200);

/// Runs a command. One thread does: a command waits for a server far longer than it computes.
pub fn block_on(command: impl Future<Output = Result<(), Failure>>) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| Failure::Other(format!("cannot start: {error}")))?;
    runtime.block_on(command)
}

/// The pause between two looks at a tenant.
const POLL: Duration = Duration::from_millis(500);
/// The bytes that a server may send before they are taken.
const WINDOW: u32 = 1 << 20;

/// A connection to the server that the settings name.
pub struct Session {
    connection: Connection,
    settings: Client,
}

impl Session {
    /// Reads the settings and connects.
    pub async fn open(flags: &Flags<Client>) -> Result<Self, Failure> {
        let settings = flags.load()?;
        let connection = connect(&settings).await?;
        Ok(Self::new(connection, settings))
    }

    /// Calls over a connection that is there.
    pub fn new(connection: Connection, settings: Client) -> Self {
        Self { connection, settings }
    }

    pub fn json(&self) -> bool {
        self.settings.output.json
    }

    pub fn tenant(&self) -> String {
        self.settings.tenant.clone()
    }

    pub fn directory(&self) -> DirectoryServiceClient<Connection> {
        // The server bounds the size of its answers.
        DirectoryServiceClient::new(self.connection.clone()).max_decoding_message_size(usize::MAX)
    }

    pub fn registry(&self) -> RegistryServiceClient<Connection> {
        RegistryServiceClient::new(self.connection.clone())
    }

    pub fn inbox(&self) -> InboxServiceClient<Connection> {
        InboxServiceClient::new(self.connection.clone()).max_decoding_message_size(usize::MAX)
    }

    pub fn admin(&self) -> AdminServiceClient<Connection> {
        AdminServiceClient::new(self.connection.clone())
    }

    /// A request that both sides give up after the timeout.
    pub fn request<M>(&self, message: M) -> Request<M> {
        let mut request = Request::new(message);
        request.set_timeout(self.settings.timeout);
        request
    }

    /// Sends a mutation, and once more where it may not have happened: its `request_id` makes that
    /// safe.
    pub async fn mutate<M, A, F>(
        &self,
        request_id: &str,
        message: M,
        call: impl Fn(Request<M>) -> F,
    ) -> Result<A, Failure>
    where
        M: Clone,
        F: Future<Output = Result<Response<A>, Status>>,
    {
        let mut answer = call(self.request(message.clone())).await;
        if matches!(&answer, Err(status) if matches!(status.code(), Code::Unavailable | Code::Unknown))
        {
            tokio::time::sleep(PAUSE).await;
            answer = call(self.request(message)).await;
        }
        answer.map(Response::into_inner).map_err(|status| self.failed(status, Some(request_id)))
    }

    /// The answer to a look-up.
    pub fn answer<A>(&self, outcome: Result<Response<A>, Status>) -> Result<A, Failure> {
        outcome.map(Response::into_inner).map_err(|status| self.failed(status, None))
    }

    /// The tenant a moment later: for commands that wait for what servers do in the background.
    ///
    /// # Errors
    /// The call's, unless the server is away for now: then it is asked again.
    pub async fn next_tenant(&self) -> Result<Tenant, Status> {
        loop {
            tokio::time::sleep(POLL).await;
            let request = self.request(GetTenantRequest { tenant: self.tenant() });
            match self.admin().get_tenant(request).await {
                Err(status) if status.code() == Code::Unavailable => {}
                answer => {
                    return answer.map(|answer| answer.into_inner().tenant.unwrap_or_default());
                }
            }
        }
    }

    /// The failure of a connection. A server of TLS 1.3 refuses a client's certificate after the
    /// handshake, by hanging up.
    fn broken(&self, why: &str) -> Status {
        let hint = match self.settings.server.starts_with("https://") {
            true => {
                ": the server may ask for a client certificate that it trusts and that has not \
                 expired (--cert and --key)"
            }
            false => "",
        };
        Status::unknown(format!("{why}{hint}"))
    }

    /// The failure of a call. It names the request id if sending the call again is safe.
    pub fn failed(&self, status: Status, request_id: Option<&str>) -> Failure {
        let status = match status.code() {
            Code::Cancelled if was_hung_up(&status) => self.broken(HUNG_UP),
            Code::Unknown if status.source().is_some() => {
                self.broken(&cause(&status).unwrap_or_default())
            }
            // The client's deadline and the server's are the same time, so both report the same
            // error.
            Code::Cancelled => Status::deadline_exceeded("the --timeout is over"),
            _ => status,
        };

        Failure::Call(Box::new(FailedCall {
            status,
            request_id: request_id.map(str::to_owned),
            json: self.json(),
        }))
    }
}

/// The message of [`was_hung_up`].
pub const HUNG_UP: &str = "the connection was closed before the call was sent";

/// Whether the connection was closed before it took the call.
pub fn was_hung_up(status: &Status) -> bool {
    let causes = successors(status.source(), |&cause| cause.source());
    causes.filter_map(|cause| cause.downcast_ref::<hyper::Error>()).any(hyper::Error::is_canceled)
}

/// Connects to the server. The connection sets no limit to the time that a call takes.
pub async fn connect(settings: &Client) -> Result<Connection, Failure> {
    let fault = |error| unreachable(&settings.server, &error);
    let mut endpoint = Endpoint::from_shared(settings.server.clone()).map_err(fault)?;
    if endpoint.uri().scheme_str() == Some("https") {
        endpoint = endpoint.tls_config(tls(settings)?).map_err(fault)?;
    }
    // An export is many megabytes: the server need not wait for leave to send each few.
    endpoint = endpoint.initial_stream_window_size(WINDOW).initial_connection_window_size(WINDOW);
    let credential = Credential::read(settings.token_file.as_deref())?;
    let channel = endpoint.connect_timeout(settings.timeout).connect().await.map_err(fault)?;
    Ok(InterceptedService::new(channel, credential))
}

/// Trusts the authorities of a file, or those of the system, and shows the caller's certificate.
fn tls(settings: &Client) -> Result<ClientTlsConfig, Failure> {
    let read = |setting: &str, path: &Path| {
        std::fs::read(path)
            .map_err(|error| Failure::Other(format!("{setting} {}: {error}", path.display())))
    };
    let config = match &settings.ca {
        Some(path) => {
            let pem = read("--ca", path)?;
            if CertificateDer::from_pem_slice(&pem).is_err() {
                let message = "there is no certificate in it";
                return Err(Failure::Other(format!("--ca {}: {message}", path.display())));
            }
            ClientTlsConfig::new().ca_certificate(Certificate::from_pem(pem))
        }
        None => ClientTlsConfig::new().with_native_roots(),
    };
    let Some((certificate, key)) = &settings.certificate else { return Ok(config) };
    let identity = Identity::from_pem(read("--cert", certificate)?, read("--key", key)?);
    Ok(config.identity(identity))
}

/// A connection whose calls carry the caller's credential.
pub type Connection = InterceptedService<Channel, Credential>;

/// The `authorization` header of every call, if there is a token.
#[derive(Clone)]
pub struct Credential(Option<MetadataValue<Ascii>>);

impl Credential {
    /// The header for HTTP.
    pub fn header(&self) -> Option<HeaderValue> {
        let value = HeaderValue::from_bytes(self.0.as_ref()?.as_encoded_bytes()).ok()?;
        Some(value)
    }

    /// Reads the token of a file.
    pub fn read(file: Option<&Path>) -> Result<Self, Failure> {
        let Some(path) = file else { return Ok(Self(None)) };
        let fault = |why: &str| Failure::Other(format!("--token-file {}: {why}", path.display()));
        let text = std::fs::read_to_string(path).map_err(|error| fault(&error.to_string()))?;
        Token::parse(text.trim())
            .ok_or_else(|| fault("there is no token in it, as `polynym token create` prints it"))?;
        let header = format!("Bearer {}", text.trim());
        let mut header: MetadataValue<Ascii> =
            header.parse().map_err(|_| fault("the token cannot be sent"))?;
        header.set_sensitive(true);
        Ok(Self(Some(header)))
    }
}

impl Interceptor for Credential {
    fn call(&mut self, mut request: Request<()>) -> Result<Request<()>, Status> {
        if let Some(header) = &self.0 {
            request.metadata_mut().insert("authorization", header.clone());
        }
        Ok(request)
    }
}

/// The first cause of an error.
fn cause(error: &dyn Error) -> Option<String> {
    successors(error.source(), |&cause| cause.source()).last().map(ToString::to_string)
}

fn unreachable(server: &str, error: &transport::Error) -> Failure {
    let cause = cause(error).unwrap_or_else(|| error.to_string());
    let hint = match cause.contains("UnknownIssuer") {
        true => "give the authority of the server's certificate with --ca",
        false => "start a server with `polynym serve`, or name another with --server",
    };
    Failure::Other(format!("cannot reach {server} ({cause})\n  what to do: {hint}"))
}

/// The given id of a request, or a new one.
pub fn request_id(given: Option<&str>) -> String {
    let new = || Generator::builder(Mode::Variable).random_origin().build().next_id().to_string();
    given.map_or_else(new, str::to_owned)
}
