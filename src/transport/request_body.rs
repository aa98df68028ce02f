//! The body of a request. A call that has one message is worked on once that message is there as a
//! whole: until then it takes nobody's place.

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

use super::memory_budget::Reservation;
use super::{protocol, request_check};

/// The bytes in front of a message: a flag and the message's length (gRPC over HTTP/2,
/// "Length-Prefixed-Message").
pub const PREFIX: usize = 5;

/// The bytes of a refused call that are dropped as they come, and the time for that.
const DISCARDED: usize = 1 << 20;
const DISCARD_TIME: Duration = Duration::from_millis(100);

/// A request's body, as the services take it.
pub enum RequestBody {
    /// All of it.
    Whole(Bytes),
    /// As it comes.
    Open(MessageStream),
}

/// The messages of a stream, which ends where the next one does not come in time.
pub struct MessageStream {
    body: Incoming,
    send_timeout: Duration,
    idle: Pin<Box<Sleep>>,
    /// Whether the service waits for more. The time that it takes for itself does not count.
    is_waiting: bool,
}

impl RequestBody {
    /// The body of a stream, as it comes, while each message comes within `send_timeout`.
    pub fn open(body: Incoming, send_timeout: Duration) -> Self {
        let idle = Box::pin(sleep(send_timeout));
        Self::Open(MessageStream { body, send_timeout, idle, is_waiting: false })
    }
}

impl MessageStream {
    fn poll_frame(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let polled = Pin::new(&mut self.body).poll_frame(cx);
        if polled.is_ready() {
            self.is_waiting = false;
            return polled;
        }
        if !std::mem::replace(&mut self.is_waiting, true) {
            self.idle.as_mut().reset(Instant::now() + self.send_timeout);
        }
        self.idle.as_mut().poll(cx).map(|()| None)
    }
}

impl Body for RequestBody {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
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
pub async fn read_message(
    request: Request<Incoming>,
    limit: usize,
    reservation: &mut Reservation,
) -> Result<Request<RequestBody>, Status> {
    let (parts, body) = request.into_parts();
    let message = message(body, &parts.headers, limit, reservation).await?;
    Ok(Request::from_parts(parts, RequestBody::Whole(message)))
}

/// Drops the message of a refused call as it comes, within bounds. What came after the answer would
/// meet a closed stream, and HTTP/2 ends a connection on which that happens a thousand times.
pub async fn discard(mut body: Incoming) {
    let all = async {
        let mut left = DISCARDED;
        while let Ok(Some(bytes)) = next(&mut body).await {
            match left.checked_sub(bytes.len()) {
                Some(rest) => left = rest,
                None => return,
            }
        }
    };
    // A refusal does not wait for a message that is late.
    let _ = tokio::time::timeout(DISCARD_TIME, all).await;
}

/// Nearly every message comes in one frame, which is passed on as it is.
async fn message(
    mut body: impl Body<Data = Bytes> + Unpin,
    headers: &HeaderMap,
    limit: usize,
    reservation: &mut Reservation,
) -> Result<Bytes, Status> {
    hold(reservation, request_check::size(headers))?;
    let first = next(&mut body).await?.unwrap_or_default();
    is_complete(&first, headers, limit)?;
    if !body.is_end_stream() {
        hold(reservation, first.len())?;
    }

    let Some(mut more) = next(&mut body).await? else { return complete(first, headers, limit) };
    let mut all = BytesMut::from(first);
    loop {
        hold(reservation, more.len())?;
        all.extend_from_slice(&more);
        is_complete(&all, headers, limit)?;
        match next(&mut body).await? {
            Some(next) => more = next,
            None => return complete(all.freeze(), headers, limit),
        }
    }
}

fn hold(reservation: &mut Reservation, bytes: usize) -> Result<(), Status> {
    if reservation.hold(bytes) { Ok(()) } else { Err(protocol::overloaded()) }
}

/// The next bytes; none at the end.
async fn next(body: &mut (impl Body<Data = Bytes> + Unpin)) -> Result<Option<Bytes>, Status> {
    loop {
        match poll_fn(|cx| Pin::new(&mut *body).poll_frame(cx)).await.transpose() {
            Ok(None) => return Ok(None),
            Ok(Some(frame)) => match frame.into_data() {
                Ok(bytes) if !bytes.is_empty() => return Ok(Some(bytes)),
                _ => {}
            },
            // The caller has left: this status is not read.
            Err(_) => return Err(Status::cancelled("the caller has left")),
        }
    }
}

/// Whether the message is complete. Refuses one that is too large as soon as its length is known.
fn is_complete(bytes: &[u8], headers: &HeaderMap, limit: usize) -> Result<bool, Status> {
    let Some((&[flag, ref length @ ..], message)) = bytes.split_first_chunk::<PREFIX>() else {
        return Ok(false);
    };
    match flag {
        0 => {}
        1 if is_encoded(headers) => return Err(protocol::compressed()),
        1 => {
            return Err(protocol::message_invalid(
                "it is marked as compressed, and no grpc-encoding says how",
            ));
        }
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

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::sync::Arc;

    use futures_util::FutureExt;

    use super::super::memory_budget::{ConnectionBudget, GlobalBudget};
    use super::*;

    const LIMIT: usize = 8 << 20;

    /// A message of which some frames came, and the rest does not.
    struct Begun(Vec<Bytes>);

    impl Body for Begun {
        type Data = Bytes;
        type Error = Infallible;

        fn poll_frame(
            mut self: Pin<&mut Self>,
            _: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
            match self.0.pop() {
                Some(bytes) => Poll::Ready(Some(Ok(Frame::data(bytes)))),
                None => Poll::Pending,
            }
        }
    }

    fn frames(sizes: &[usize]) -> Begun {
        let mut frames: Vec<_> = sizes.iter().map(|size| Bytes::from(vec![0; *size])).collect();
        // A message that is as long as a call may send.
        let first = [&[0][..], &(LIMIT as u32).to_be_bytes(), &vec![0; sizes[0] - PREFIX]].concat();
        frames[0] = first.into();
        frames.reverse();
        Begun(frames)
    }

    fn headers() -> HeaderMap {
        let value = http::HeaderValue::from_bytes(&[b'x'; 1_000]).unwrap();
        HeaderMap::from_iter([(http::HeaderName::from_static("more"), value)])
    }

    /// The bytes held for a message that is incomplete.
    fn held(body: Begun) -> usize {
        let budget = Arc::new(ConnectionBudget::new(Arc::new(GlobalBudget::default())));
        let mut reservation = Reservation::call(&budget);
        let headers = headers();
        assert!(message(body, &headers, LIMIT, &mut reservation).now_or_never().is_none());
        reservation.bytes()
    }

    #[test]
    fn headers_and_all_that_came_of_a_message_are_charged() {
        let headers = request_check::size(&headers());
        assert!(headers > 1_000);
        assert_eq!(held(Begun(Vec::new())), headers);
        assert_eq!(held(frames(&[16_384])), headers + 16_384, "the first frame");
        assert_eq!(held(frames(&[16_384, 100, 7])), headers + 16_491);
    }

    #[test]
    fn what_is_too_much_to_hold_is_refused() {
        let budget = Arc::new(ConnectionBudget::new(Arc::new(GlobalBudget::default())));
        let headers = headers();
        let mut reservations: Vec<_> = (0..5).map(|_| Reservation::call(&budget)).collect();
        let mut outcomes = reservations.iter_mut().map(|reservation| {
            message(frames(&[LIMIT]), &headers, LIMIT, reservation).now_or_never()
        });
        assert!(outcomes.by_ref().take(1).all(|outcome| outcome.is_none()));
        let refused = outcomes.next().flatten().expect("an answer").expect_err("16 MiB and more");
        assert_eq!(refused.code(), tonic::Code::ResourceExhausted);
    }
}
