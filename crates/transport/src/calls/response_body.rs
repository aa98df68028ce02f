//! The body of a response. It counts against the memory budget until the connection has sent it.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Buf;
use http::{HeaderMap, Response};
use http_body::{Body as HttpBody, Frame, SizeHint};
use tonic::Status;
use tonic::body::Body;
use tonic::codegen::Bytes;

use crate::calls::turns::Steps;
use crate::memory_budget::Reservation;
use crate::protocol;
use crate::streams::OpenStream;

/// The body of a response, and the budget that it is charged to.
pub struct ResponseBody {
    body: Body,
    /// The steps of a stream that computes for long.
    steps: Option<Steps>,
    charge: Charge,
}

enum Charge {
    /// A call has one message, and ends with it.
    Call(Option<Reservation>),
    /// A stream is charged while its client does not read.
    Stream(OpenStream, Option<Reservation>, Revoked),
}

/// Returns the status that ends a stream, once its caller has lost the right to it.
pub type Revoked = Pin<Box<dyn Future<Output = Status> + Send>>;

impl ResponseBody {
    /// The answer to a call.
    pub fn call(response: Response<Body>, reservation: Reservation) -> Response<Self> {
        response.map(|body| Self { body, steps: None, charge: Charge::Call(Some(reservation)) })
    }

    /// The answer to a call that opened a stream.
    pub fn stream(
        response: Response<Body>,
        stream: OpenStream,
        steps: Option<Steps>,
        revoked: Revoked,
    ) -> Response<Self> {
        response.map(|body| {
            let client_wait = Some(stream.wait_for_client());
            Self { body, steps, charge: Charge::Stream(stream, client_wait, revoked) }
        })
    }

    /// Returns the message to send, or ends the body with a status if the budget is exceeded.
    fn chunk(&mut self, bytes: Bytes) -> Frame<Chunk> {
        let reservation = match &mut self.charge {
            Charge::Call(reservation) => reservation.take(),
            Charge::Stream(stream, client_wait, _) => {
                *client_wait = Some(stream.wait_for_client());
                Some(stream.reserve_message())
            }
        };
        let mut chunk = Chunk { bytes, reservation };
        let size = chunk.bytes.len();
        if chunk.reservation.as_mut().is_none_or(|reservation| reservation.resize(size)) {
            return Frame::data(chunk);
        }

        self.end(&protocol::answers_unread())
    }

    /// Ends the body with a status.
    fn end(&mut self, status: &Status) -> Frame<Chunk> {
        self.body = Body::empty();
        let mut trailers = HeaderMap::new();
        // Every status of this program is a valid header.
        let _ = status.add_header(&mut trailers);
        Frame::trailers(trailers)
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
        if let Charge::Stream(_, client_wait, revoked) = &mut self.charge {
            *client_wait = None;
            if !has_ended && let Poll::Ready(status) = revoked.as_mut().poll(cx) {
                return Poll::Ready(Some(Ok(self.end(&status))));
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
