//! The body of a response: counts as held by the server until the connection has taken it.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Buf;
use http::{HeaderMap, Response};
use http_body::{Body as HttpBody, Frame, SizeHint};
use tonic::Status;
use tonic::body::Body;
use tonic::codegen::Bytes;

use super::memory_budget::{OpenStream, Reservation};
use super::protocol;

/// A response's body, and what it is charged to.
pub struct ResponseBody {
    body: Body,
    payer: Payer,
}

enum Payer {
    /// A call has one message, which takes the call along.
    Call(Option<Reservation>),
    /// A stream is charged while it waits for its client to take more.
    Stream(OpenStream, Option<Reservation>, Revoked),
}

/// Returns the status that ends a stream, once its caller may not have it any more.
pub type Revoked = Pin<Box<dyn Future<Output = Status> + Send>>;

impl ResponseBody {
    /// The answer to a call.
    pub fn call(response: Response<Body>, reservation: Reservation) -> Response<Self> {
        response.map(|body| Self { body, payer: Payer::Call(Some(reservation)) })
    }

    /// The answer to a call that opened a stream.
    pub fn stream(
        response: Response<Body>,
        stream: OpenStream,
        revoked: Revoked,
    ) -> Response<Self> {
        response.map(|body| {
            let pause = Some(stream.pause());
            Self { body, payer: Payer::Stream(stream, pause, revoked) }
        })
    }

    /// The message to send; in its place the end, with a status, where the server would have to
    /// hold too much.
    fn piece(&mut self, bytes: Bytes) -> Frame<Piece> {
        let reservation = match &mut self.payer {
            Payer::Call(reservation) => reservation.take(),
            Payer::Stream(stream, pause, _) => {
                *pause = Some(stream.pause());
                Some(stream.message())
            }
        };
        let mut piece = Piece { bytes, reservation };
        let size = piece.bytes.len();
        if piece.reservation.as_mut().is_none_or(|reservation| reservation.replace(size)) {
            return Frame::data(piece);
        }

        self.end(&protocol::unread())
    }

    /// The end with a status.
    fn end(&mut self, status: &Status) -> Frame<Piece> {
        self.body = Body::empty();
        let mut trailers = HeaderMap::new();
        // A status of this program has no character that a header cannot have.
        let _ = status.add_header(&mut trailers);
        Frame::trailers(trailers)
    }
}

impl HttpBody for ResponseBody {
    type Data = Piece;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Piece>, Status>>> {
        let has_ended = self.body.is_end_stream();
        if let Payer::Stream(_, pause, revoked) = &mut self.payer {
            *pause = None;
            if !has_ended && let Poll::Ready(status) = revoked.as_mut().poll(cx) {
                return Poll::Ready(Some(Ok(self.end(&status))));
            }
        }
        let Some(frame) = ready!(Pin::new(&mut self.body).poll_frame(cx)?) else {
            return Poll::Ready(None);
        };

        Poll::Ready(Some(Ok(match frame.into_data() {
            Ok(bytes) => self.piece(bytes),
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

/// Bytes on their way to the connection, which drops them once it has written them.
pub struct Piece {
    bytes: Bytes,
    reservation: Option<Reservation>,
}

impl Buf for Piece {
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
