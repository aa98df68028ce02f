//! Calls to a server: deadlines, retries of mutations, and failures.

pub mod connection;
pub mod former_user;
pub mod pages;
pub mod user_ref;

use std::error::Error;
use std::time::Duration;

use locality_uuid::{Generator, Mode};
use tonic::{Code, Request, Response, Status};

use super::failure::{CONNECTION_CLOSED, FailedCall, Failure, is_connection_closed};
use crate::config::{Client, Flags, Resolve};
use connection::{Connection, connect, root_cause};
use polynym_client::admin_service_client::AdminServiceClient;
use polynym_client::directory_service_client::DirectoryServiceClient;
use polynym_client::inbox_service_client::InboxServiceClient;
use polynym_client::registry_service_client::RegistryServiceClient;
use polynym_proto::v1::{GetTenantRequest, Tenant};

/// The delay before a mutation is sent again.
const RETRY_DELAY: Duration = Duration::from_millis(200);
/// The tenant that exists without a record.
const DEFAULT_TENANT: &str = "default";
/// The interval at which a tenant is polled.
const POLL_INTERVAL: Duration = Duration::from_millis(500);

/// Runs a command on one thread: a command mostly waits for the server.
pub fn block_on(command: impl Future<Output = Result<(), Failure>>) -> Result<(), Failure> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::Other(format!("cannot start: {error}")))?
        .block_on(command)
}

/// A connection to the server that the settings name.
pub struct Session {
    connection: Connection,
    settings: Client,
}

impl Session {
    /// Reads the settings and connects.
    pub async fn open<C: Resolve + Into<Client>>(flags: &Flags<C>) -> Result<Self, Failure> {
        let settings = flags.load()?.into();
        let connection = connect(&settings).await?;
        Ok(Self::new(connection, settings))
    }

    /// The same for an operation of many calls. If the settings name none, it gets an id that
    /// begins with its name and has the time, by which `polynym undo` knows users without a change.
    pub async fn open_operation<C: Resolve + Into<Client>>(
        flags: &Flags<C>,
        name: &str,
    ) -> Result<Self, Failure> {
        let mut settings: Client = flags.load()?.into();
        if settings.purpose.operation_id.is_empty() {
            settings.purpose.operation_id = format!("{name}-{}", uuid::Uuid::now_v7());
        }
        let connection = connect(&settings).await?;
        Ok(Self::new(connection, settings))
    }

    /// A session on an open connection.
    pub fn new(connection: Connection, settings: Client) -> Self {
        Self { connection, settings }
    }

    pub fn json(&self) -> bool {
        self.settings.output.json
    }

    pub fn tenant(&self) -> String {
        self.settings.tenant.clone()
    }

    /// The id of the operation that the calls belong to; may be empty.
    pub fn operation_id(&self) -> &str {
        &self.settings.purpose.operation_id
    }

    pub fn directory(&self) -> DirectoryServiceClient<Connection> {
        DirectoryServiceClient::new(self.connection.clone())
    }

    pub fn registry(&self) -> RegistryServiceClient<Connection> {
        RegistryServiceClient::new(self.connection.clone())
    }

    pub fn inbox(&self) -> InboxServiceClient<Connection> {
        InboxServiceClient::new(self.connection.clone())
    }

    pub fn admin(&self) -> AdminServiceClient<Connection> {
        AdminServiceClient::new(self.connection.clone())
    }

    /// A request with the deadline of `--timeout`.
    pub fn request<M>(&self, message: M) -> Request<M> {
        let mut request = Request::new(message);
        request.set_timeout(self.settings.timeout);
        request
    }

    /// Sends a mutation, and sends it again if its outcome is unknown: its `request_id` makes that
    /// safe.
    pub async fn mutate<M: Clone, A>(
        &self,
        request_id: &str,
        message: M,
        call: impl AsyncFn(Request<M>) -> Result<Response<A>, Status>,
    ) -> Result<A, Failure> {
        let mut outcome = call(self.request(message.clone())).await;
        if let Err(status) = &outcome
            && matches!(status.code(), Code::Unavailable | Code::Unknown)
        {
            tokio::time::sleep(RETRY_DELAY).await;
            outcome = call(self.request(message)).await;
        }
        outcome.map(Response::into_inner).map_err(|status| self.failure(status, Some(request_id)))
    }

    /// The answer to a call without a request id.
    pub fn answer<A>(&self, outcome: Result<Response<A>, Status>) -> Result<A, Failure> {
        outcome.map(Response::into_inner).map_err(|status| self.failure(status, None))
    }

    /// The tenant of the settings; none if it does not exist. The default one exists without a
    /// record.
    pub async fn find_tenant(&self) -> Result<Option<Tenant>, Failure> {
        let request = self.request(GetTenantRequest { tenant: self.tenant() });
        match self.admin().get_tenant(request).await {
            Err(status) if status.code() == Code::NotFound => {
                Ok((self.tenant() == DEFAULT_TENANT).then(Tenant::default))
            }
            answer => Ok(Some(self.answer(answer)?.tenant.unwrap_or_default())),
        }
    }

    /// The tenant after one poll interval, for commands that wait for work of the servers. Retries
    /// while the server is unavailable.
    pub async fn poll_tenant(&self) -> Result<Tenant, Status> {
        loop {
            tokio::time::sleep(POLL_INTERVAL).await;
            let request = self.request(GetTenantRequest { tenant: self.tenant() });
            match self.admin().get_tenant(request).await {
                Err(status) if status.code() == Code::Unavailable => {}
                Err(status) => return Err(status),
                Ok(answer) => return Ok(answer.into_inner().tenant.unwrap_or_default()),
            }
        }
    }

    /// The status of a lost connection. With TLS 1.3, a server that rejects a client's certificate
    /// closes the connection after the handshake.
    fn connection_lost(&self, cause: &str) -> Status {
        let hint = match self.settings.server.starts_with("https://") {
            true => {
                ": the server may require a client certificate that it trusts and that has not \
                 expired (--cert and --key)"
            }
            false => "",
        };
        Status::unknown(format!("{cause}{hint}"))
    }

    /// The failure of a call. It names the request id if the call is safe to send again.
    pub fn failure(&self, status: Status, request_id: Option<&str>) -> Failure {
        let reported = match status.code() {
            Code::Cancelled if is_connection_closed(&status) => {
                self.connection_lost(CONNECTION_CLOSED)
            }
            Code::Unknown if status.source().is_some() => {
                self.connection_lost(&root_cause(&status).unwrap_or_default())
            }
            // The client and the server have the same deadline: report the same error for both.
            Code::Cancelled => Status::deadline_exceeded("the --timeout has expired"),
            _ => status,
        };
        let request_id = request_id.map(str::to_owned);
        Failure::Call(Box::new(FailedCall { status: reported, request_id, json: self.json() }))
    }
}

/// The given request id, or a new one.
pub fn request_id(given: Option<&str>) -> String {
    let new = || Generator::builder(Mode::Variable).random_origin().build().next_id().to_string();
    given.map_or_else(new, str::to_owned)
}
