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
use tonic::{Extensions, Request, Response, Status};
use tonic_prost::{ProstCodec, ProstDecoder};
use uuid::Uuid;

use crate::attempts::Attempts;
use crate::client::Client;
use crate::error::Error;

/// The maximum timeout: the deadline of a much longer one overflows an `Instant`.
const MAX_TIMEOUT: Duration = Duration::from_secs(365 * 24 * 60 * 60);
const TIMEOUT_HEADER: &str = "grpc-timeout";

/// A method of the API.
#[derive(Clone, Copy, Debug)]
pub struct Method {
    /// The HTTP path.
    pub path: &'static str,
    /// Whether it changes nothing.
    pub only_reads: bool,
    /// Whether its requests have an idempotency key.
    pub has_request_id: bool,
}

/// The fields of a request that the client sets if they are empty.
pub trait ApiRequest: Message + 'static {
    /// The tenant.
    fn tenant(&mut self) -> Option<&mut String> {
        None
    }

    /// The idempotency key.
    fn request_id(&mut self) -> Option<&mut String> {
        None
    }
}

impl Client {
    /// Makes a call, with up to the client's number of attempts, until the deadline.
    pub(crate) async fn unary<Q, A>(&self, method: &Method, request: Request<Q>) -> Result<A, Error>
    where
        Q: ApiRequest,
        A: Message + Default + 'static,
    {
        let (metadata, _, mut message) = request.into_parts();
        let request_id = self.complete(&mut message);
        let message = Bytes::from(message.encode_to_vec());
        let timeout = timeout(&metadata).unwrap_or(self.timeout()).min(MAX_TIMEOUT);
        let deadline = Instant::now() + timeout;
        let mut attempts = Attempts::new(method, self.max_attempts());
        loop {
            let outcome = self.attempt(method, metadata.clone(), message.clone(), deadline).await;
            self.connections().note(&outcome);
            let error = match outcome {
                Ok(answer) => return Ok(answer),
                Err(error) => error,
            };
            let left = deadline.saturating_duration_since(Instant::now());
            match attempts.after(&error, left) {
                Some(delay) => sleep(delay).await,
                None => return Err(attempts.conclude(error, request_id)),
            }
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

    async fn attempt<A: Message + Default + 'static>(
        &self,
        method: &Method,
        metadata: MetadataMap,
        message: Bytes,
        deadline: Instant,
    ) -> Result<A, Error> {
        let mut request = Request::from_parts(metadata, Extensions::default(), message);
        request.set_timeout(deadline.saturating_duration_since(Instant::now()));
        let call = async {
            let mut grpc = self.grpc().await?;
            let path = PathAndQuery::from_static(method.path);
            grpc.unary(request, path, Encoded::<A>::default()).await.map(Response::into_inner)
        };
        match timeout_at(deadline, call).await {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(error)) => {
                let error = Error::from(error);
                // The connection has the same deadline.
                let is_late = error.is_lost_on_the_way() && Instant::now() >= deadline;
                Err(if is_late { Error::deadline() } else { error })
            }
            Err(_) => Err(Error::deadline()),
        }
    }

    async fn grpc(&self) -> Result<Grpc<crate::Connection>, Status> {
        let mut grpc = Grpc::new(self.connection());
        grpc.ready().await.map_err(|error| Status::from_error(error.into()))?;
        Ok(grpc)
    }

    /// Begins a stream of answers. It has the deadline of the request, if any, and no retries.
    pub(crate) async fn stream<Q, A>(
        &self,
        method: &Method,
        mut request: Request<Q>,
    ) -> Result<Answers<A>, Error>
    where
        Q: ApiRequest,
        A: Message + Default + 'static,
    {
        self.complete(request.get_mut());
        let mut grpc = self.grpc().await?;
        let path = PathAndQuery::from_static(method.path);
        let codec = ProstCodec::<Q, A>::default();
        let answers = grpc.server_streaming(request, path, codec).await?;
        Ok(Answers(answers.into_inner()))
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
        let mut grpc = self.grpc().await?;
        let path = PathAndQuery::from_static(method.path);
        let answers = grpc.streaming(request, path, ProstCodec::<Q, A>::default()).await?;
        Ok(Answers(answers.into_inner()))
    }
}

/// A stream of answers.
#[derive(Debug)]
pub struct Answers<A>(Streaming<A>);

impl<A> Answers<A> {
    /// The next answer; none at the end.
    pub async fn message(&mut self) -> Result<Option<A>, Error> {
        Ok(self.0.message().await?)
    }
}

impl<A> Stream for Answers<A> {
    type Item = Result<A, Error>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.0.poll_next_unpin(context).map_err(Error::from)
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
