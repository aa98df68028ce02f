//! The protocols of calls. A protocol turns a request into one of gRPC, and the response of gRPC
//! into its own; what happens between is the same for all.

use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body::Frame;
use hyper::body::Incoming;
use tonic::Status;
use tonic::body::Body;

use crate::budgets::state::Reservation;
use crate::budgets::streams::OpenStream;
use crate::request_body::{self, RequestBody};
use crate::{protocol, request_check};

/// Returns the frame that ends a body early with a status; none if the protocol has none.
pub type EndFrame = fn(&Status) -> Option<Frame<Bytes>>;

/// The response to a request that is refused before it counts as a call.
pub type Refused = Box<Response<Body>>;

/// A protocol of calls.
pub trait CallProtocol: Send + Sync + 'static {
    /// Checks a request before it counts as a call. Returns the caller's timeout, if it sets one,
    /// or the response to a request that is no call.
    fn validate(&self, request: &Request<Incoming>) -> Result<Option<Duration>, Refused>;

    /// Waits for the message of a call, of at most `limit` bytes.
    fn read_message(
        &self,
        request: Request<Incoming>,
        limit: usize,
        reservation: &mut Reservation,
    ) -> impl Future<Output = Result<Request<RequestBody>, Status>> + Send;

    /// The request of a call that opens `stream`. Its messages of at most `limit` bytes must each
    /// arrive within `timeout`.
    fn open(
        &self,
        request: Request<Incoming>,
        limit: usize,
        timeout: Duration,
        stream: &OpenStream,
    ) -> impl Future<Output = Result<Request<RequestBody>, Status>> + Send;

    /// The response to send. `reservation` is that of a call with one message.
    fn respond(
        &self,
        response: Response<Body>,
        reservation: Option<&mut Reservation>,
    ) -> impl Future<Output = Response<Body>> + Send;

    /// Ends bodies early.
    fn end_frame(&self) -> EndFrame;
}

/// gRPC over HTTP/2.
pub struct Grpc;

impl CallProtocol for Grpc {
    fn validate(&self, request: &Request<Incoming>) -> Result<Option<Duration>, Refused> {
        request_check::validate(request).map_err(|rejection| Box::new(rejection.into()))
    }

    async fn read_message(
        &self,
        request: Request<Incoming>,
        limit: usize,
        reservation: &mut Reservation,
    ) -> Result<Request<RequestBody>, Status> {
        request_body::read_message(request, limit, reservation).await
    }

    async fn open(
        &self,
        request: Request<Incoming>,
        _: usize,
        timeout: Duration,
        _: &OpenStream,
    ) -> Result<Request<RequestBody>, Status> {
        Ok(request.map(|body| RequestBody::streaming(body, timeout)))
    }

    async fn respond(
        &self,
        response: Response<Body>,
        _: Option<&mut Reservation>,
    ) -> Response<Body> {
        response
    }

    fn end_frame(&self) -> EndFrame {
        |status| Some(Frame::trailers(protocol::trailers(status)))
    }
}
