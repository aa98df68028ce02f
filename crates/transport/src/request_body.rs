//! The body of a request. A call with one message starts once its whole message has arrived, and
//! takes a permit only then.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::header::EXPECT;
use http::{HeaderMap, Request};
use http_body::{Body, Frame};
use hyper::body::Incoming;
use tokio::time::{Instant, Sleep, sleep};
use tonic::Status;

use super::request_check;
use crate::budgets::state::Reservation;
use crate::gzip;
use crate::protocol;

/// The bytes in front of a message: a flag and the message's length (gRPC over HTTP/2,
/// "Length-Prefixed-Message").
pub const PREFIX: usize = 5;

/// Writes the length of a message into the prefix in front of it.
pub fn set_length(framed: &mut [u8]) {
    let length = (framed.len() - PREFIX) as u32;
    framed[1..PREFIX].copy_from_slice(&length.to_be_bytes());
}

/// The header that names how messages are compressed.
pub const ENCODING: &str = "grpc-encoding";

/// The limits on the message of a refused call that is read and dropped.
const MAX_DISCARDED_BYTES: usize = 1 << 20;
const DISCARD_TIMEOUT: Duration = Duration::from_millis(100);

/// The body of a request, for the services.
pub enum RequestBody {
    /// The whole body.
    Complete(Bytes),
    /// The body as it arrives.
    Streaming(MessageStream),
    /// The messages of lines.
    Lines(Pin<Box<dyn Body<Data = Bytes, Error = hyper::Error> + Send>>),
}

/// The messages of a stream. It ends if the next one is late.
pub struct MessageStream {
    body: Incoming,
    send_timeout: Duration,
    idle: Pin<Box<Sleep>>,
    /// Whether the service waits for more. Its own working time does not count.
    is_waiting: bool,
    /// Whether it ended because the next message was late.
    is_late: bool,
}

impl RequestBody {
    /// Returns a body whose messages must each arrive within `send_timeout`.
    pub fn streaming(body: Incoming, send_timeout: Duration) -> Self {
        Self::Streaming(MessageStream::new(body, send_timeout))
    }

    /// Returns a body of the messages that `lines` makes of the bytes, which must arrive within
    /// `send_timeout` each time.
    pub fn with_lines<B>(
        body: Incoming,
        send_timeout: Duration,
        lines: impl FnOnce(MessageStream) -> B,
    ) -> Self
    where
        B: Body<Data = Bytes, Error = hyper::Error> + Send + 'static,
    {
        Self::Lines(Box::pin(lines(MessageStream::new(body, send_timeout))))
    }
}

impl MessageStream {
    fn new(body: Incoming, send_timeout: Duration) -> Self {
        let idle = Box::pin(sleep(send_timeout));
        Self { body, send_timeout, idle, is_waiting: false, is_late: false }
    }

    /// Whether the stream ended because the next message was late.
    pub const fn is_late(&self) -> bool {
        self.is_late
    }

    /// Waits for the next frame; none at the end.
    pub fn poll_frame(
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
        self.idle.as_mut().poll(cx).map(|()| {
            self.is_late = true;
            None
        })
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
            Self::Complete(bytes) if bytes.is_empty() => Poll::Ready(None),
            Self::Complete(bytes) => Poll::Ready(Some(Ok(Frame::data(std::mem::take(bytes))))),
            Self::Streaming(stream) => stream.poll_frame(cx),
            Self::Lines(lines) => lines.as_mut().poll_frame(cx),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Complete(bytes) => bytes.is_empty(),
            Self::Streaming(stream) => stream.body.is_end_stream(),
            Self::Lines(lines) => lines.is_end_stream(),
        }
    }
}

/// Waits for the message of a call, of at most `limit` bytes.
pub async fn read_message<B: Body<Data = Bytes> + Unpin>(
    request: Request<B>,
    limit: usize,
    reservation: &mut Reservation,
) -> Result<Request<RequestBody>, Status> {
    let (mut parts, body) = request.into_parts();
    let sent = collect_message(body, &parts.headers, limit, reservation).await?;
    let message = gzip::decompressed(sent, limit, reservation).await?;
    if gzip::is_gzip(&parts.headers) {
        parts.headers.remove(ENCODING);
    }
    Ok(Request::from_parts(parts, RequestBody::Complete(message)))
}

/// Reads and drops the message of a refused call, within limits. Data for a closed stream, a
/// thousand times, makes HTTP/2 end the connection; HTTP/1.1 ends it for unread data. A client
/// that waits for the permission to send gets the refusal instead.
pub async fn discard(request: Request<Incoming>) {
    let (parts, body) = request.into_parts();
    discard_rest(&parts.headers, body).await;
}

/// Reads and drops the rest of a refused message, as [`discard`] does.
pub async fn discard_rest(headers: &HeaderMap, mut body: Incoming) {
    if headers.contains_key(EXPECT) {
        return;
    }
    let drain = async {
        let mut left = MAX_DISCARDED_BYTES;
        while let Ok(Some(bytes)) = next_chunk(&mut body).await {
            match left.checked_sub(bytes.len()) {
                Some(rest) => left = rest,
                None => return,
            }
        }
    };
    let _ = tokio::time::timeout(DISCARD_TIMEOUT, drain).await;
}

/// Joins the frames of a message. Nearly every message has one frame, which is not copied.
async fn collect_message(
    mut body: impl Body<Data = Bytes> + Unpin,
    headers: &HeaderMap,
    limit: usize,
    reservation: &mut Reservation,
) -> Result<Bytes, Status> {
    reserve(reservation, request_check::size(headers))?;
    let first = next_chunk(&mut body).await?.unwrap_or_default();
    is_complete(&first, headers, limit)?;
    if !body.is_end_stream() {
        reserve(reservation, first.len())?;
    }

    let Some(mut more) = next_chunk(&mut body).await? else {
        return complete(first, headers, limit);
    };
    let mut all = BytesMut::from(first);
    loop {
        reserve(reservation, more.len())?;
        all.extend_from_slice(&more);
        is_complete(&all, headers, limit)?;
        match next_chunk(&mut body).await? {
            Some(next) => more = next,
            None => return complete(all.freeze(), headers, limit),
        }
    }
}

/// Reserves bytes for a call.
pub fn reserve(reservation: &mut Reservation, bytes: usize) -> Result<(), Status> {
    if reservation.reserve(bytes) { Ok(()) } else { Err(protocol::overloaded()) }
}

/// Returns the next bytes; none at the end.
pub async fn next_chunk(
    body: &mut (impl Body<Data = Bytes> + Unpin),
) -> Result<Option<Bytes>, Status> {
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

/// Whether the message is complete. Rejects a large one as soon as its length is known.
fn is_complete(bytes: &[u8], headers: &HeaderMap, limit: usize) -> Result<bool, Status> {
    let Some((&[flag, ref length @ ..], message)) = bytes.split_first_chunk::<PREFIX>() else {
        return Ok(false);
    };
    match flag {
        0 => {}
        1 if gzip::is_gzip(headers) => {}
        1 if is_encoded(headers) => return Err(protocol::compressed()),
        1 => {
            return Err(protocol::message_invalid(
                "it is marked as compressed, but has no grpc-encoding",
            ));
        }
        _ => return Err(protocol::message_invalid("its first byte must be 0")),
    }

    let length = u32::from_be_bytes(*length) as usize;
    if length > limit {
        return Err(protocol::message_too_large(limit, length));
    }

    if message.len() > length {
        return Err(protocol::message_invalid("the call has more than one"));
    }
    Ok(message.len() == length)
}

fn complete(bytes: Bytes, headers: &HeaderMap, limit: usize) -> Result<Bytes, Status> {
    match is_complete(&bytes, headers, limit)? {
        true => Ok(bytes),
        false if bytes.is_empty() => Err(protocol::message_invalid("the call has none")),
        false => Err(protocol::message_invalid("it is shorter than its declared length")),
    }
}

fn is_encoded(headers: &HeaderMap) -> bool {
    headers.get(ENCODING).is_some_and(|encoding| encoding != "identity")
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::sync::Arc;

    use futures_util::FutureExt;

    use super::*;
    use crate::budgets::state::{ConnectionState, ServerUsage};
    use polynym_access::Caller;

    const LIMIT: usize = 8 << 20;

    /// A message whose last frames never arrive.
    struct StalledBody(Vec<Bytes>);

    impl Body for StalledBody {
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

    fn frames(sizes: &[usize]) -> StalledBody {
        let mut frames: Vec<_> = sizes.iter().map(|size| Bytes::from(vec![0; *size])).collect();
        // The largest message that a call may send.
        let first = [&[0][..], &(LIMIT as u32).to_be_bytes(), &vec![0; sizes[0] - PREFIX]].concat();
        frames[0] = first.into();
        frames.reverse();
        StalledBody(frames)
    }

    fn connection() -> Arc<ConnectionState> {
        let connection = ConnectionState::new(Arc::new(ServerUsage::default()));
        connection.assign_to(&Caller::anonymous());
        Arc::new(connection)
    }

    fn headers() -> HeaderMap {
        let value = http::HeaderValue::from_bytes(&[b'x'; 1_000]).unwrap();
        HeaderMap::from_iter([(http::HeaderName::from_static("more"), value)])
    }

    /// The bytes reserved for an incomplete message.
    fn reserved(body: StalledBody) -> usize {
        let connection = connection();
        let mut reservation = Reservation::for_call(&connection);
        let headers = headers();
        assert!(collect_message(body, &headers, LIMIT, &mut reservation).now_or_never().is_none());
        reservation.bytes()
    }

    #[test]
    fn headers_and_arrived_frames_are_reserved() {
        let headers = request_check::size(&headers());
        assert!(headers > 1_000);
        assert_eq!(reserved(StalledBody(Vec::new())), headers);
        assert_eq!(reserved(frames(&[16_384])), headers + 16_384, "the first frame");
        assert_eq!(reserved(frames(&[16_384, 100, 7])), headers + 16_491);
    }

    #[test]
    fn a_message_beyond_the_budget_is_refused() {
        let connection = connection();
        let headers = headers();
        let mut reservations: Vec<_> = (0..5).map(|_| Reservation::for_call(&connection)).collect();
        let mut outcomes = reservations.iter_mut().map(|reservation| {
            collect_message(frames(&[LIMIT]), &headers, LIMIT, reservation).now_or_never()
        });
        assert!(outcomes.by_ref().take(1).all(|outcome| outcome.is_none()));
        let refused = outcomes.next().flatten().expect("an answer").expect_err("16 MiB and more");
        assert_eq!(refused.code(), tonic::Code::ResourceExhausted);
    }
}
