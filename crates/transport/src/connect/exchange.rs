//! Connect as a protocol of calls.

use std::time::Duration;

use http::{HeaderMap, Request, Response};
use http_body::Frame;
use hyper::body::Incoming;
use tonic::Status;
use tonic::body::Body;

use super::call::ConnectCall;
use super::{envelope, request, unary};
use crate::budgets::state::Reservation;
use crate::budgets::streams::OpenStream;
use crate::calls::call_protocol::{CallProtocol, EndFrame, Refused};
use crate::request_body::RequestBody;

impl CallProtocol for ConnectCall {
    fn validate(&self, _: &Request<Incoming>) -> Result<Option<Duration>, Refused> {
        Ok(self.timeout)
    }

    async fn read_message(
        &self,
        request: Request<Incoming>,
        limit: usize,
        reservation: &mut Reservation,
    ) -> Result<Request<RequestBody>, Status> {
        request::read_message(self, request, limit, reservation).await
    }

    async fn open(
        &self,
        request: Request<Incoming>,
        limit: usize,
        _: Duration,
        stream: &OpenStream,
    ) -> Result<Request<RequestBody>, Status> {
        request::read_envelope(self, request, limit, &mut stream.reserve_message()).await
    }

    async fn respond(
        &self,
        response: Response<Body>,
        reservation: Option<&mut Reservation>,
    ) -> Response<Body> {
        match reservation {
            Some(reservation) if !self.is_stream() => {
                unary::respond(self, response, reservation).await
            }
            _ => envelope::respond(self, response),
        }
    }

    fn end_frame(&self) -> EndFrame {
        match self.is_stream() {
            true => |status| Some(Frame::data(envelope::end(Some(status), &HeaderMap::new()))),
            false => |_| None,
        }
    }
}
