//! One call with its attempts, and streams.

use std::marker::PhantomData;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::{BufMut, Bytes};
use futures_util::{Stream, StreamExt};
use http::uri::PathAndQuery;
use prost::Message;
use tokio::time::{Instant, sleep, timeout_at};
use tonic::client::Grpc;
use tonic::codec::{Codec, EncodeBuf, Encoder, Streaming};
use tonic::metadata::MetadataMap;
use tonic::{ConnectError, Extensions, Request, Response, Status};
use tonic_prost::{ProstCodec, ProstDecoder};
use uuid::Uuid;

use crate::attempts::Attempts;
use crate::client::Client;
use crate::connection::Connection;
use crate::connection::pool::Link;
use crate::error::Error;
use crate::method::{ApiRequest, Method};
use crate::observer::{Attempt, notify};

const TIMEOUT_HEADER: &str = "grpc-timeout";

impl Client {
    /// Makes a call, with up to the client's number of attempts, until the deadline.
    pub(crate) async fn unary<Q, A>(&self, method: &Method, request: Request<Q>) -> Result<A, Error>
    where
        Q: ApiRequest,
        A: Message + Default + 'static,
    {
        let (metadata, _, mut message) = request.into_parts();
        let request_id = self.complete(&mut message);
        let deadline = self.deadline(timeout(&metadata));
        let message = Bytes::from(message.encode_to_vec());
        let call = Call { client: self, method, metadata, message, deadline };
        let mut attempts = Attempts::new(method, self.rules(), self.attempts_made());
        let mut link = None;
        loop {
            // After a failure, one to another server if there is one.
            let next = match self.pool().link(link.as_ref(), deadline).await {
                Ok(next) => next,
                Err(error) => return Err(attempts.conclude(error, request_id)),
            };
            let error = match call.attempt(&next, attempts.number()).await {
                Ok(answer) => return Ok(answer),
                Err(error) => error,
            };
            match attempts.after(&error, call.left()) {
                Some(delay) => sleep(delay).await,
                None => return Err(attempts.conclude(error, request_id)),
            }
            link = Some(next);
        }
    }

    /// Sets the tenant and the request id, and returns the latter.
    fn complete(&self, message: &mut impl ApiRequest) -> Option<String> {
        if let Some(tenant) = message.tenant().filter(|tenant| tenant.is_empty()) {
            self.tenant().clone_into(tenant);
        }
        let request_id = message.request_id()?;
        if request_id.is_empty() {
            *request_id = Uuid::new_v4().to_string();
        }
        Some(request_id.clone())
    }

    /// Begins a stream of answers. It has the deadline of the request, if any, and is sent again
    /// only while no server has seen it.
    pub(crate) async fn stream<Q, A>(
        &self,
        method: &Method,
        request: Request<Q>,
    ) -> Result<Answers<A>, Error>
    where
        Q: ApiRequest,
        A: Message + Default + 'static,
    {
        let (metadata, _, mut message) = request.into_parts();
        self.complete(&mut message);
        let message = Bytes::from(message.encode_to_vec());
        let deadline = self.deadline(None);
        let call = Call { client: self, method, metadata, message, deadline };
        let mut attempts = Attempts::new(method, self.rules(), 0);
        loop {
            let begun = self.begin(method, deadline, async |mut grpc: Grpc<Connection>| {
                let path = PathAndQuery::from_static(method.path);
                grpc.server_streaming(call.request(), path, Encoded::<A>::default()).await
            });
            let error = match begun.await {
                Err(error) if error.is_never_sent() => error,
                outcome => return outcome,
            };
            match attempts.after(&error, call.left()) {
                Some(delay) => sleep(delay).await,
                None => return Err(error),
            }
        }
    }

    /// Begins an exchange of messages. They are sent as they are.
    pub(crate) async fn exchange<Q, S, A>(
        &self,
        method: &Method,
        request: Request<S>,
    ) -> Result<Answers<A>, Error>
    where
        Q: ApiRequest,
        S: Stream<Item = Q> + Send + 'static,
        A: Message + Default + 'static,
    {
        self.begin(method, self.deadline(None), async |mut grpc: Grpc<Connection>| {
            let path = PathAndQuery::from_static(method.path);
            grpc.streaming(request, path, ProstCodec::default()).await
        })
        .await
    }

    /// Begins a stream on a connection, for which it waits until the limit.
    async fn begin<A>(
        &self,
        method: &Method,
        limit: Instant,
        begin: impl AsyncFnOnce(Grpc<Connection>) -> Result<Response<Streaming<A>>, Status>,
    ) -> Result<Answers<A>, Error> {
        let link = self.pool().link(None, limit).await?;
        let start = Instant::now();
        let mut grpc = Grpc::new(link.connection.clone());
        let outcome = match grpc.ready().await {
            Ok(()) => begin(grpc).await,
            Err(error) => Err(not_ready(error)),
        };
        let outcome = outcome.map_err(|status| self.error(status));
        self.note(method, 1, start, &link, outcome.as_ref().err());
        Ok(Answers { stream: outcome?.into_inner(), link, client: self.clone() })
    }

    /// The error of a call to one of the servers.
    fn error(&self, status: Status) -> Error {
        Error::from(status).naming_servers(self.pool().unreachable())
    }

    /// Notes the end of an attempt.
    fn note(
        &self,
        method: &Method,
        number: u32,
        start: Instant,
        link: &Link,
        error: Option<&Error>,
    ) {
        self.note_outcome(link, error);
        if let Some(observer) = self.observer() {
            let server = self.pool().name(link);
            let attempt = Attempt::new(method, number, start.elapsed(), error, server);
            notify(observer, &attempt);
        }
    }

    /// A connection that is lost takes one token, however many calls it had.
    fn note_outcome(&self, link: &Link, error: Option<&Error>) {
        if self.pool().note(link, error) {
            self.rules().budget.note(error);
        }
    }
}

/// A call with all that its attempts have in common.
struct Call<'a> {
    client: &'a Client,
    method: &'a Method,
    metadata: MetadataMap,
    message: Bytes,
    deadline: Instant,
}

impl Call<'_> {
    fn left(&self) -> Duration {
        self.deadline.saturating_duration_since(Instant::now())
    }

    fn request(&self) -> Request<Bytes> {
        let (metadata, message) = (self.metadata.clone(), self.message.clone());
        Request::from_parts(metadata, Extensions::default(), message)
    }

    async fn attempt<A>(&self, link: &Link, number: u32) -> Result<A, Error>
    where
        A: Message + Default + 'static,
    {
        let start = Instant::now();
        let outcome = self.send(link).await;
        self.client.note(self.method, number, start, link, outcome.as_ref().err());
        outcome
    }

    async fn send<A: Message + Default + 'static>(&self, link: &Link) -> Result<A, Error> {
        let mut request = self.request();
        request.set_timeout(self.left());
        let call = async {
            let mut grpc = Grpc::new(link.connection.clone());
            grpc.ready().await.map_err(not_ready)?;
            let path = PathAndQuery::from_static(self.method.path);
            grpc.unary(request, path, Encoded::<A>::default()).await.map(Response::into_inner)
        };
        let error = match timeout_at(self.deadline, call).await {
            Ok(Ok(answer)) => return Ok(answer),
            Ok(Err(status)) => self.client.error(status),
            Err(_) => Error::deadline(),
        };
        // The connection has the same deadline.
        let is_late = error.is_lost_on_the_way() && Instant::now() >= self.deadline;
        Err(if is_late { Error::deadline() } else { error })
    }
}

/// The error of a connection that takes no request.
fn not_ready(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Status {
    Status::from_error(Box::new(ConnectError(error.into())))
}

/// A stream of answers.
#[derive(Debug)]
pub struct Answers<A> {
    stream: Streaming<A>,
    link: Link,
    client: Client,
}

impl<A> Answers<A> {
    /// The next answer; none at the end.
    pub async fn message(&mut self) -> Result<Option<A>, Error> {
        self.next().await.transpose()
    }

    /// Leaves the connection, which seems dead.
    pub(crate) fn leave(&self) {
        self.client.pool().leave(&self.link);
    }
}

impl<A> Stream for Answers<A> {
    type Item = Result<A, Error>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let answer = self.stream.poll_next_unpin(context);
        let answer = answer.map_err(|status| self.client.error(status));
        if let Poll::Ready(Some(Err(error))) = &answer {
            self.client.note_outcome(&self.link, Some(error));
        }
        answer
    }
}

/// The timeout that the caller has set on a request: a number of at most 8 digits, and its unit.
fn timeout(metadata: &MetadataMap) -> Option<Duration> {
    let text = metadata.get(TIMEOUT_HEADER)?.to_str().ok()?;
    let (number, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
    let number: u64 = number.parse().ok()?;
    match unit {
        "H" => Some(Duration::from_secs(number.checked_mul(3600)?)),
        "M" => Some(Duration::from_secs(number.checked_mul(60)?)),
        "S" => Some(Duration::from_secs(number)),
        "m" => Some(Duration::from_millis(number)),
        "u" => Some(Duration::from_micros(number)),
        "n" => Some(Duration::from_nanos(number)),
        _ => None,
    }
}

/// Sends a message that is encoded once for all attempts.
struct Encoded<A>(PhantomData<A>);

impl<A> Default for Encoded<A> {
    fn default() -> Self {
        Self(PhantomData)
    }
}

impl<A: Message + Default + 'static> Codec for Encoded<A> {
    type Encode = Bytes;
    type Decode = A;
    type Encoder = BytesEncoder;
    type Decoder = ProstDecoder<A>;

    fn encoder(&mut self) -> BytesEncoder {
        BytesEncoder
    }

    fn decoder(&mut self) -> ProstDecoder<A> {
        ProstDecoder::default()
    }
}

struct BytesEncoder;

impl Encoder for BytesEncoder {
    type Item = Bytes;
    type Error = Status;

    fn encode(&mut self, message: Bytes, buffer: &mut EncodeBuf<'_>) -> Result<(), Status> {
        buffer.put_slice(&message);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_timeout_is_what_tonic_writes() {
        for expected in [Duration::from_millis(250), Duration::from_secs(10), Duration::ZERO] {
            let mut request = Request::new(());
            request.set_timeout(expected);
            assert_eq!(timeout(request.metadata()), Some(expected));
        }
        assert_eq!(timeout(&MetadataMap::new()), None);
    }
}
