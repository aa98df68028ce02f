//! Connections to a receiver, which are used again: each costs a look-up of the name and
//! handshakes.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use http::Request;
use http::header::RETRY_AFTER;
use http_body_util::{BodyExt, Full, Limited};
use hyper::client::conn::http1::{Builder, SendRequest};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::task::AbortHandle;
use tokio::time::{Instant, timeout};

use crate::receiver::{Reply, TIMEOUT, reply};
use crate::schedule::retry_after;

/// The maximum bytes of the body of a reply, and of its head.
const MAX_BODY_BYTES: usize = 256 << 10;
const MAX_HEAD_BYTES: usize = 32 << 10;
/// The time in which a connection is used: then the addresses of the receiver are looked up again.
const MAX_AGE: Duration = Duration::from_secs(30);
/// The idle connections of a delivery.
const MAX_IDLE: usize = 8;

/// The idle connections to a receiver, those that were used last at the end.
#[derive(Debug, Default)]
pub struct Connections(Mutex<Vec<Connection>>);

/// A connection without a request.
#[derive(Debug)]
pub struct Connection {
    sender: SendRequest<Full<Bytes>>,
    opened: Instant,
    driver: AbortHandle,
}

impl Connections {
    /// An idle connection that the receiver has not closed, as far as that is known.
    pub fn take(&self) -> Option<Connection> {
        let mut idle = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        idle.retain(|one| one.opened.elapsed() < MAX_AGE && !one.sender.is_closed());
        idle.pop()
    }

    /// Keeps a connection, if there is room.
    pub fn keep(&self, connection: Connection) {
        let mut idle = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if idle.len() < MAX_IDLE {
            idle.push(connection);
        }
    }

    /// Closes the idle ones.
    pub fn clear(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }
}

impl Connection {
    /// A connection over a stream; none if it ends at once.
    pub async fn open(
        stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    ) -> Option<Self> {
        let mut builder = Builder::new();
        builder.max_buf_size(MAX_HEAD_BYTES);
        let (sender, connection) = builder.handshake(TokioIo::new(stream)).await.ok()?;
        // It ends with its owner, and at the latest when nobody uses it any more.
        let driver = tokio::spawn(timeout(MAX_AGE + TIMEOUT, connection)).abort_handle();
        Some(Self { sender, opened: Instant::now(), driver })
    }

    /// Sends a request, and reads the status of the reply; none if none came. Returns the
    /// connection as well if it can be used again.
    pub async fn exchange(
        mut self,
        request: Request<Full<Bytes>>,
        now: SystemTime,
    ) -> Option<(Reply, Option<Self>)> {
        self.sender.ready().await.ok()?;
        let response = self.sender.send_request(request).await.ok()?;
        let (parts, body) = response.into_parts();
        let asked = parts.headers.get(RETRY_AFTER).and_then(|value| value.to_str().ok());
        let reply = reply(parts.status.as_u16(), asked.and_then(|text| retry_after(text, now)));
        // The status counts. The rest is read so that the connection can be used again, and for
        // receivers that do not expect to be cut off.
        let read = Limited::new(body, MAX_BODY_BYTES).collect();
        let is_read = matches!(timeout(Duration::from_secs(1), read).await, Ok(Ok(_)));
        Some((reply, is_read.then_some(self)))
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.driver.abort();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;
    use tokio::sync::Semaphore;
    use url::Url;

    use super::*;
    use crate::address::AddressPolicy;
    use crate::receiver::{Message, Receiver, send};
    use crate::secret::Secret;

    const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

    /// A receiver that serves each connection for this many requests, answers them all alike, and
    /// then closes the connection, at once or when it has read one more. Counts the connections.
    async fn receiver(requests: usize, answer: &'static str, reads_one: bool) -> Tested {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = Url::parse(&format!("http://{}/", listener.local_addr().unwrap())).unwrap();
        let count = Arc::new(AtomicUsize::new(0));
        let counted = count.clone();
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                counted.fetch_add(1, Ordering::Relaxed);
                tokio::spawn(async move {
                    let mut buffer = vec![0; 64 << 10];
                    for n in 0..=requests {
                        if n == requests && !reads_one {
                            return;
                        }
                        // The requests of this test arrive whole.
                        if stream.read(&mut buffer).await.unwrap_or(0) == 0 || n == requests {
                            return;
                        }
                        stream.write_all(answer.as_bytes()).await.unwrap();
                    }
                });
            }
        });
        let secret = Secret::parse("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").unwrap();
        Tested { receiver: Receiver::new(url, vec![secret]), count }
    }

    struct Tested {
        receiver: Receiver,
        count: Arc<AtomicUsize>,
    }

    impl Tested {
        async fn send(&self) -> Reply {
            let policy = AddressPolicy::new(vec!["127.0.0.1".parse().unwrap()]);
            let (message, names) =
                (Message { id: "user:1", body: b"{}" }, Arc::new(Semaphore::new(1)));
            send(&policy, &self.receiver, message, SystemTime::now(), &names).await
        }

        fn count(&self) -> usize {
            self.count.load(Ordering::Relaxed)
        }
    }

    #[tokio::test]
    async fn a_connection_is_used_again() {
        let tested = receiver(usize::MAX - 1, OK, false).await;
        for _ in 0..20 {
            assert_eq!(tested.send().await, Reply::Taken(200));
        }
        assert_eq!(tested.count(), 1);
        // Two at once need two, which are both kept.
        for _ in 0..5 {
            let both = tokio::join!(tested.send(), tested.send());
            assert_eq!(both, (Reply::Taken(200), Reply::Taken(200)));
        }
        assert_eq!(tested.count(), 2);
    }

    #[tokio::test]
    async fn a_connection_that_the_receiver_closes_is_replaced() {
        for reads_one in [false, true] {
            let tested = receiver(3, OK, reads_one).await;
            for _ in 0..12 {
                assert_eq!(tested.send().await, Reply::Taken(200));
            }
            assert_eq!(tested.count(), 4, "{reads_one}");
        }
        let close = "HTTP/1.1 503 Busy\r\nConnection: close\r\nContent-Length: 0\r\n\r\n";
        let tested = receiver(1, close, false).await;
        for n in 1..4 {
            assert_eq!(tested.send().await, Reply::Refused(503));
            assert_eq!(tested.count(), n);
        }
    }

    #[tokio::test]
    async fn a_connection_with_an_answer_that_does_not_end_is_closed() {
        let endless = "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nok";
        let tested = receiver(usize::MAX - 1, endless, false).await;
        assert_eq!(tested.send().await, Reply::Taken(200));
        assert_eq!(tested.send().await, Reply::Taken(200));
        assert_eq!(tested.count(), 2);
    }
}
