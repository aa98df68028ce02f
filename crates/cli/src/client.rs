//! Calls to a server, and their failures.

pub mod connection;
pub mod former_user;
pub mod health;
pub mod pages;
pub mod user_ref;

use std::error::Error as _;
use std::time::Duration;

use locality_uuid::{Generator, Mode};
use prost::{Message, Name};
use tonic::{Code, Status};

use super::failure::{CONNECTION_CLOSED, FailedCall, Failure, is_connection_closed};
use super::output;
use crate::config::{ChangeClient, Client as ClientSettings, Flags, Purpose, Settings};
use connection::{connect, root_cause};
use polynym_client::services::{Admin, Directory, Inbox, Registry};
use polynym_client::{Client, Error, Kind};
use polynym_proto::v1::{GetTenantRequest, Tenant};

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
    client: Client,
    settings: ClientSettings,
    purpose: Purpose,
}

impl Session {
    /// Reads the settings and connects.
    pub async fn open<S: Settings + Into<ChangeClient>>(flags: &Flags<S>) -> Result<Self, Failure> {
        Self::connect(flags.load()?.into()).await
    }

    /// The same for an operation of many calls. If the settings name none, it gets an id that
    /// begins with its name and has the time, by which `polynym undo` knows users without a change.
    pub async fn open_operation<S: Settings + Into<ChangeClient>>(
        flags: &Flags<S>,
        name: &str,
    ) -> Result<Self, Failure> {
        let mut settings: ChangeClient = flags.load()?.into();
        if settings.purpose.operation_id.is_empty() {
            settings.purpose.operation_id = format!("{name}-{}", uuid::Uuid::now_v7());
        }
        Self::connect(settings).await
    }

    async fn connect(settings: ChangeClient) -> Result<Self, Failure> {
        let ChangeClient { client: settings, purpose } = settings;
        Ok(Self { client: connect(&settings, &purpose).await?, settings, purpose })
    }

    /// A session of an open client.
    pub fn new(client: Client, settings: ClientSettings) -> Self {
        Self { client, settings, purpose: Purpose::default() }
    }

    /// The same session for another tenant.
    pub fn with_tenant(&self, tenant: &str) -> Self {
        let settings = ClientSettings { tenant: tenant.to_owned(), ..self.settings.clone() };
        Self { client: self.client.clone(), settings, purpose: self.purpose.clone() }
    }

    /// The client.
    pub fn client(&self) -> &Client {
        &self.client
    }

    pub fn json(&self) -> bool {
        self.settings.output.json
    }

    pub fn tenant(&self) -> String {
        self.settings.tenant.clone()
    }

    /// The id of the operation that the calls belong to; may be empty.
    pub fn operation_id(&self) -> &str {
        &self.purpose.operation_id
    }

    pub fn directory(&self) -> Directory {
        self.client.directory()
    }

    pub fn registry(&self) -> Registry {
        self.client.registry()
    }

    pub fn inbox(&self) -> Inbox {
        self.client.inbox()
    }

    pub fn admin(&self) -> Admin {
        self.client.admin()
    }

    /// The answer to a call.
    pub fn answer<A>(&self, outcome: Result<A, Error>) -> Result<A, Failure> {
        outcome.map_err(|error| self.failure(error))
    }

    /// Shows an answer: as JSON if the settings ask for it, else by `print`.
    pub fn show<M: Message + Name>(
        &self,
        answer: &M,
        print: impl FnOnce(&M) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        if self.json() { output::print_message(answer) } else { print(answer) }
    }

    /// The tenant of the settings; none if it does not exist. The default one exists without a
    /// record.
    pub async fn find_tenant(&self) -> Result<Option<Tenant>, Failure> {
        match self.admin().get_tenant(GetTenantRequest { tenant: self.tenant() }).await {
            Err(error) if error.kind() == Kind::NotFound => {
                Ok((self.tenant() == DEFAULT_TENANT).then(Tenant::default))
            }
            answer => Ok(Some(self.answer(answer)?.tenant.unwrap_or_default())),
        }
    }

    /// The tenant after one poll interval, for commands that wait for work of the servers. Retries
    /// while the server is unavailable.
    pub async fn poll_tenant(&self) -> Result<Tenant, Error> {
        loop {
            tokio::time::sleep(POLL_INTERVAL).await;
            match self.admin().get_tenant(GetTenantRequest { tenant: self.tenant() }).await {
                Err(error) if error.kind() == Kind::Unavailable => {}
                outcome => return outcome.map(|answer| answer.tenant.unwrap_or_default()),
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

    /// The failure of a call. It names the request id of a change that may have happened.
    pub fn failure(&self, error: impl Into<Error>) -> Failure {
        let error = error.into();
        let status = error.status();
        let reported = match status.code() {
            Code::Cancelled if is_connection_closed(status) => {
                self.connection_lost(CONNECTION_CLOSED)
            }
            Code::Unknown if status.source().is_some() => {
                self.connection_lost(&root_cause(status).unwrap_or_default())
            }
            // The client and the server have the same deadline: report the same error for both.
            Code::DeadlineExceeded if error.reason().is_empty() => {
                Status::deadline_exceeded("the --timeout has expired")
            }
            _ => status.clone(),
        };
        let is_unknown = error.kind() == Kind::OutcomeUnknown;
        let request_id = error.request_id().filter(|_| is_unknown).map(str::to_owned);
        Failure::Call(Box::new(FailedCall { status: reported, request_id, json: self.json() }))
    }
}

/// The given request id, or a new one.
pub fn request_id(given: Option<&str>) -> String {
    let new = || Generator::builder(Mode::Variable).random_origin().build().next_id().to_string();
    given.map_or_else(new, str::to_owned)
}
