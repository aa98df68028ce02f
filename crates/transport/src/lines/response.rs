//! The messages of a response as lines. The last line of a call that failed has the error.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::{Bytes, BytesMut};
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use http::{HeaderValue, Response};
use http_body::{Body as HttpBody, Frame};
use serde_json::json;
use tonic::body::Body;
use tonic::{Code, Status};

use super::exchange::Exchange;
use super::{EVENTS, LineForm, LineWriter};
use crate::connect::envelope::next_message;
use crate::connect::{error, header};
use crate::rich_status::internal;

type Polled = Option<Result<Frame<Bytes>, Status>>;

/// The response to a call. Its status is that of the error if the call fails at once.
pub async fn respond(
    response: Response<Body>,
    form: LineForm,
    writer: Box<dyn LineWriter>,
    exchange: Arc<Exchange>,
) -> Response<Body> {
    let (parts, mut grpc) = response.into_parts();
    let first = match Status::from_header_map(&parts.headers) {
        Some(status) => Some(Some(Err(status))),
        None => first(&mut grpc, &exchange).await,
    };
    if let Some(polled) = &first
        && let Some(status) = failure(polled)
    {
        return match form {
            LineForm::Events if is_transient(&status) => transient_events(&status),
            _ => error::response(&status),
        };
    }
    let framed = BytesMut::new();
    let body = LineBody { grpc, first, form, writer, exchange, framed, has_ended: false };
    let mut response = Response::new(Body::new(body));
    *response.headers_mut() = header::leading(&parts.headers);
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(form.content_type()));
    if form == LineForm::Events {
        response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    }
    response
}

/// Whether a browser should connect again.
fn is_transient(status: &Status) -> bool {
    matches!(status.code(), Code::Unavailable | Code::ResourceExhausted)
}

/// The response to a watch that failed at once and may succeed later: by any other status than 200
/// an `EventSource` would end for good (HTML standard, section 9.2.2).
fn transient_events(status: &Status) -> Response<Body> {
    let mut response = Response::new(error::body(LineForm::Events.error(status)));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(EVENTS));
    response
}

/// Waits for the first frame; none if there are rejects before it.
async fn first(grpc: &mut Body, exchange: &Exchange) -> Option<Polled> {
    poll_fn(|cx| {
        if let Poll::Ready(polled) = Pin::new(&mut *grpc).poll_frame(cx) {
            return Poll::Ready(Some(polled));
        }
        exchange.poll_rejects(cx).map(|()| None)
    })
    .await
}

/// The status of a frame that ends a call which failed.
fn failure(polled: &Polled) -> Option<Status> {
    match polled {
        Some(Ok(frame)) => {
            let status = Status::from_header_map(frame.trailers_ref()?)?;
            Some(status).filter(|status| status.code() != Code::Ok)
        }
        Some(Err(status)) => Some(status.clone()),
        // Every stream of gRPC ends with trailers.
        None => Some(internal()),
    }
}

impl LineForm {
    /// The last line of a call that failed.
    pub fn error(self, status: &Status) -> Bytes {
        let error = json!({ "error": error::Error::from(status) });
        match self {
            Self::Json => format!("{error}\n").into(),
            // A browser has an event `error` of its own, which has no data.
            Self::Events => format!("event: failure\ndata: {error}\n\n").into(),
        }
    }
}

/// Turns the frames of gRPC into lines.
struct LineBody {
    grpc: Body,
    /// A frame that was polled already.
    first: Option<Polled>,
    form: LineForm,
    writer: Box<dyn LineWriter>,
    exchange: Arc<Exchange>,
    /// Frames that are not complete yet.
    framed: BytesMut,
    has_ended: bool,
}

impl LineBody {
    /// The lines of a frame.
    fn lines(&mut self, polled: Polled) -> Bytes {
        if let Some(status) = failure(&polled) {
            return self.end(&status);
        }
        let Some(Ok(frame)) = polled else { return Bytes::new() };
        let Ok(bytes) = frame.into_data() else {
            if let Some(status) = self.exchange.failure() {
                return self.end(&status);
            }
            let mut text = self.last_rejects();
            self.writer.end(self.exchange.rejected(), &mut text);
            return text.into();
        };
        self.framed.extend_from_slice(&bytes);
        let mut text = Vec::new();
        while let Some(message) = next_message(&mut self.framed) {
            if let Err(error) = self.writer.write(&message, &mut text) {
                tracing::error!(error, "a message has no lines");
                text.extend_from_slice(&self.end(&internal()));
                break;
            }
        }
        text.into()
    }

    /// The rejects before the last line. The request has ended before the response.
    fn last_rejects(&mut self) -> Vec<u8> {
        self.has_ended = true;
        self.grpc = Body::empty();
        self.exchange.take_rejects().into()
    }

    fn end(&mut self, status: &Status) -> Bytes {
        let mut text = self.last_rejects();
        text.extend_from_slice(&self.form.error(status));
        text.into()
    }
}

impl HttpBody for LineBody {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        let body = &mut *self;
        loop {
            if body.exchange.poll_rejects(cx).is_ready() {
                return Poll::Ready(Some(Ok(Frame::data(body.exchange.take_rejects()))));
            }
            if body.has_ended {
                return Poll::Ready(None);
            }
            let polled = match body.first.take() {
                Some(polled) => polled,
                None => ready!(Pin::new(&mut body.grpc).poll_frame(cx)),
            };
            let lines = body.lines(polled);
            if !lines.is_empty() {
                return Poll::Ready(Some(Ok(Frame::data(lines))));
            }
        }
    }
}
