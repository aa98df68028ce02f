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

use super::authorization::authorized;
use crate::MAX_STREAM_BYTES;
use polynym_access::Call;
use polynym_transport::method::Handler;
use polynym_transport::request_body::RequestBody;

/// The handler of a method of the API with one request and one response.
macro_rules! unary {
    ($api:ident.$method:ident) => {{
        let api = $api.clone();
        $crate::grpc::handlers::of_unary(move |call, message| {
            let api = api.clone();
            async move { api.$method(&call, message).await }
        })
    }};
}

/// The handler of a method of the API with a stream of responses.
macro_rules! server_stream {
    ($api:ident.$method:ident) => {{
        let api = $api.clone();
        $crate::grpc::handlers::of_server_stream(move |request| {
            let api = api.clone();
            async move { api.$method(request).await }
        })
    }};
}

/// The handler of a method of the API with a stream of requests and one of responses.
macro_rules! client_stream {
    ($api:ident.$method:ident) => {{
        let api = $api.clone();
        $crate::grpc::handlers::of_client_stream(move |request| {
            let api = api.clone();
            async move { api.$method(request).await }
        })
    }};
}

pub(super) use {client_stream, server_stream, unary};

/// See [`unary!`].
pub fn of_unary<M, R, F>(
    answer: impl Fn(Arc<Call>, M) -> F + Clone + Send + Sync + 'static,
) -> Handler
where
    M: Message,
    R: Message,
    F: Future<Output = Result<Response<R>, Status>> + Send + 'static,
{
    Box::new(move |request| {
        let answer = answer.clone();
        let answer = service_fn(move |request| {
            let authorized = authorized(request).map(|(call, message)| answer(call, message));
            async move { authorized?.await }
        });
        Box::pin(async move { grpc::<R, M>().unary(answer, request).await })
    })
}

/// See [`server_stream!`].
pub fn of_server_stream<M, R, S, F>(
    answer: impl Fn(Request<M>) -> F + Clone + Send + Sync + 'static,
) -> Handler
where
    M: Message,
    R: Message,
    S: Stream<Item = Result<R, Status>> + Send + 'static,
    F: Future<Output = Result<Response<S>, Status>> + Send + 'static,
{
    Box::new(move |request| {
        let answer = service_fn(answer.clone());
        Box::pin(async move { grpc::<R, M>().server_streaming(answer, request).await })
    })
}

/// See [`client_stream!`].
pub fn of_client_stream<M, R, S, F>(
    answer: impl Fn(Request<Streaming<M>>) -> F + Clone + Send + Sync + 'static,
) -> Handler
where
    M: Message,
    R: Message,
    S: Stream<Item = Result<R, Status>> + Send + 'static,
    F: Future<Output = Result<Response<S>, Status>> + Send + 'static,
{
    Box::new(move |request| {
        let answer = service_fn(answer.clone());
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

/// gRPC for one call. The transport has decompressed the messages of other calls than streams.
fn grpc<R: Message, M: Message>() -> Grpc<ProstCodec<R, M>> {
    Grpc::new(ProstCodec::default())
        .accept_compressed(Gzip)
        .max_decoding_message_size(MAX_STREAM_BYTES)
}
