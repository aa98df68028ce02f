//! A connection to a server, and calls that are safe to send twice.

use std::error::Error;
use std::iter::successors;
use std::time::Duration;

use locality_uuid::{Generator, Mode};
use tonic::transport::{self, Channel, Endpoint};
use tonic::{Code, Request, Response, Status};

use super::failure::{FailedCall, Failure};
use crate::config::{Client, Flags};
use crate::proto::v1::admin_service_client::AdminServiceClient;
use crate::proto::v1::directory_service_client::DirectoryServiceClient;
use crate::proto::v1::registry_service_client::RegistryServiceClient;

/// The pause before a call is sent a second time.
const PAUSE: Duration = Duration::from_millis(200);

/// Runs a command. One thread does: a command waits for a server far longer than it computes.
pub fn block_on(command: impl Future<Output = Result<(), Failure>>) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| Failure::Other(format!("cannot start: {error}")))?;
    runtime.block_on(command)
}

/// A connection to the server that the settings name.
pub struct Session {
    channel: Channel,
    settings: Client,
}

impl Session {
    /// Reads the settings and connects.
    pub async fn open(flags: &Flags<Client>) -> Result<Self, Failure> {
        let settings = flags.load()?;
        let channel = connect(&settings).await?;
        Ok(Self::new(channel, settings))
    }

    /// Calls over a connection that is there.
    pub fn new(channel: Channel, settings: Client) -> Self {
        Self { channel, settings }
    }

    pub fn json(&self) -> bool {
        self.settings.output.json
    }

    pub fn tenant(&self) -> String {
        self.settings.tenant.clone()
    }

    pub fn directory(&self) -> DirectoryServiceClient<Channel> {
        // The server bounds the size of its answers.
        DirectoryServiceClient::new(self.channel.clone()).max_decoding_message_size(usize::MAX)
    }

    pub fn registry(&self) -> RegistryServiceClient<Channel> {
        RegistryServiceClient::new(self.channel.clone())
    }

    pub fn admin(&self) -> AdminServiceClient<Channel> {
        AdminServiceClient::new(self.channel.clone())
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

    /// The failure of a call. It names the request id if sending the call again is safe.
    pub fn failed(&self, status: Status, request_id: Option<&str>) -> Failure {
        let status = match status.code() {
            Code::Cancelled if was_hung_up(&status) => {
                Status::unknown("the connection was closed before the call was sent")
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

/// Whether the connection was closed before it took the call.
fn was_hung_up(status: &Status) -> bool {
    let causes = successors(status.source(), |&cause| cause.source());
    causes.filter_map(|cause| cause.downcast_ref::<hyper::Error>()).any(hyper::Error::is_canceled)
}

/// Connects to the server. The connection sets no limit to the time that a call takes.
pub async fn connect(settings: &Client) -> Result<Channel, Failure> {
    let fault = |error| unreachable(&settings.server, &error);
    let endpoint = Endpoint::from_shared(settings.server.clone()).map_err(fault)?;
    endpoint.connect_timeout(settings.timeout).connect().await.map_err(fault)
}

fn unreachable(server: &str, error: &transport::Error) -> Failure {
    let cause = successors(error.source(), |&cause| cause.source()).last().map(ToString::to_string);
    let cause = cause.unwrap_or_else(|| error.to_string());
    let hint = "start a server with `polynym serve`, or name another with --server";
    Failure::Other(format!("cannot reach {server} ({cause})\n  what to do: {hint}"))
}

/// The given id of a request, or a new one.
pub fn request_id(given: Option<&str>) -> String {
    let new = || Generator::builder(Mode::Variable).random_origin().build().next_id().to_string();
    given.map_or_else(new, str::to_owned)
}
