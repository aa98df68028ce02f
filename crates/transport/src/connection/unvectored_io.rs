//! A connection whose small writes are joined.
//!
//! With vectored writes, the HTTP/2 library writes each message of 256 bytes or more by itself: a
//! system call for every answer. Without them it copies messages below 1 KiB together, and the
//! answers to many calls leave in one write.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};

use crate::preface::PREFACE;

pub struct UnvectoredIo<S> {
    stream: TokioIo<S>,
    /// The part of the preface that the HTTP/2 library has not read yet.
    preface: &'static [u8],
}

impl<S> UnvectoredIo<S> {
    /// Wraps a connection whose preface was read: the HTTP/2 library reads it again.
    pub fn after_preface(stream: S) -> Self {
        Self { stream: TokioIo::new(stream), preface: PREFACE }
    }
}

impl<S: AsyncRead + Unpin> Read for UnvectoredIo<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        mut buffer: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        if self.preface.is_empty() {
            return Pin::new(&mut self.stream).poll_read(cx, buffer);
        }
        let (now, later) = self.preface.split_at(self.preface.len().min(buffer.remaining()));
        buffer.put_slice(now);
        self.preface = later;
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> Write for UnvectoredIo<S> {
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
        false
    }
}
