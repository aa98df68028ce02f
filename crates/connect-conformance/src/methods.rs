//! The methods of the conformance service.

use bytes::Bytes;
use futures_util::future::BoxFuture;
use http::{HeaderMap, Response};
use polynym_transport::method::{Handler, Method, MethodKind, Requirement};
use polynym_transport::request_body::{PREFIX, RequestBody};
use polynym_transport::rich_status::internal;
use prost::Message;
use tonic::body::Body;
use tonic::{Code, Status};

use crate::proto::{IdempotentUnaryRequest, ServerStreamRequest, UnaryRequest};
use crate::respond;

/// The limit of a message unless the suite sets one.
const DEFAULT_LIMIT: usize = 8 << 20;

type Answer = fn(HeaderMap, Bytes) -> BoxFuture<'static, Response<Body>>;

/// The methods, which take messages of at most `limit` bytes; 0 for the default.
pub fn methods(limit: usize) -> Vec<Method> {
    let max_message_bytes = if limit == 0 { DEFAULT_LIMIT } else { limit };
    let method = |name, kind, answer| Method {
        service: "connectrpc.conformance.v1.ConformanceService",
        name,
        requirement: Requirement::Nothing,
        kind,
        is_scan: false,
        max_message_bytes,
        lines: None,
        handler: handler(answer),
    };
    let stream = MethodKind::Stream { limit: 1_024, is_finite: true };
    vec![
        method("Unary", MethodKind::Probe, unary),
        method("IdempotentUnary", MethodKind::Probe, idempotent_unary),
        method("ServerStream", stream, server_stream),
        method("Unimplemented", MethodKind::Probe, unimplemented),
        method("ClientStream", MethodKind::Probe, unimplemented),
        method("BidiStream", MethodKind::Probe, unimplemented),
    ]
}

/// The handler of a method with one message.
fn handler(answer: Answer) -> Handler {
    Box::new(move |request| {
        let (parts, body) = request.into_parts();
        let RequestBody::Complete(framed) = body else {
            return Box::pin(async { internal().into_http() });
        };
        answer(parts.headers, framed.slice(PREFIX.min(framed.len())..))
    })
}

fn unary(headers: HeaderMap, bytes: Bytes) -> BoxFuture<'static, Response<Body>> {
    let info = respond::request_info(&headers, "UnaryRequest", bytes.to_vec());
    Box::pin(async move {
        match UnaryRequest::decode(bytes) {
            Ok(request) => respond::unary(request.response_definition, info).await,
            Err(_) => undecodable(),
        }
    })
}

fn idempotent_unary(headers: HeaderMap, bytes: Bytes) -> BoxFuture<'static, Response<Body>> {
    let info = respond::request_info(&headers, "IdempotentUnaryRequest", bytes.to_vec());
    Box::pin(async move {
        match IdempotentUnaryRequest::decode(bytes) {
            Ok(request) => respond::unary(request.response_definition, info).await,
            Err(_) => undecodable(),
        }
    })
}

fn server_stream(headers: HeaderMap, bytes: Bytes) -> BoxFuture<'static, Response<Body>> {
    let info = respond::request_info(&headers, "ServerStreamRequest", bytes.to_vec());
    Box::pin(async move {
        match ServerStreamRequest::decode(bytes) {
            Ok(request) => respond::stream(request.response_definition, info).await,
            Err(_) => undecodable(),
        }
    })
}

fn unimplemented(_: HeaderMap, _: Bytes) -> BoxFuture<'static, Response<Body>> {
    Box::pin(async { Status::unimplemented("not here").into_http() })
}

fn undecodable() -> Response<Body> {
    Status::new(Code::InvalidArgument, "undecodable").into_http()
}
