//! The methods of the conformance service.

use std::future::ready;

use http::Response;
use polynym_transport::method::{Handler, Method, MethodKind, Requirement};
use polynym_transport::request_body::{PREFIX, RequestBody};
use polynym_transport::rich_status::internal;
use prost::Message;
use tonic::body::Body;
use tonic::{Code, Status};

use crate::proto::conformance_payload::RequestInfo;
use crate::proto::{IdempotentUnaryRequest, ServerStreamRequest, UnaryRequest};
use crate::respond;

/// The limit of a message unless the suite sets one.
const DEFAULT_LIMIT: usize = 8 << 20;

/// The methods, which take messages of at most `limit` bytes; 0 for the default.
pub fn methods(limit: usize) -> Vec<Method> {
    let max_message_bytes = if limit == 0 { DEFAULT_LIMIT } else { limit };
    let method = |name, kind, handler| {
        let service = "connectrpc.conformance.v1.ConformanceService";
        Method::new(service, name, Requirement::Nothing, kind, max_message_bytes, handler)
    };
    let unary = handler("UnaryRequest", |request: UnaryRequest, info| {
        respond::unary(request.response_definition, info)
    });
    let idempotent = handler("IdempotentUnaryRequest", |request: IdempotentUnaryRequest, info| {
        respond::unary(request.response_definition, info)
    });
    let streamed = handler("ServerStreamRequest", |request: ServerStreamRequest, info| {
        respond::stream(request.response_definition, info)
    });
    let stream = MethodKind::Stream { limit: 1_024, is_finite: true };
    vec![
        method("Unary", MethodKind::Probe, unary),
        method("IdempotentUnary", MethodKind::Probe, idempotent),
        method("ServerStream", stream, streamed),
        method("Unimplemented", MethodKind::Probe, unimplemented()),
        method("ClientStream", MethodKind::Probe, unimplemented()),
        method("BidiStream", MethodKind::Probe, unimplemented()),
    ]
}

/// The handler of a method whose only message has this name.
fn handler<M, F>(
    name: &'static str,
    respond: impl Fn(M, RequestInfo) -> F + Copy + Send + Sync + 'static,
) -> Handler
where
    M: Message + Default,
    F: Future<Output = Response<Body>> + Send + 'static,
{
    Box::new(move |request| {
        let (parts, body) = request.into_parts();
        let RequestBody::Complete(framed) = body else {
            return Box::pin(ready(internal().into_http()));
        };
        let bytes = framed.slice(PREFIX.min(framed.len())..);
        let info = respond::request_info(&parts.headers, name, bytes.to_vec());
        match M::decode(bytes) {
            Ok(message) => Box::pin(respond(message, info)),
            Err(_) => {
                let status = Status::new(Code::InvalidArgument, "undecodable");
                Box::pin(ready(status.into_http()))
            }
        }
    })
}

fn unimplemented() -> Handler {
    Box::new(|_| Box::pin(ready(Status::unimplemented("not here").into_http())))
}
