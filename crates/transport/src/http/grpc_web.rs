//! gRPC-Web, which browsers speak: gRPC whose trailers are the last frame of the body
//! (<https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-WEB.md>).

use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::{Bytes, BytesMut};
use http::header::CONTENT_TYPE;
use http::{HeaderMap, HeaderValue, Request, Response};
use http_body::{Body as HttpBody, Frame};
use hyper::body::Incoming;
use tonic::Status;
use tonic::body::Body;

use crate::budgets::state::Reservation;
use crate::budgets::streams::OpenStream;
use crate::calls::call_protocol::{CallProtocol, EndFrame, Refused};
use crate::calls::compute_shares::in_one_step;
use crate::connect::{error, header, request};
use crate::method::messages::{Messages, Shape};
use crate::request_body::{self, ENCODING, PREFIX, RequestBody, next_chunk, reserve, set_length};
use crate::rich_status::internal;
use crate::{protocol, request_check};

/// The flag of the frame with the trailers.
const TRAILERS: u8 = 0x80;

/// A call over gRPC-Web.
pub struct GrpcWeb {
    form: Form,
    timeout: Option<Duration>,
}

/// The form of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Binary,
    /// Base64, for clients that can read no bytes while a response arrives.
    Text,
}

impl GrpcWeb {
    /// The call of a request; none if its content type is another. Browsers send no streams.
    ///
    /// # Errors
    /// The request is no call: the response says why.
    pub fn new(messages: &Messages, request: &Request<Incoming>) -> Result<Option<Self>, Refused> {
        let content_type = request.headers().get(CONTENT_TYPE);
        let Some(form) = content_type.and_then(Form::from_content_type) else { return Ok(None) };
        if messages.shape == Shape::ClientStream {
            return Ok(None);
        }
        let timeout = request_check::timeout(request.headers());
        let timeout = timeout.map_err(|status| Refused::from(form.response(&status)))?;
        Ok(Some(Self { form, timeout }))
    }
}

impl CallProtocol for GrpcWeb {
    fn validate(&self, _: &Request<Incoming>) -> Result<Option<Duration>, Refused> {
        Ok(self.timeout)
    }

    async fn read_message(
        &self,
        request: Request<Incoming>,
        limit: usize,
        reservation: &mut Reservation,
    ) -> Result<Request<RequestBody>, Status> {
        match self.form {
            Form::Binary => request_body::read_message(request, limit, reservation).await,
            Form::Text => {
                let (parts, body) = request.into_parts();
                let decoded = error::body(decoded(body, limit, reservation).await?);
                let request = Request::from_parts(parts, decoded);
                request_body::read_message(request, limit, reservation).await
            }
        }
    }

    async fn open(
        &self,
        request: Request<Incoming>,
        limit: usize,
        _: Duration,
        stream: &OpenStream,
    ) -> Result<Request<RequestBody>, Status> {
        self.read_message(request, limit, &mut stream.reserve_message()).await
    }

    async fn respond(
        &self,
        response: Response<Body>,
        _: Option<&mut Reservation>,
    ) -> Response<Body> {
        let (parts, grpc) = response.into_parts();
        if let Some(status) = Status::from_header_map(&parts.headers) {
            return self.form.response(&status);
        }
        let body = WebBody { grpc, form: self.form, has_ended: false };
        let mut response = Response::new(Body::new(body));
        *response.headers_mut() = header::leading(&parts.headers);
        if let Some(encoding) = parts.headers.get(ENCODING) {
            response.headers_mut().insert(ENCODING, encoding.clone());
        }
        response.headers_mut().insert(CONTENT_TYPE, self.form.content_type());
        response
    }

    fn end_frame(&self) -> EndFrame {
        match self.form {
            Form::Binary => |status| Some(Frame::data(Form::Binary.end(status))),
            Form::Text => |status| Some(Frame::data(Form::Text.end(status))),
        }
    }
}

impl Form {
    /// The form of a content type, with any parameters.
    fn from_content_type(content_type: &HeaderValue) -> Option<Self> {
        match request::media_type(content_type.to_str().ok()?).as_str() {
            "application/grpc-web" | "application/grpc-web+proto" => Some(Self::Binary),
            "application/grpc-web-text" | "application/grpc-web-text+proto" => Some(Self::Text),
            _ => None,
        }
    }

    const fn content_type(self) -> HeaderValue {
        match self {
            Self::Binary => HeaderValue::from_static("application/grpc-web+proto"),
            Self::Text => HeaderValue::from_static("application/grpc-web-text+proto"),
        }
    }

    /// The bytes of a frame as they are sent.
    fn encoded(self, bytes: Bytes) -> Bytes {
        match self {
            Self::Binary => bytes,
            Self::Text => STANDARD.encode(bytes).into(),
        }
    }

    /// The last frame of a call with this status.
    fn end(self, status: &Status) -> Bytes {
        self.trailers(&protocol::trailers(status))
    }

    fn trailers(self, trailers: &HeaderMap) -> Bytes {
        let mut frame = vec![TRAILERS, 0, 0, 0, 0];
        for (name, value) in trailers {
            frame.extend_from_slice(name.as_str().as_bytes());
            frame.extend_from_slice(b": ");
            frame.extend_from_slice(value.as_bytes());
            frame.extend_from_slice(b"\r\n");
        }
        set_length(&mut frame);
        self.encoded(frame.into())
    }

    /// The response to a call that failed before its first message.
    fn response(self, status: &Status) -> Response<Body> {
        let mut response = Response::new(error::body(self.end(status)));
        response.headers_mut().insert(CONTENT_TYPE, self.content_type());
        response
    }
}

/// Collects a body in base64 and decodes it.
async fn decoded(
    mut body: Incoming,
    limit: usize,
    reservation: &mut Reservation,
) -> Result<Bytes, Status> {
    let max = base64::encoded_len(limit + PREFIX, true).unwrap_or(usize::MAX);
    let mut text = BytesMut::new();
    while let Some(chunk) = next_chunk(&mut body).await? {
        reserve(reservation, chunk.len())?;
        text.extend_from_slice(&chunk);
        if text.len() > max {
            return Err(protocol::message_too_large(
                limit,
                base64::decoded_len_estimate(text.len()),
            ));
        }
    }
    let lock = reservation.compute_lock().clone();
    let bytes = in_one_step(&lock, text.len(), || STANDARD.decode(&text)).await;
    bytes.map(Bytes::from).map_err(|_| protocol::message_invalid("it is no base64"))
}

/// The body of gRPC with its trailers as the last frame.
struct WebBody {
    grpc: Body,
    form: Form,
    has_ended: bool,
}

impl WebBody {
    fn end(&mut self, trailers: Bytes) -> Bytes {
        self.has_ended = true;
        self.grpc = Body::empty();
        trailers
    }
}

impl HttpBody for WebBody {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        if self.has_ended {
            return Poll::Ready(None);
        }
        // Every stream of gRPC ends with trailers.
        let polled = ready!(Pin::new(&mut self.grpc).poll_frame(cx));
        let form = self.form;
        let bytes = match polled.unwrap_or_else(|| Err(internal())).map(Frame::into_data) {
            Ok(Ok(bytes)) => form.encoded(bytes),
            Ok(Err(frame)) => {
                let trailers = frame.into_trailers().unwrap_or_default();
                self.end(form.trailers(&trailers))
            }
            Err(status) => self.end(form.end(&status)),
        };
        Poll::Ready(Some(Ok(Frame::data(bytes))))
    }

    fn is_end_stream(&self) -> bool {
        self.has_ended
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_types_have_their_form() {
        let form = |text| Form::from_content_type(&HeaderValue::from_static(text));
        assert_eq!(form("application/grpc-web"), Some(Form::Binary));
        assert_eq!(form("Application/gRPC-Web+proto; x=y"), Some(Form::Binary));
        assert_eq!(form("application/grpc-web-text"), Some(Form::Text));
        for other in ["application/grpc", "application/grpc-web+json", "application/json", ""] {
            assert_eq!(form(other), None, "{other}");
        }
    }

    #[test]
    fn trailers_are_a_frame() {
        let trailers = HeaderMap::from_iter([(
            http::HeaderName::from_static("grpc-status"),
            HeaderValue::from_static("0"),
        )]);
        assert_eq!(&Form::Binary.trailers(&trailers)[..], b"\x80\0\0\0\x10grpc-status: 0\r\n");
        assert_eq!(&Form::Text.trailers(&trailers)[..], b"gAAAABBncnBjLXN0YXR1czogMA0K");
    }
}
