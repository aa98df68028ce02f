//! The lines of a request as frames of gRPC. The memory for a line is bounded: longer lines are
//! skipped and rejected.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes, BytesMut};
use http_body::{Body, Frame};

use super::exchange::Exchange;
use super::{LineReader, Parsed, RequestLine};
use crate::protocol;
use crate::request_body::{MessageStream, PREFIX, set_length};

/// The maximum bytes of a line.
pub const MAX_LINE_BYTES: usize = 4 << 20;
/// The bytes of the lines that are parsed before other tasks run.
const STEP_BYTES: usize = 16 << 10;

/// The messages of the lines of a body.
pub struct LineStream {
    body: MessageStream,
    reader: Box<dyn LineReader>,
    exchange: Arc<Exchange>,
    /// The bytes that are not parsed yet.
    buffer: BytesMut,
    /// The bytes of the buffer that have no line break.
    searched: usize,
    /// The skipped bytes of a line that is too long.
    passed_over: usize,
    /// The number of the last line.
    number: i64,
    has_begun: bool,
    has_ended: bool,
}

impl LineStream {
    pub fn new(body: MessageStream, reader: Box<dyn LineReader>, exchange: Arc<Exchange>) -> Self {
        Self {
            body,
            reader,
            exchange,
            buffer: BytesMut::new(),
            searched: 0,
            passed_over: 0,
            number: 0,
            has_begun: false,
            has_ended: false,
        }
    }

    /// The frames of the next lines; none if there are none yet.
    fn frames(&mut self, cx: &Context<'_>) -> Vec<u8> {
        let (mut frames, mut parsed) = (Vec::new(), 0);
        while parsed < STEP_BYTES && self.exchange.poll_room(cx).is_ready() {
            let Some(line) = self.next_line() else { break };
            parsed += line.len();
            self.parse(&line, &mut frames);
        }
        frames
    }

    /// Takes the next line, with its line break if it has one.
    fn next_line(&mut self) -> Option<BytesMut> {
        let unsearched = self.buffer.get(self.searched..).unwrap_or_default();
        match unsearched.iter().position(|byte| *byte == b'\n') {
            Some(at) => {
                let end = self.searched + at + 1;
                self.searched = 0;
                Some(self.buffer.split_to(end))
            }
            None if self.has_ended && self.passed_over + self.buffer.len() > 0 => {
                self.searched = 0;
                Some(self.buffer.split())
            }
            None => {
                self.searched = self.buffer.len();
                if self.searched > MAX_LINE_BYTES {
                    self.passed_over += self.searched;
                    self.buffer.advance(self.searched);
                    self.searched = 0;
                }
                None
            }
        }
    }

    fn parse(&mut self, line: &[u8], frames: &mut Vec<u8>) {
        self.number += 1;
        let length = std::mem::take(&mut self.passed_over) + line.len();
        let line = match length > MAX_LINE_BYTES {
            true => RequestLine::TooLong(length),
            false => RequestLine::Whole(line.trim_ascii_end()),
        };
        match self.reader.parse(self.number, line) {
            Parsed::Message(message) => add_frame(&message, frames),
            Parsed::Nothing => {}
            Parsed::Rejected(text) => self.exchange.reject(&text),
        }
    }
}

fn add_frame(message: &[u8], frames: &mut Vec<u8>) {
    let start = frames.len();
    frames.extend_from_slice(&[0; PREFIX]);
    frames.extend_from_slice(message);
    set_length(&mut frames[start..]);
}

impl Body for LineStream {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let stream = &mut *self;
        if !std::mem::replace(&mut stream.has_begun, true) {
            let mut first = Vec::new();
            add_frame(&stream.reader.first(), &mut first);
            return Poll::Ready(Some(Ok(Frame::data(first.into()))));
        }
        loop {
            let frames = stream.frames(cx);
            if !frames.is_empty() {
                return Poll::Ready(Some(Ok(Frame::data(frames.into()))));
            }
            ready!(stream.exchange.poll_room(cx));
            if stream.buffer.len() > stream.searched {
                // Lines without a message: let other tasks run.
                cx.waker().wake_by_ref();
                return Poll::Pending;
            }
            if stream.has_ended {
                return Poll::Ready(None);
            }
            match ready!(stream.body.poll_frame(cx)?) {
                Some(frame) => stream.buffer.extend(frame.into_data().ok()),
                None => {
                    stream.has_ended = true;
                    stream.searched = 0;
                    if stream.body.is_late() {
                        stream.buffer.clear();
                        stream.passed_over = 0;
                        stream.exchange.fail(protocol::lines_late());
                    }
                }
            }
        }
    }
}
