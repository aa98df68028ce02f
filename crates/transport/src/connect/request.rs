//! The request of a call over Connect, and its message.

use std::cmp::Ordering;
use std::sync::Arc;

use bytes::Bytes;
use http::header::{ALLOW, CONTENT_TYPE};
use http::{HeaderMap, HeaderValue, Request, Response, StatusCode};
use http_body::Body as _;
use hyper::body::Incoming;
use tonic::Status;
use tonic::body::Body;

use super::call::{Codec, ConnectCall};
use super::{envelope, error, header, json};
use crate::budgets::state::Reservation;
use crate::calls::call_protocol::Refused;
use crate::calls::compute_shares::in_one_step;
use crate::gzip;
use crate::method::messages::{Messages, Shape};
use crate::protocol;
use crate::request_body::{PREFIX, RequestBody, discard_rest, next_chunk, reserve, set_length};
use crate::request_check::{self, MAX_HEADER_BYTES};

/// A text may be this many times as long as the largest message: names and escapes take space.
const TEXT_FACTOR: usize = 2;

/// The call of a request to a method with these messages.
///
/// # Errors
/// The request is no call: the response says why.
pub fn call(messages: &Arc<Messages>, request: &Request<Incoming>) -> Result<ConnectCall, Refused> {
    check(request, "POST")?;
    let Some(codec) = codec(messages, request.headers().get(CONTENT_TYPE)) else {
        return Err(wrong_content_type(messages.shape).into());
    };
    ConnectCall::new(messages.clone(), codec, request.headers()).map_err(|status| {
        Refused::from(match messages.shape {
            Shape::ServerStream => envelope::failure(codec, &status),
            Shape::Unary | Shape::ClientStream => error::response(&status),
        })
    })
}

/// Checks what all calls have in common.
///
/// # Errors
/// The request is no call: the response says why.
pub fn check(request: &Request<Incoming>, method: &'static str) -> Result<(), Refused> {
    if request.method().as_str() != method {
        return Err(wrong_http_method(method).into());
    }
    let size = request_check::header_bytes(request);
    if size > MAX_HEADER_BYTES {
        let status = protocol::headers_too_large(MAX_HEADER_BYTES, size);
        let too_large = StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE;
        return Err(error::with_http_status(too_large, &status).into());
    }
    Ok(())
}

/// Waits for the message of a call with one message, which is the whole body.
pub async fn read_message(
    call: &ConnectCall,
    request: Request<Incoming>,
    limit: usize,
    reservation: &mut Reservation,
) -> Result<Request<RequestBody>, Status> {
    let (mut parts, body) = request.into_parts();
    header::remove_grpc(&mut parts.headers);
    reserve(reservation, request_check::size(&parts.headers))?;
    let sent_limit = sent_limit(call, limit);
    let framed = framed(body, &parts.headers, call.is_gzip, sent_limit, reservation).await?;
    let unpacked = gzip::decompressed(framed, sent_limit, reservation).await?;
    let message = transcoded(call, unpacked, limit, reservation).await?;
    Ok(Request::from_parts(parts, RequestBody::Complete(message)))
}

/// Waits for the message of a call with a stream of responses. Its envelope is a frame of gRPC.
pub async fn read_envelope(
    call: &ConnectCall,
    request: Request<Incoming>,
    limit: usize,
    reservation: &mut Reservation,
) -> Result<Request<RequestBody>, Status> {
    let (mut parts, body) = request.into_parts();
    header::remove_grpc(&mut parts.headers);
    let sent_limit = sent_limit(call, limit);
    let body = framed(body, &parts.headers, false, sent_limit + PREFIX, reservation).await?;
    let envelope = body.slice(PREFIX..);
    check_envelope(&envelope, call.is_gzip, sent_limit)?;
    let unpacked = gzip::decompressed(envelope, sent_limit, reservation).await?;
    let message = transcoded(call, unpacked, limit, reservation).await?;
    Ok(Request::from_parts(parts, RequestBody::Complete(message)))
}

/// Checks that a body is one envelope.
fn check_envelope(body: &[u8], is_gzip: bool, limit: usize) -> Result<(), Status> {
    let Some((&[flags, ref length @ ..], rest)) = body.split_first_chunk::<PREFIX>() else {
        return match body {
            [] => Err(protocol::message_count_wrong()),
            _ => Err(protocol::message_invalid("its envelope is incomplete")),
        };
    };
    let length = u32::from_be_bytes(*length) as usize;
    match flags {
        0 => {}
        1 if is_gzip => {}
        1 => return Err(protocol::envelope_compressed()),
        _ => return Err(protocol::message_invalid("its envelope has unknown flags")),
    }
    if length > limit {
        return Err(protocol::message_too_large(limit, length));
    }
    match rest.len().cmp(&length) {
        Ordering::Less => Err(protocol::message_invalid("it is shorter than its envelope says")),
        Ordering::Equal => Ok(()),
        Ordering::Greater => Err(protocol::message_count_wrong()),
    }
}

fn sent_limit(call: &ConnectCall, limit: usize) -> usize {
    match call.codec {
        Codec::Json => TEXT_FACTOR * limit,
        Codec::Binary => limit,
    }
}

async fn transcoded(
    call: &ConnectCall,
    framed: Bytes,
    limit: usize,
    reservation: &mut Reservation,
) -> Result<Bytes, Status> {
    match call.codec {
        Codec::Binary => Ok(framed),
        Codec::Json => {
            let text = framed.get(PREFIX..).unwrap_or_default();
            let lock = reservation.compute_lock().clone();
            let read = || json::to_framed(text, &call.messages.input, limit, reservation);
            Ok(in_one_step(&lock, text.len(), read).await?.into())
        }
    }
}

/// Collects a body as a framed message. The rest of one that is refused is read: HTTP/1.1 would end
/// the connection, and its client might not get the response.
async fn framed(
    mut body: Incoming,
    headers: &HeaderMap,
    is_compressed: bool,
    limit: usize,
    reservation: &mut Reservation,
) -> Result<Bytes, Status> {
    let framed = collect(&mut body, is_compressed, limit, reservation).await;
    if framed.is_err() {
        discard_rest(headers, body).await;
    }
    framed
}

/// As [`framed`], but leaves the rest unread.
async fn collect(
    body: &mut Incoming,
    is_compressed: bool,
    limit: usize,
    reservation: &mut Reservation,
) -> Result<Bytes, Status> {
    let announced = usize::try_from(body.size_hint().lower()).unwrap_or(usize::MAX);
    if announced > limit {
        return Err(protocol::message_too_large(limit, announced));
    }
    let mut framed = vec![0; PREFIX];
    while let Some(chunk) = next_chunk(body).await? {
        let length = framed.len() - PREFIX + chunk.len();
        if length > limit {
            return Err(protocol::message_too_large(limit, length));
        }
        reserve(reservation, chunk.len())?;
        framed.extend_from_slice(&chunk);
    }
    // An empty body is an empty message, even if it is marked as compressed.
    framed[0] = u8::from(is_compressed && framed.len() > PREFIX);
    set_length(&mut framed);
    Ok(framed.into())
}

/// The media type of a content type, without its parameters.
pub fn media_type(content_type: &str) -> String {
    content_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}

/// The form of messages that a content type names, if the method takes it. Parameters mean nothing:
/// JSON is always UTF-8 (RFC 8259, section 11).
fn codec(messages: &Messages, content_type: Option<&HeaderValue>) -> Option<Codec> {
    let text = content_type?.to_str().ok()?;
    match (messages.shape, &*media_type(text)) {
        (Shape::Unary, "application/json") => Some(Codec::Json),
        (Shape::Unary, "application/proto") => Some(Codec::Binary),
        (Shape::ServerStream, "application/connect+json") => Some(Codec::Json),
        (Shape::ServerStream, "application/connect+proto") => Some(Codec::Binary),
        _ => None,
    }
}

/// The response to an HTTP method other than `allowed`.
pub fn wrong_http_method(allowed: &'static str) -> Response<Body> {
    let status = protocol::http_method_wrong(allowed);
    let mut response = error::with_http_status(StatusCode::METHOD_NOT_ALLOWED, &status);
    response.headers_mut().insert(ALLOW, HeaderValue::from_static(allowed));
    response
}

/// The response to a path that is not served.
pub fn unknown_path(path: &str, nearest: Option<&str>) -> Response<Body> {
    error::with_http_status(StatusCode::NOT_FOUND, &protocol::unknown_path(path, nearest))
}

fn wrong_content_type(shape: Shape) -> Response<Body> {
    let message = match shape {
        Shape::Unary => "the content type must be application/json or application/proto",
        Shape::ServerStream => {
            "this method returns a stream: the content type must be application/connect+json or \
             application/connect+proto"
        }
        Shape::ClientStream => "this method takes a stream of messages: use gRPC",
    };
    let status = protocol::content_type_wrong(message);
    let mut response = error::with_http_status(StatusCode::UNSUPPORTED_MEDIA_TYPE, &status);
    let accepted = match shape {
        Shape::Unary => "application/json, application/proto",
        Shape::ServerStream => "application/connect+json, application/connect+proto",
        Shape::ClientStream => return response,
    };
    response.headers_mut().insert("accept-post", HeaderValue::from_static(accepted));
    response
}
