//! A connection of HTTP/1.1, whose client must send the headers of a request in time.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::{Buf, Bytes};
use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::{Instant, sleep};

use crate::budgets::state::ConnectionState;

/// The time limit of the headers of a request, from their first byte.
const HEADER_TIMEOUT: Duration = Duration::from_secs(10);
const CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// Measures how long the headers of a request take. Between requests nothing is measured: the
/// limit for idle connections counts.
pub struct HeaderTimer {
    connection: Arc<ConnectionState>,
    start: Instant,
    /// The milliseconds from `start` to the first byte of the present headers, plus one; 0 if none
    /// has arrived.
    began: AtomicU64,
}

impl HeaderTimer {
    pub fn new(connection: Arc<ConnectionState>) -> Arc<Self> {
        Arc::new(Self { connection, start: Instant::now(), began: AtomicU64::new(0) })
    }

    /// Notes that bytes arrived. They are of headers, unless a call is in flight.
    fn note_bytes(&self) {
        if self.began.load(Ordering::Relaxed) == 0 && !self.connection.activity.is_used() {
            self.began.store(self.elapsed() + 1, Ordering::Relaxed);
        }
    }

    /// Notes that headers are complete.
    pub fn note_request(&self) {
        self.began.store(0, Ordering::Relaxed);
    }

    /// Waits until headers are late.
    pub async fn late(&self) {
        loop {
            sleep(CHECK_INTERVAL).await;
            let began = self.began.load(Ordering::Relaxed);
            let limit = began + HEADER_TIMEOUT.as_millis() as u64;
            if began > 0 && self.elapsed() >= limit && !self.connection.activity.is_used() {
                return;
            }
        }
    }

    fn elapsed(&self) -> u64 {
        self.start.elapsed().as_millis() as u64
    }
}

/// A connection, some bytes of which were read before.
pub struct Http1Io<S> {
    stream: TokioIo<S>,
    /// The bytes that the HTTP library has not read yet.
    first: Bytes,
    timer: Arc<HeaderTimer>,
}

impl<S> Http1Io<S> {
    /// Wraps a connection whose `first` bytes were read.
    pub fn new(stream: S, first: Bytes, timer: Arc<HeaderTimer>) -> Self {
        Self { stream: TokioIo::new(stream), first, timer }
    }
}

impl<S: AsyncRead + Unpin> Read for Http1Io<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        mut buffer: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        if self.first.is_empty() {
            ready!(Pin::new(&mut self.stream).poll_read(cx, buffer))?;
        } else {
            let length = self.first.len().min(buffer.remaining());
            buffer.put_slice(&self.first[..length]);
            self.first.advance(length);
        }
        self.timer.note_bytes();
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> Write for Http1Io<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffers: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, buffers)
    }
}
