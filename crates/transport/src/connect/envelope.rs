//! The response with a stream of messages, each in an envelope. The last envelope has the outcome
//! and the trailers.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes, BytesMut};
use http::header::CONTENT_TYPE;
use http::{HeaderMap, HeaderValue, Response};
use http_body::{Body as HttpBody, Frame};
use serde::Serialize;
use tonic::body::Body;
use tonic::{Code, Status};

use super::call::{Codec, ConnectCall};
use super::error::Error;
use super::{error, header, json};
use crate::method::messages::Messages;
use crate::request_body::{PREFIX, set_length};
use crate::rich_status::internal;

/// The flag of the last envelope.
const END: u8 = 2;

/// The content of the last envelope.
#[derive(Serialize)]
struct End<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<Error<'a>>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    metadata: BTreeMap<&'a str, Vec<&'a str>>,
}

/// The response to a call that failed before it opened its stream.
pub fn failure(codec: Codec, status: &Status) -> Response<Body> {
    let mut response = Response::new(error::body(end(Some(status), &HeaderMap::new())));
    response.headers_mut().insert(CONTENT_TYPE, content_type(codec));
    response
}

/// The response of Connect. Its HTTP status is 200, even if the call failed.
pub fn respond(call: &ConnectCall, response: Response<Body>) -> Response<Body> {
    let (parts, grpc) = response.into_parts();
    let mut headers = header::leading(&parts.headers);
    headers.insert(CONTENT_TYPE, content_type(call.codec));
    let body = match Status::from_header_map(&parts.headers) {
        Some(status) => error::body(end(Some(&status), &HeaderMap::new())),
        None => Body::new(EnvelopeBody {
            grpc,
            messages: call.messages.clone(),
            codec: call.codec,
            framed: BytesMut::new(),
            has_ended: false,
        }),
    };
    let mut response = Response::new(body);
    *response.headers_mut() = headers;
    response
}

/// The last envelope. It is JSON for both codecs.
pub fn end(status: Option<&Status>, trailers: &HeaderMap) -> Bytes {
    let failed = status.filter(|status| status.code() != Code::Ok);
    let mut content = End { error: failed.map(Error::from), metadata: BTreeMap::new() };
    for (name, value) in trailers.iter().filter(|(name, _)| header::is_metadata(name)) {
        let values = content.metadata.entry(name.as_str()).or_default();
        values.extend(value.to_str().ok());
    }
    let mut envelope = vec![END, 0, 0, 0, 0];
    // Texts and lists of texts are always valid JSON.
    let _ = serde_json::to_writer(&mut envelope, &content);
    set_length(&mut envelope);
    envelope.into()
}

const fn content_type(codec: Codec) -> HeaderValue {
    match codec {
        Codec::Json => HeaderValue::from_static("application/connect+json"),
        Codec::Binary => HeaderValue::from_static("application/connect+proto"),
    }
}

/// Turns the frames of gRPC into envelopes.
struct EnvelopeBody {
    grpc: Body,
    messages: Arc<Messages>,
    codec: Codec,
    /// Frames that are not sent yet, the last of which may be incomplete.
    framed: BytesMut,
    has_ended: bool,
}

impl EnvelopeBody {
    /// The complete messages so far as envelopes.
    fn envelopes(&mut self) -> Result<Bytes, Status> {
        let mut envelopes = Vec::new();
        while let Some(message) = next_message(&mut self.framed) {
            let start = envelopes.len();
            envelopes.extend_from_slice(&[0; PREFIX]);
            json::write(&self.messages.output, &message, &mut envelopes)?;
            set_length(&mut envelopes[start..]);
        }
        Ok(envelopes.into())
    }

    /// The frame of Connect for one of gRPC; empty if there is none yet.
    fn translated(&mut self, polled: Option<Result<Frame<Bytes>, Status>>) -> Frame<Bytes> {
        // Every stream of gRPC ends with trailers.
        let frame = polled.unwrap_or_else(|| Err(internal())).map(Frame::into_data);
        let envelopes = match frame {
            // The frames of gRPC are envelopes of protocol buffers.
            Ok(Ok(bytes)) if self.codec == Codec::Binary => Ok(bytes),
            Ok(Ok(bytes)) => {
                self.framed.extend_from_slice(&bytes);
                self.envelopes()
            }
            Ok(Err(frame)) => {
                let trailers = frame.into_trailers().unwrap_or_default();
                return self.end(Status::from_header_map(&trailers).as_ref(), &trailers);
            }
            Err(status) => Err(status),
        };
        match envelopes {
            Ok(envelopes) => Frame::data(envelopes),
            Err(status) => self.end(Some(&status), &HeaderMap::new()),
        }
    }

    fn end(&mut self, status: Option<&Status>, trailers: &HeaderMap) -> Frame<Bytes> {
        self.has_ended = true;
        self.grpc = Body::empty();
        Frame::data(end(status, trailers))
    }
}

/// Takes the next complete message from frames of gRPC.
pub fn next_message(framed: &mut BytesMut) -> Option<BytesMut> {
    let (&[_, ref length @ ..], rest) = framed.split_first_chunk::<PREFIX>()?;
    let length = u32::from_be_bytes(*length) as usize;
    if rest.len() < length {
        return None;
    }
    framed.advance(PREFIX);
    Some(framed.split_to(length))
}

impl HttpBody for EnvelopeBody {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        loop {
            if self.has_ended {
                return Poll::Ready(None);
            }
            let polled = ready!(Pin::new(&mut self.grpc).poll_frame(cx));
            let frame = self.translated(polled);
            if frame.data_ref().is_some_and(|bytes| !bytes.is_empty()) {
                return Poll::Ready(Some(Ok(frame)));
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.has_ended
    }
}
