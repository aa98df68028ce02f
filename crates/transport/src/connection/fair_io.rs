//! A connection that leaves others their turn: it reads for the time of its slice, and one of
//! HTTP/2 ends if its client sends frames in place of calls.
//!
//! The HTTP libraries read until the socket is empty, which it never is while a client floods it.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::task::{Context, Poll, ready};
use std::time::Instant;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::frame_credit::FrameCredit;

/// GOAWAY with the code ENHANCE_YOUR_CALM (RFC 9113, sections 6.8 and 7). It names the last stream
/// of all: which ones were answered is not known here.
const CALM_DOWN: [u8; 17] = [0, 0, 8, 7, 0, 0, 0, 0, 0, 0x7f, 0xff, 0xff, 0xff, 0, 0, 0, 11];

/// The time in which a connection may read before others have their turn.
pub struct ReadSlice {
    start: Instant,
    /// The nanoseconds from `start` to the end of the slice.
    end: AtomicU64,
    /// Whether it has read in this slice: one read is always allowed.
    has_read: AtomicBool,
}

impl Default for ReadSlice {
    /// A slice that is over after one read.
    fn default() -> Self {
        Self { start: Instant::now(), end: AtomicU64::new(0), has_read: AtomicBool::new(false) }
    }
}

impl ReadSlice {
    /// Begins a slice, which lasts until `end`.
    pub fn begin(&self, end: Instant) {
        self.end.store(self.nanos(end), Relaxed);
        self.has_read.store(false, Relaxed);
    }

    fn nanos(&self, time: Instant) -> u64 {
        u64::try_from(time.saturating_duration_since(self.start).as_nanos()).unwrap_or(u64::MAX)
    }

    fn may_read(&self) -> bool {
        !self.has_read.load(Relaxed) || self.nanos(Instant::now()) < self.end.load(Relaxed)
    }
}

/// The stream of a connection.
pub struct FairIo<S> {
    stream: S,
    slice: Arc<ReadSlice>,
    /// The frames beside calls that an HTTP/2 client may still send.
    credit: Option<FrameCredit>,
}

impl<S> FairIo<S> {
    /// A connection of HTTP/1.1.
    pub const fn http1(stream: S, slice: Arc<ReadSlice>) -> Self {
        Self { stream, slice, credit: None }
    }

    /// A connection of HTTP/2 whose preface was read.
    pub fn http2(stream: S, slice: Arc<ReadSlice>) -> Self {
        Self { stream, slice, credit: Some(FrameCredit::new()) }
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncRead for FairIo<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if !this.slice.may_read() {
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        let before = buffer.filled().len();
        ready!(Pin::new(&mut this.stream).poll_read(cx, buffer))?;
        this.slice.has_read.store(true, Relaxed);
        let Some(credit) = &mut this.credit else { return Poll::Ready(Ok(())) };
        if credit.receive(&buffer.filled()[before..]).is_ok() {
            return Poll::Ready(Ok(()));
        }
        tracing::debug!("closed a connection: its client sends frames in place of calls");
        if credit.may_end() {
            // The connection ends whether or not the client learns why.
            let _ = Pin::new(&mut this.stream).poll_write(cx, &CALM_DOWN);
        }
        Poll::Ready(Err(io::Error::other("the client sends frames in place of calls")))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for FairIo<S> {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let count = ready!(Pin::new(&mut this.stream).poll_write(cx, bytes))?;
        if let Some(credit) = &mut this.credit {
            credit.send(&bytes[..count]);
        }
        Poll::Ready(Ok(count))
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }

    /// Frames are found in writes of one buffer.
    fn is_write_vectored(&self) -> bool {
        self.credit.is_none() && self.stream.is_write_vectored()
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffers: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        if self.credit.is_some() {
            let first = buffers.iter().find(|buffer| !buffer.is_empty());
            return self.poll_write(cx, first.map_or(&[], |buffer| buffer));
        }
        Pin::new(&mut self.stream).poll_write_vectored(cx, buffers)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;

    #[tokio::test]
    async fn a_flooded_connection_reads_once_after_its_slice() {
        let (mut client, server) = tokio::io::duplex(1 << 20);
        client.write_all(&[0; 1 << 16]).await.unwrap();
        let slice = Arc::new(ReadSlice::default());
        let mut io = FairIo::http1(server, slice.clone());
        let mut buffer = [0; 1_024];
        slice.begin(Instant::now());
        assert_eq!(io.read(&mut buffer).await.unwrap(), 1_024);
        assert!(futures_util::poll!(Box::pin(io.read(&mut buffer))).is_pending());
        slice.begin(Instant::now() + Duration::from_secs(60));
        for _ in 0..8 {
            assert_eq!(io.read(&mut buffer).await.unwrap(), 1_024);
        }
    }

    #[tokio::test]
    async fn a_client_learns_why_its_connection_ends() {
        let (mut client, server) = tokio::io::duplex(1 << 20);
        let ping = [0, 0, 8, 6, 0, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8];
        client.write_all(&ping.repeat(20_000)).await.unwrap();
        let mut io = FairIo::http2(server, Arc::default());
        io.slice.begin(Instant::now() + Duration::from_secs(60));
        let mut buffer = [0; 1_024];
        while io.read(&mut buffer).await.is_ok() {}
        drop(io);
        let mut answer = Vec::new();
        client.read_to_end(&mut answer).await.unwrap();
        assert_eq!(answer, CALM_DOWN);
    }
}
