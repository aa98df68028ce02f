//! The handlers of methods: each decodes the messages of a call, has the API answer them, and
//! encodes the responses.

use std::convert::Infallible;
use std::sync::Arc;

use futures_util::Stream;
use tonic::codegen::CompressionEncoding::Gzip;
use tonic::server::Grpc;
use tonic::{Request, Response, Status, Streaming};
use tonic_prost::ProstCodec;
use tower::{Service, service_fn};

use super::api::Api;
use super::authorization::authorized;
use super::status::Refusal;
use crate::MAX_STREAM_BYTES;
use polynym_access::Call;
use polynym_transport::method::Handler;
use polynym_transport::request_body::RequestBody;

/// The handler of a method of the API with one request and one response.
macro_rules! unary {
    ($api:ident.$method:ident) => {
        $crate::grpc::handlers::of_unary($api, |api, call, message| async move {
            api.$method(&call, message).await
        })
    };
}

/// The handler of a method of the API with a stream of responses.
macro_rules! server_stream {
    ($api:ident.$method:ident) => {
        $crate::grpc::handlers::of_server_stream($api, |api, request| async move {
            api.$method(request).await
        })
    };
}

/// The handler of a method of the API with a stream of requests and one of responses.
macro_rules! client_stream {
    ($api:ident.$method:ident) => {
        $crate::grpc::handlers::of_client_stream($api, |api, request| async move {
            api.$method(request).await
        })
    };
}

pub(super) use {client_stream, server_stream, unary};

/// The handler that [`unary!`] makes.
pub fn of_unary<M, A, F>(
    api: &Arc<Api>,
    answer: impl Fn(Arc<Api>, Arc<Call>, M) -> F + Copy + Send + Sync + 'static,
) -> Handler
where
    M: Message,
    A: Answer,
    F: Future<Output = Result<A, Refusal>> + Send + 'static,
{
    let api = api.clone();
    Box::new(move |request| {
        let api = api.clone();
        let answer = service_fn(move |request| {
            let answer =
                authorized(request).map(|(call, message)| answer(api.clone(), call, message));
            async move { Ok(answer?.await.map_err(Status::from)?.into_response()) }
        });
        // The transport has checked the size by the method's row.
        let mut grpc = grpc::<A::Message, M>().max_decoding_message_size(usize::MAX);
        Box::pin(async move { grpc.unary(answer, request).await })
    })
}

/// The handler that [`server_stream!`] makes.
pub fn of_server_stream<M, R, S, F>(
    api: &Arc<Api>,
    answer: impl Fn(Arc<Api>, Request<M>) -> F + Copy + Send + Sync + 'static,
) -> Handler
where
    M: Message,
    R: Message,
    S: Stream<Item = Result<R, Status>> + Send + 'static,
    F: Future<Output = Result<S, Refusal>> + Send + 'static,
{
    let api = api.clone();
    Box::new(move |request| {
        let api = api.clone();
        let answer = service_fn(move |request| {
            let answer = answer(api.clone(), request);
            async move { Ok(Response::new(answer.await?)) }
        });
        Box::pin(async move { grpc::<R, M>().server_streaming(answer, request).await })
    })
}

/// The handler that [`client_stream!`] makes.
pub fn of_client_stream<M, R, S, F>(
    api: &Arc<Api>,
    answer: impl Fn(Arc<Api>, Request<Streaming<M>>) -> F + Copy + Send + Sync + 'static,
) -> Handler
where
    M: Message,
    R: Message,
    S: Stream<Item = Result<R, Status>> + Send + 'static,
    F: Future<Output = Result<S, Refusal>> + Send + 'static,
{
    let api = api.clone();
    Box::new(move |request| {
        let api = api.clone();
        let answer = service_fn(move |request| {
            let answer = answer(api.clone(), request);
            async move { Ok(Response::new(answer.await?)) }
        });
        Box::pin(async move { grpc::<R, M>().streaming(answer, request).await })
    })
}

/// The handler of a method of a service that is not the API's.
pub fn of_service<S, F>(service: S) -> Handler
where
    S: Service<http::Request<RequestBody>, Error = Infallible, Future = F>,
    S: Service<http::Request<RequestBody>, Response = http::Response<tonic::body::Body>>,
    S: Clone + Send + Sync + 'static,
    F: Future<Output = Result<http::Response<tonic::body::Body>, Infallible>> + Send,
{
    Box::new(move |request| {
        let mut service = service.clone();
        Box::pin(async move {
            let Ok(response) = service.call(request).await;
            response
        })
    })
}

/// A message of either side.
pub trait Message: prost::Message + Default + Send + Sync + 'static {}

impl<M: prost::Message + Default + Send + Sync + 'static> Message for M {}

/// The answer to a call with one request: a message, perhaps with metadata.
pub trait Answer: Send + 'static {
    type Message: Message;

    fn into_response(self) -> Response<Self::Message>;
}

impl<M: Message> Answer for M {
    type Message = M;

    fn into_response(self) -> Response<M> {
        Response::new(self)
    }
}

/// gRPC for one call. The transport has decompressed the messages of other calls than streams.
fn grpc<R: Message, M: Message>() -> Grpc<ProstCodec<R, M>> {
    Grpc::new(ProstCodec::default())
        .accept_compressed(Gzip)
        .max_decoding_message_size(MAX_STREAM_BYTES)
}
