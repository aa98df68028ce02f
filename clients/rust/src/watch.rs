//! A watch that outlives its connection.

use std::time::Duration;

use tokio::time::{Instant, sleep, timeout_at};
use tonic::Status;

use crate::call::Answers;
use crate::client::Client;
use crate::error::{Error, Kind};
use crate::v1::watch_response::Kind as Content;
use crate::v1::{Event, WatchRequest, WatchResponse};

/// The bounds of the delay before a lost watch is resumed; each is up to twice the one before.
const FIRST_DELAY: Duration = Duration::from_millis(100);
const LAST_DELAY: Duration = Duration::from_secs(5);
/// How long a watch waits for an answer: the server sends a heartbeat every 15 seconds.
const MAX_SILENCE: Duration = Duration::from_secs(45);

/// The callback for each error after which a watch resumes.
type OnLost = Box<dyn FnMut(&Error) + Send>;

/// Events as they are committed. After a lost connection, the watch reconnects and resumes after
/// the last answer.
pub struct Watch {
    client: Client,
    request: WatchRequest,
    answers: Option<Answers<WatchResponse>>,
    delay: Duration,
    last_event: String,
    is_resumed: bool,
    /// When the server was last heard, or the stream begun.
    heard: Instant,
    patience: Duration,
    on_lost: Option<OnLost>,
}

impl Client {
    /// Watches the users of a tenant: from now on, or after the `resume_token` of the request.
    pub fn watch(&self, request: WatchRequest) -> Watch {
        Watch {
            client: self.clone(),
            request,
            answers: None,
            delay: FIRST_DELAY,
            last_event: String::new(),
            is_resumed: false,
            heard: Instant::now(),
            patience: MAX_SILENCE,
            on_lost: None,
        }
    }
}

impl Watch {
    /// Calls a function with each error after which the watch resumes.
    #[must_use]
    pub fn on_lost(mut self, on_lost: impl FnMut(&Error) + Send + 'static) -> Self {
        self.on_lost = Some(Box::new(on_lost));
        self
    }

    /// The next event. Then [`resume_token`](Self::resume_token) is the position after it.
    pub async fn next(&mut self) -> Result<Event, Error> {
        loop {
            if let Some(Content::Event(event)) = self.message().await?.kind {
                return Ok(event);
            }
        }
    }

    /// The next answer: an event or a heartbeat. Nothing is lost if the future is dropped.
    pub async fn message(&mut self) -> Result<WatchResponse, Error> {
        loop {
            match self.receive().await {
                Ok(Some(answer)) if self.accepts(&answer) => return Ok(answer),
                Ok(Some(_)) => {}
                Ok(None) => self.wait_after(&Status::unavailable("the watch ended").into()).await,
                Err(error) if is_resumable(&error) => self.wait_after(&error).await,
                Err(error) => return Err(error),
            }
        }
    }

    /// The token of the last answer; empty before the first.
    pub fn resume_token(&self) -> &str {
        &self.request.resume_token
    }

    /// The next answer. A server that is silent for too long counts as lost, and its connection.
    async fn receive(&mut self) -> Result<Option<WatchResponse>, Error> {
        if self.answers.is_none() {
            self.heard = Instant::now();
        }
        let limit = self.heard + self.patience;
        if let Ok(outcome) = timeout_at(limit, self.receive_patiently()).await {
            self.heard = Instant::now();
            return outcome;
        }
        if let Some(answers) = &self.answers {
            answers.leave();
        }
        Err(Status::unavailable("the watch was silent for too long").into())
    }

    async fn receive_patiently(&mut self) -> Result<Option<WatchResponse>, Error> {
        if self.answers.is_none() {
            let answers = self.client.directory().watch(self.request.clone()).await?;
            self.answers = Some(answers);
            self.is_resumed = true;
        }
        match &mut self.answers {
            Some(answers) => answers.message().await,
            None => Ok(None),
        }
    }

    /// Records an answer. The server may repeat the last event after a watch was resumed.
    fn accepts(&mut self, answer: &WatchResponse) -> bool {
        self.delay = FIRST_DELAY;
        self.request.resume_token.clone_from(&answer.resume_token);
        let Some(Content::Event(event)) = &answer.kind else { return true };
        let is_repeated = std::mem::take(&mut self.is_resumed) && event.event_id == self.last_event;
        self.last_event.clone_from(&event.event_id);
        !is_repeated
    }

    async fn wait_after(&mut self, error: &Error) {
        self.answers = None;
        if let Some(on_lost) = &mut self.on_lost {
            on_lost(error);
        }
        let delay = self.delay.mul_f64(0.5 + fastrand::f64() / 2.0);
        self.delay = LAST_DELAY.min(self.delay * 2);
        sleep(delay.max(error.retry_after().unwrap_or_default())).await;
    }
}

fn is_resumable(error: &Error) -> bool {
    match error.kind() {
        Kind::Unavailable => true,
        Kind::ResourceExhausted => error.retry_after().is_some(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use client_testbed::{Proxy, program};

    use super::*;
    use crate::testing::Server;
    use crate::v1::{CheckIdentityRequest, CreateUserRequest, UpdateTenantRequest, User};
    use crate::{Builder, handle};

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_silent_watch_goes_on_by_another_connection() {
        let server = Server::start_program(program().unwrap()).unwrap();
        let proxy = Proxy::start().await.unwrap();
        proxy.set_upstream(server.address());
        let client = Builder::new(&proxy.address).connect_lazy().unwrap();
        let direct = server.client().with_timeout(Duration::from_secs(60));
        direct.admin().update_tenant(UpdateTenantRequest::default()).await.unwrap();
        let mut watch = client.watch(WatchRequest::default());
        watch.message().await.unwrap();

        proxy.freeze();
        watch.patience = Duration::from_secs(1);
        let user = Some(User { display_name: "Joe".to_owned(), ..Default::default() });
        let request = CreateUserRequest { user, ..Default::default() };
        direct.registry().create_user(request).await.unwrap();
        // Sooner than by a ping.
        let event = tokio::time::timeout(Duration::from_secs(8), watch.next()).await;
        assert_eq!(event.unwrap().unwrap().method, "CreateUser");
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn two_deadlines_in_a_row_open_a_new_connection() {
        let server = Server::start_program(program().unwrap()).unwrap();
        let proxy = Proxy::start().await.unwrap();
        proxy.set_upstream(server.address());
        let client = Builder::new(&proxy.address).connect_lazy().unwrap();
        let check = async |timeout: Duration| {
            let client = client.with_timeout(timeout);
            let request =
                CheckIdentityRequest { identifier: Some(handle("joe")), ..Default::default() };
            client.directory().check_identity(request).await.map_err(|error| error.kind())
        };
        check(Duration::from_secs(60)).await.unwrap();
        proxy.freeze();
        for _ in 0..2 {
            let late = check(Duration::from_millis(300)).await;
            assert_eq!(late.err(), Some(Kind::DeadlineExceeded));
        }
        // Sooner than by a ping.
        check(Duration::from_secs(8)).await.unwrap();
    }
}
