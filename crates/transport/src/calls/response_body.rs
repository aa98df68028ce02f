//! The body of a response. It counts against the memory budget until the connection has sent it.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Buf;
use http::Response;
use http_body::{Body as HttpBody, Frame, SizeHint};
use tonic::Status;
use tonic::body::Body;
use tonic::codegen::Bytes;

use crate::budgets::state::Reservation;
use crate::budgets::streams::OpenStream;
use crate::calls::call_protocol::EndFrame;
use crate::calls::compute_shares::Steps;
use crate::protocol;

/// The body of a response, and the budget that it is charged to.
pub struct ResponseBody {
    body: Body,
    /// The steps of a stream that computes for long.
    steps: Option<Steps>,
    charge: Charge,
    end_frame: EndFrame,
}

enum Charge {
    /// A call has one message, and ends with it.
    Call(Option<Reservation>),
    Stream(StreamCharge),
}

/// A stream is charged while its client does not read.
pub struct StreamCharge {
    stream: OpenStream,
    client_wait: Option<Reservation>,
    revoked: Revoked,
}

impl StreamCharge {
    /// The charge of a stream, from now on.
    pub fn new(stream: OpenStream, revoked: Revoked) -> Self {
        let client_wait = Some(stream.wait_for_client());
        Self { stream, client_wait, revoked }
    }
}

/// Returns the status that ends a stream, once its caller has lost the right to it.
pub type Revoked = Pin<Box<dyn Future<Output = Status> + Send>>;

impl ResponseBody {
    /// The answer to a call.
    pub fn call(
        response: Response<Body>,
        reservation: Reservation,
        end_frame: EndFrame,
    ) -> Response<Self> {
        let charge = Charge::Call(Some(reservation));
        response.map(|body| Self { body, steps: None, charge, end_frame })
    }

    /// The answer to a call that opened a stream.
    pub fn stream(
        response: Response<Body>,
        charge: StreamCharge,
        steps: Option<Steps>,
        end_frame: EndFrame,
    ) -> Response<Self> {
        response.map(|body| Self { body, steps, charge: Charge::Stream(charge), end_frame })
    }

    /// Returns the message to send, or ends the body with a status if the budget is exceeded.
    fn chunk(&mut self, bytes: Bytes) -> Frame<Chunk> {
        let reservation = match &mut self.charge {
            Charge::Call(reservation) => reservation.take(),
            Charge::Stream(charge) => {
                charge.client_wait = Some(charge.stream.wait_for_client());
                Some(charge.stream.reserve_message())
            }
        };
        let mut chunk = Chunk { bytes, reservation };
        let size = chunk.bytes.len();
        if chunk.reservation.as_mut().is_none_or(|reservation| reservation.resize(size)) {
            return Frame::data(chunk);
        }

        self.end(&protocol::answers_unread()).unwrap_or_else(|| Frame::data(chunk))
    }

    /// Ends the body with a status, if the protocol can.
    fn end(&mut self, status: &Status) -> Option<Frame<Chunk>> {
        let frame = (self.end_frame)(status)?;
        self.body = Body::empty();
        // The last frame is small: it is sent whatever the budget.
        Some(frame.map_data(|bytes| Chunk { bytes, reservation: None }))
    }
}

impl HttpBody for ResponseBody {
    type Data = Chunk;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Chunk>, Status>>> {
        let has_ended = self.body.is_end_stream();
        if let Charge::Stream(charge) = &mut self.charge {
            charge.client_wait = None;
            if !has_ended && let Poll::Ready(status) = charge.revoked.as_mut().poll(cx) {
                return Poll::Ready(self.end(&status).map(Ok));
            }
        }
        let Self { body, steps, .. } = &mut *self;
        let mut poll_body = |cx: &mut Context<'_>| Pin::new(&mut *body).poll_frame(cx);
        let polled = match steps {
            Some(steps) => steps.poll(cx, poll_body),
            None => poll_body(cx),
        };
        let Some(frame) = ready!(polled?) else {
            return Poll::Ready(None);
        };

        Poll::Ready(Some(Ok(match frame.into_data() {
            Ok(bytes) => self.chunk(bytes),
            Err(frame) => Frame::trailers(frame.into_trailers().unwrap_or_default()),
        })))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// Bytes that the connection drops once it has written them.
pub struct Chunk {
    bytes: Bytes,
    reservation: Option<Reservation>,
}

impl Buf for Chunk {
    fn remaining(&self) -> usize {
        self.bytes.len()
    }

    fn chunk(&self) -> &[u8] {
        &self.bytes
    }

    fn advance(&mut self, count: usize) {
        self.bytes.advance(count);
        if let Some(reservation) = &mut self.reservation {
            reservation.release(count);
        }
    }
}
