//! A watch that outlives its connection.

use std::time::Duration;

use tokio::time::sleep;
use tonic::Status;

use crate::call::Answers;
use crate::client::Client;
use crate::error::{Error, Kind};
use crate::v1::watch_response::Kind as Content;
use crate::v1::{Event, WatchRequest, WatchResponse};

/// The bounds of the delay before a lost watch is resumed; each is up to twice the one before.
const FIRST_DELAY: Duration = Duration::from_millis(100);
const LAST_DELAY: Duration = Duration::from_secs(5);

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

    async fn receive(&mut self) -> Result<Option<WatchResponse>, Error> {
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
