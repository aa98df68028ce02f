//! The response with one message.

use std::future::poll_fn;
use std::io::Write;
use std::pin::Pin;

use bytes::{Bytes, BytesMut};
use flate2::Compression;
use flate2::write::GzEncoder;
use http::header::{CONTENT_ENCODING, CONTENT_TYPE};
use http::{HeaderMap, HeaderValue, Response};
use http_body::Body as _;
use tonic::body::Body;
use tonic::{Code, Status};

use super::call::{Codec, ConnectCall};
use super::{error, header, json};
use crate::budgets::state::Reservation;
use crate::calls::compute_shares::in_one_step;
use crate::protocol;
use crate::request_body::PREFIX;
use crate::rich_status::internal;

/// Shorter messages are not compressed.
pub const MIN_COMPRESSED_BYTES: usize = 1 << 10;

/// The response of Connect. Its bytes are reserved before its headers are sent.
pub async fn respond(
    call: &ConnectCall,
    response: Response<Body>,
    reservation: &mut Reservation,
) -> Response<Body> {
    let (parts, body) = response.into_parts();
    let (message, trailers) = collect(&parts.headers, body).await;
    let encoded = match message {
        Ok(framed) => encoded(call, framed, reservation).await,
        Err(status) => Err(status),
    };
    let mut response = encoded.unwrap_or_else(|status| error::response(&status));
    response.headers_mut().extend(header::leading(&parts.headers));
    header::add_trailers(&trailers, response.headers_mut());
    response
}

/// The framed message of a response of gRPC, or its error, and its trailers.
async fn collect(headers: &HeaderMap, mut body: Body) -> (Result<Bytes, Status>, HeaderMap) {
    let (mut first, mut more) = (Bytes::new(), BytesMut::new());
    let mut trailers = HeaderMap::new();
    loop {
        let frame = match poll_fn(|cx| Pin::new(&mut body).poll_frame(cx)).await {
            Some(Ok(frame)) => frame,
            Some(Err(status)) => return (Err(status), trailers),
            None => break,
        };
        match frame.into_data() {
            Ok(bytes) if first.is_empty() => first = bytes,
            Ok(bytes) => {
                if more.is_empty() {
                    more.extend_from_slice(&first);
                }
                more.extend_from_slice(&bytes);
            }
            Err(frame) => trailers.extend(frame.into_trailers().unwrap_or_default()),
        }
    }
    let status = Status::from_header_map(headers).or_else(|| Status::from_header_map(&trailers));
    let message = match status {
        Some(status) if status.code() != Code::Ok => Err(status),
        _ if more.is_empty() => Ok(first),
        _ => Ok(more.freeze()),
    };
    (message, trailers)
}

/// The response with a framed message.
async fn encoded(
    call: &ConnectCall,
    framed: Bytes,
    reservation: &mut Reservation,
) -> Result<Response<Body>, Status> {
    if framed.len() < PREFIX {
        return Err(internal());
    }
    let message = framed.slice(PREFIX..);
    // The message stays in memory while it waits for its turn.
    if !reservation.resize(message.len()) {
        return Err(protocol::answers_unread());
    }
    let (sent, is_gzip) = if call.codec == Codec::Binary && !call.accepts_gzip {
        (message, false)
    } else {
        let (length, encode) = (message.len(), || encode(call, message));
        in_one_step(reservation.compute_lock(), length, encode).await?
    };
    if !reservation.resize(sent.len()) {
        return Err(protocol::answers_unread());
    }
    let mut response = Response::new(error::body(sent));
    let content_type = match call.codec {
        Codec::Binary => "application/proto",
        Codec::Json => "application/json",
    };
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    if is_gzip {
        response.headers_mut().insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    }
    Ok(response)
}

/// The bytes to send for a message, and whether they are compressed.
fn encode(call: &ConnectCall, message: Bytes) -> Result<(Bytes, bool), Status> {
    let bytes = match call.codec {
        Codec::Binary => message,
        Codec::Json => {
            let mut text = Vec::with_capacity(2 * message.len());
            json::write(&call.messages.output, &message, &mut text)?;
            text.into()
        }
    };
    let is_gzip = call.accepts_gzip && bytes.len() >= MIN_COMPRESSED_BYTES;
    Ok((if is_gzip { compressed(&bytes)? } else { bytes }, is_gzip))
}

/// Compresses with gzip.
pub fn compressed(bytes: &[u8]) -> Result<Bytes, Status> {
    let mut encoder = GzEncoder::new(Vec::with_capacity(bytes.len() / 4), Compression::fast());
    encoder.write_all(bytes).map_err(|_| internal())?;
    Ok(encoder.finish().map_err(|_| internal())?.into())
}
