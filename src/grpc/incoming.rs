//! The body of a request. A call that has one message is worked on once that message is there as a whole: until then it
//! takes nobody's place.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::{HeaderMap, Request};
use http_body::{Body, Frame};
use hyper::body::Incoming;
use tokio::time::{Instant, Sleep, sleep};
use tonic::Status;

use super::ledger::Charge;
use super::{entry, protocol};

/// What stands before a message: a flag and the message's length (gRPC over HTTP/2, "Length-Prefixed-Message").
pub const PREFIX: usize = 5;

/// A request's body, as the services take it.
pub enum Received {
    /// All of it.
    Whole(Bytes),
    /// As it comes.
    Open(Questions),
}

/// The messages of a stream, which ends where the next one does not come in time.
pub struct Questions {
    body: Incoming,
    patience: Duration,
    idle: Pin<Box<Sleep>>,
}

impl Received {
    /// The body of a stream, as it comes, while each message comes within `patience`.
    pub fn open(body: Incoming, patience: Duration) -> Self {
        Self::Open(Questions { body, patience, idle: Box::pin(sleep(patience)) })
    }
}

impl Questions {
    fn poll_frame(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let polled = Pin::new(&mut self.body).poll_frame(cx);
        if polled.is_ready() {
            self.idle.as_mut().reset(Instant::now() + self.patience);
            return polled;
        }
        self.idle.as_mut().poll(cx).map(|()| None)
    }
}

impl Body for Received {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        match &mut *self {
            Self::Whole(bytes) if bytes.is_empty() => Poll::Ready(None),
            Self::Whole(bytes) => Poll::Ready(Some(Ok(Frame::data(std::mem::take(bytes))))),
            Self::Open(questions) => questions.poll_frame(cx),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Whole(bytes) => bytes.is_empty(),
            Self::Open(questions) => questions.body.is_end_stream(),
        }
    }
}

/// Waits for the one message of a call, which has at most `limit` bytes.
pub async fn whole(request: Request<Incoming>, limit: usize, charge: &mut Charge) -> Result<Request<Received>, Status> {
    let (parts, body) = request.into_parts();
    let message = message(body, &parts.headers, limit, charge).await?;
    Ok(Request::from_parts(parts, Received::Whole(message)))
}

/// Nearly every message comes in one frame, which is passed on as it is.
async fn message(mut body: Incoming, headers: &HeaderMap, limit: usize, charge: &mut Charge) -> Result<Bytes, Status> {
    hold(charge, entry::size(headers))?;
    let first = next(&mut body).await?.unwrap_or_default();
    is_complete(&first, headers, limit)?;
    if !body.is_end_stream() {
        hold(charge, first.len())?;
    }
    let Some(mut more) = next(&mut body).await? else { return complete(first, headers, limit) };
    let mut all = BytesMut::from(first);
    loop {
        hold(charge, more.len())?;
        all.extend_from_slice(&more);
        is_complete(&all, headers, limit)?;
        match next(&mut body).await? {
            Some(next) => more = next,
            None => return complete(all.freeze(), headers, limit),
        }
    }
}

fn hold(charge: &mut Charge, bytes: usize) -> Result<(), Status> {
    if charge.hold(bytes) { Ok(()) } else { Err(protocol::overloaded()) }
}

/// The next bytes; none at the end.
async fn next(body: &mut Incoming) -> Result<Option<Bytes>, Status> {
    loop {
        match poll_fn(|cx| Pin::new(&mut *body).poll_frame(cx)).await.transpose() {
            Ok(None) => return Ok(None),
            Ok(Some(frame)) => match frame.into_data() {
                Ok(bytes) if !bytes.is_empty() => return Ok(Some(bytes)),
                _ => {}
            },
            // Nobody is there any more to read this.
            Err(_) => return Err(Status::cancelled("the caller has left")),
        }
    }
}

/// Whether the message is there as a whole. Refuses one that is too large as soon as it says so.
fn is_complete(bytes: &[u8], headers: &HeaderMap, limit: usize) -> Result<bool, Status> {
    let Some((&[flag, ref length @ ..], message)) = bytes.split_first_chunk::<PREFIX>() else { return Ok(false) };
    match flag {
        0 => {}
        1 if is_encoded(headers) => return Err(protocol::compressed()),
        1 => return Err(protocol::message_invalid("it is marked as compressed, and no grpc-encoding says how")),
        _ => return Err(protocol::message_invalid("its first byte must be 0")),
    }
    let length = u32::from_be_bytes(*length) as usize;
    if length > limit {
        return Err(protocol::message_too_large(limit, length));
    }
    if message.len() > length {
        return Err(protocol::message_invalid("there is more than one"));
    }
    Ok(message.len() == length)
}

fn complete(bytes: Bytes, headers: &HeaderMap, limit: usize) -> Result<Bytes, Status> {
    match is_complete(&bytes, headers, limit)? {
        true => Ok(bytes),
        false if bytes.is_empty() => Err(protocol::message_invalid("there is none")),
        false => Err(protocol::message_invalid("it ends before its length")),
    }
}

fn is_encoded(headers: &HeaderMap) -> bool {
    headers.get("grpc-encoding").is_some_and(|encoding| encoding != "identity")
}
