//! A watch that outlives its connection.

use std::time::Duration;

use tokio::time::{Instant, sleep, timeout_at};
use tonic::Status;

use crate::attempts::delay;
use crate::call::Answers;
use crate::client::Client;
use crate::error::Error;
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
    /// Before the first response, a watch has the deadline and the attempts of a call.
    has_begun: bool,
    deadline: Option<Instant>,
    made: u32,
    /// When the server was last heard, or the stream begun.
    heard: Instant,
    patience: Duration,
    on_lost: Option<OnLost>,
}

impl Client {
    /// Watches the users of a tenant: from now on, or after the `resume_token` of the request.
    /// Until its first response, it fails as a call does. Then it resumes whenever it is lost.
    pub fn watch(&self, request: WatchRequest) -> Watch {
        Watch {
            client: self.clone(),
            request,
            answers: None,
            delay: FIRST_DELAY,
            last_event: String::new(),
            is_resumed: false,
            has_begun: false,
            deadline: None,
            made: 0,
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
            let error = match self.receive().await {
                Ok(Some(answer)) if self.accepts(&answer) => return Ok(answer),
                Ok(Some(_)) => continue,
                Ok(None) => Status::unavailable("the watch ended").into(),
                Err(error) => error,
            };
            match self.delay_after(&error) {
                Some(delay) => self.resume_after(delay, &error).await,
                None => return Err(error),
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
            let deadline = *self.deadline.get_or_insert_with(|| self.client.deadline(None));
            let client = match self.has_begun {
                true => self.client.clone(),
                false => self.client.until(deadline),
            };
            let answers = client.directory().watch(self.request.clone()).await?;
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
        (self.has_begun, self.delay) = (true, FIRST_DELAY);
        self.request.resume_token.clone_from(&answer.resume_token);
        let Some(Content::Event(event)) = &answer.kind else { return true };
        let is_repeated = std::mem::take(&mut self.is_resumed) && event.event_id == self.last_event;
        self.last_event.clone_from(&event.event_id);
        !is_repeated
    }

    /// The delay before the watch is resumed; none if it has failed.
    fn delay_after(&mut self, error: &Error) -> Option<Duration> {
        if !error.is_retryable() {
            return None;
        }
        if !self.has_begun {
            return self.delay_of_call(error);
        }
        let delay = self.delay.mul_f64(0.5 + fastrand::f64() / 2.0);
        self.delay = LAST_DELAY.min(self.delay * 2);
        Some(delay.max(error.retry_after().unwrap_or_default()))
    }

    /// The delay of a call, if its deadline allows. An attempt that no server saw does not count.
    fn delay_of_call(&mut self, error: &Error) -> Option<Duration> {
        let rules = self.client.rules();
        let may_repeat = if error.is_never_sent() {
            rules.wait_for_ready
        } else {
            self.made += 1;
            self.made < rules.max && rules.budget.allows()
        };
        let is_in_time = |delay: &Duration| {
            self.deadline.is_some_and(|deadline| Instant::now() + *delay < deadline)
        };
        may_repeat.then(|| delay(error, self.made.max(1))).filter(is_in_time)
    }

    async fn resume_after(&mut self, delay: Duration, error: &Error) {
        self.answers = None;
        if let Some(on_lost) = &mut self.on_lost {
            on_lost(error);
        }
        sleep(delay).await;
    }
}

#[cfg(test)]
mod tests {
    use client_testbed::{Proxy, program};
    use tonic::Code;

    use super::*;
    use crate::Kind;
    use crate::fake::{Answer, Fake, status};
    use crate::testing::Server;
    use crate::v1::{CheckIdentityRequest, CreateUserRequest, UpdateTenantRequest, User};
    use crate::{Builder, handle};

    #[tokio::test]
    async fn a_watch_that_never_began_fails_after_three_attempts() {
        let unavailable = status(Code::Unavailable, "STORE_UNAVAILABLE", Duration::ZERO, "");
        let server = Fake::start(move |_| Answer::Fails(unavailable.clone())).await;
        let client = server.builder().connect_lazy().unwrap();
        let error = client.watch(WatchRequest::default()).next().await.unwrap_err();
        assert_eq!(error.reason(), "STORE_UNAVAILABLE");
        assert_eq!(server.counts().len(), 3);
    }

    #[tokio::test]
    async fn a_watch_waits_for_its_first_server_as_long_as_a_call() {
        let servers = ["http://nobody.invalid", "http://[::1]:1"];
        let builder = Builder::new("").servers(servers).timeout(Duration::from_millis(200));
        let mut watch = builder.connect_lazy().unwrap().watch(WatchRequest::default());
        let error = watch.next().await.unwrap_err();
        let text = "none of the servers nobody.invalid:80, [::1]:1 can be reached";
        assert_eq!(error.message(), text);
    }

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
