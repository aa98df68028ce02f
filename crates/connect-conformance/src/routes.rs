//! The conformance service as the services of a server.

use std::sync::{Arc, OnceLock};

use http::{Request, Response};
use polynym_access::{Call, Caller};
use polynym_transport::request_body::{PREFIX, RequestBody};
use polynym_transport::rich_status::internal;
use polynym_transport::routes::{PermitKind, Refusal, Routes, Target};
use prost::Message;
use tonic::body::Body;
use tonic::{Code, Status};

use crate::proto::{IdempotentUnaryRequest, ServerStreamRequest, UnaryRequest};
use crate::respond;

/// The limit of a message unless the suite sets one.
const DEFAULT_LIMIT: u32 = 8 << 20;
static LIMIT: OnceLock<u32> = OnceLock::new();

/// The conformance service.
pub struct Conformance(());

impl Conformance {
    /// The service, which takes messages of at most `limit` bytes; 0 for the default.
    pub fn new(limit: u32) -> Self {
        let _ = LIMIT.set(if limit == 0 { DEFAULT_LIMIT } else { limit });
        Self(())
    }
}

/// A method of the service.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Method {
    Unary,
    IdempotentUnary,
    ServerStream,
    /// Any other method.
    Unimplemented,
}

impl Target for Method {
    fn from_path(path: &str) -> Self {
        match path.rsplit('/').next() {
            Some("Unary") => Self::Unary,
            Some("IdempotentUnary") => Self::IdempotentUnary,
            Some("ServerStream") => Self::ServerStream,
            _ => Self::Unimplemented,
        }
    }

    fn index(self) -> usize {
        self as usize
    }

    fn name(self) -> &'static str {
        "conformance"
    }

    fn max_streams(self) -> Option<usize> {
        (self == Self::ServerStream).then_some(1_024)
    }

    fn is_finite(self) -> bool {
        true
    }

    fn is_scan(self) -> bool {
        false
    }

    fn max_message_bytes(self) -> usize {
        *LIMIT.get().unwrap_or(&DEFAULT_LIMIT) as usize
    }

    fn permit_kind(self) -> Option<PermitKind> {
        None
    }
}

impl Routes for Conformance {
    type Target = Method;

    fn needs_credentials(&self) -> bool {
        false
    }

    fn certified_caller(&self, _: &[String]) -> Option<Arc<Caller>> {
        Some(Arc::new(Caller::anonymous()))
    }

    fn authorize<B>(&self, _: &mut Request<B>, _: &[String]) -> Result<Option<Arc<Call>>, Refusal> {
        Ok(None)
    }

    async fn call(&self, target: Method, request: Request<RequestBody>) -> Response<Body> {
        let (parts, body) = request.into_parts();
        let RequestBody::Complete(framed) = body else { return internal().into_http() };
        let bytes = framed.slice(PREFIX.min(framed.len())..);
        let name = match target {
            Method::Unary => "UnaryRequest",
            Method::IdempotentUnary => "IdempotentUnaryRequest",
            Method::ServerStream => "ServerStreamRequest",
            Method::Unimplemented => return Status::unimplemented("not here").into_http(),
        };
        let info = respond::request_info(&parts.headers, name, bytes.to_vec());
        let undecodable = |_| Status::new(Code::InvalidArgument, "undecodable").into_http();
        match target {
            Method::ServerStream => match ServerStreamRequest::decode(bytes) {
                Ok(request) => respond::stream(request.response_definition, info).await,
                Err(error) => undecodable(error),
            },
            Method::IdempotentUnary => match IdempotentUnaryRequest::decode(bytes) {
                Ok(request) => respond::unary(request.response_definition, info).await,
                Err(error) => undecodable(error),
            },
            _ => match UnaryRequest::decode(bytes) {
                Ok(request) => respond::unary(request.response_definition, info).await,
                Err(error) => undecodable(error),
            },
        }
    }
}
