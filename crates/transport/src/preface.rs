//! Checks the first bytes of a connection: only HTTP/2 is served.

use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use tokio::io::{AsyncRead, AsyncReadExt};

/// The first bytes of every HTTP/2 connection (RFC 9113, section 3.4).
pub const PREFACE: &[u8; 24] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// Checks prefaces, and counts the connections of other protocols.
#[derive(Default)]
pub struct PrefaceCheck(AtomicU64);

impl PrefaceCheck {
    /// Reads the preface. Returns whether it is valid.
    pub async fn is_http2(&self, stream: &mut (impl AsyncRead + Unpin)) -> bool {
        let start = read_start(stream).await;
        if !PREFACE.starts_with(&start) {
            self.log(&start);
        }
        *start == *PREFACE
    }

    /// Logs at powers of two only: a misconfigured client reconnects again and again.
    fn log(&self, start: &[u8]) {
        let count = self.0.fetch_add(1, Ordering::Relaxed) + 1;
        if count.is_power_of_two() {
            tracing::info!(
                count,
                spoken = guessed_protocol(start),
                "closed a connection: expected gRPC over HTTP/2"
            );
        }
    }
}

/// Reads the first bytes of a connection: the preface, or up to the first read that differs.
pub async fn read_start(stream: &mut (impl AsyncRead + Unpin)) -> Bytes {
    let mut start = [0; PREFACE.len()];
    let mut length = 0;
    while length < PREFACE.len() && start[..length] == PREFACE[..length] {
        match stream.read(&mut start[length..]).await {
            Ok(count) if count > 0 => length += count,
            _ => break,
        }
    }
    if start == *PREFACE {
        return Bytes::from_static(PREFACE);
    }
    Bytes::copy_from_slice(&start[..length])
}

/// The protocol that the first bytes of a connection suggest.
fn guessed_protocol(start: &[u8]) -> &'static str {
    // A handshake record of TLS (RFC 8446, section 5.1).
    if start.starts_with(&[22, 3]) {
        return "TLS";
    }
    let is_method = |word: &[u8]| !word.is_empty() && word.iter().all(u8::is_ascii_uppercase);
    match start.split(|byte| *byte == b' ').collect::<Vec<_>>()[..] {
        [method, path, ..] if is_method(method) && path.starts_with(b"/") => "HTTP/1",
        _ => "something else",
    }
}

#[cfg(test)]
mod tests {
    use super::guessed_protocol;

    #[test]
    fn protocols_are_guessed() {
        assert_eq!(guessed_protocol(b"GET / HTTP/1.1\r\nHost: x\r\n"), "HTTP/1");
        assert_eq!(guessed_protocol(&[22, 3, 1, 1, 95, 1]), "TLS");
        assert_eq!(guessed_protocol(b"SSH-2.0-OpenSSH_9\r\n"), "something else");
    }
}
