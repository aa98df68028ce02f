//! The check of a connection's first bytes: only connections that speak HTTP/2 go on.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::net::TcpStream;

/// The first bytes of every HTTP/2 connection (RFC 9113, section 3.4).
const PREFACE: &[u8; 24] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// The longest pause between two looks at a connection whose preface comes in parts.
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// The number of connections of another protocol.
#[derive(Default)]
pub struct PrefaceCheck(AtomicU64);

impl PrefaceCheck {
    /// Waits for the preface, without taking it.
    pub async fn is_http2(&self, stream: &TcpStream) -> bool {
        let mut start = [0; PREFACE.len()];
        let mut pause = Duration::from_millis(20);
        loop {
            match stream.peek(&mut start).await {
                Ok(length) if length > 0 && start[..length] == PREFACE[..length] => {
                    if length == PREFACE.len() {
                        return true;
                    }
                    // The bytes stay readable: without a pause this would spin.
                    tokio::time::sleep(pause).await;
                    pause = (2 * pause).min(LONGEST_PAUSE);
                }
                Ok(length) if length > 0 => {
                    self.log(&start[..length]);
                    return false;
                }
                _ => return false,
            }
        }
    }

    /// A client that is set up wrongly reconnects again and again: each line counts twice as many
    /// as the one before.
    fn log(&self, start: &[u8]) {
        let count = self.0.fetch_add(1, Ordering::Relaxed) + 1;
        if count.is_power_of_two() {
            tracing::info!(
                count,
                spoken = spoken(start),
                "a connection is closed: gRPC over plain HTTP/2 is expected"
            );
        }
    }
}

/// The protocol that the first bytes of a connection suggest.
fn spoken(start: &[u8]) -> &'static str {
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
    use super::spoken;

    #[test]
    fn what_strangers_speak() {
        assert_eq!(spoken(b"GET / HTTP/1.1\r\nHost: x\r\n"), "HTTP/1");
        assert_eq!(spoken(&[22, 3, 1, 1, 95, 1]), "TLS");
        assert_eq!(spoken(b"SSH-2.0-OpenSSH_9\r\n"), "something else");
    }
}
