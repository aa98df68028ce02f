//! Requests to receivers, at addresses that the policy permits, bounded in time and bytes.
//! Redirects are not followed.

use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, LazyLock};
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use http::header::{CONTENT_TYPE, HOST, USER_AGENT};
use http::{Method, Request};
use http_body_util::Full;
use tokio::net::{TcpStream, lookup_host};
use tokio::sync::Semaphore;
use tokio::time::{Instant, timeout, timeout_at};
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::ServerName;
use tokio_rustls::rustls::{ClientConfig, DEFAULT_VERSIONS, RootCertStore};
use url::{Host, Url};

use crate::address::AddressPolicy;
use crate::connection::{Connection, Connections};
use crate::secret::{Secret, signatures};

/// The time of an attempt, and that of its connection.
pub const TIMEOUT: Duration = Duration::from_secs(10);
/// The time of a TLS handshake.
const TLS_TIME: Duration = Duration::from_secs(5);
/// The addresses of a name that an attempt tries.
const MAX_ADDRESSES: usize = 4;
/// Names that are looked up at once. A resolver that hangs holds a thread for each.
const MAX_RESOLVING: usize = 64;

static RESOLVING: LazyLock<Arc<Semaphore>> =
    LazyLock::new(|| Arc::new(Semaphore::new(MAX_RESOLVING)));

/// Connects with the authorities of the system; none if they cannot be used.
static TLS: LazyLock<Option<TlsConnector>> = LazyLock::new(|| {
    let mut roots = RootCertStore::empty();
    let found = rustls_native_certs::load_native_certs();
    for error in &found.errors {
        tracing::warn!(%error, "authorities of the system cannot be read");
    }
    let _ = roots.add_parsable_certificates(found.certs);
    let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()));
    let builder = builder.with_protocol_versions(DEFAULT_VERSIONS).ok()?;
    let config = builder.with_root_certificates(roots).with_no_client_auth();
    Some(TlsConnector::from(Arc::new(config)))
});

/// The result of an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reply {
    /// The receiver has taken the message.
    Taken(u16),
    /// It asks for later messages (429 or 503 with `Retry-After`).
    Later(u16, Duration),
    /// It wants no messages any more (410).
    Gone,
    /// It has answered with another status.
    Refused(u16),
    /// No message was sent: there was no connection.
    Unreachable(Unreachable),
    /// The message was sent, and no answer came.
    Silent,
    /// No message was sent: the store cannot read the event.
    Unreadable,
}

impl Reply {
    /// Whether it is about the event: others may be taken.
    pub const fn is_of_event(self) -> bool {
        matches!(self, Self::Refused(_) | Self::Silent | Self::Unreadable)
    }
}

/// The reason why there was no connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unreachable {
    /// The name has no address.
    Name,
    /// The name has no address that is permitted.
    Address,
    /// No address accepts a connection.
    Connection,
    /// The certificate does not count, or the receiver has no TLS.
    Tls,
}

/// A message for a receiver.
#[derive(Clone, Copy, Debug)]
pub struct Message<'m> {
    /// The id, by which the receiver knows it again.
    pub id: &'m str,
    /// The body.
    pub body: &'m [u8],
}

/// Where messages go, and how they are signed.
#[derive(Debug)]
pub struct Receiver {
    /// The URL.
    pub url: Url,
    /// The secrets, each of which signs.
    pub secrets: Vec<Secret>,
    idle: Connections,
}

impl Receiver {
    /// A receiver without connections.
    pub fn new(url: Url, secrets: Vec<Secret>) -> Self {
        Self { url, secrets, idle: Connections::default() }
    }

    /// Keeps the connection of an answer, if it can be used again. Returns the reply.
    fn keep(&self, (reply, connection): (Reply, Option<Connection>)) -> Reply {
        if let Some(connection) = connection {
            self.idle.keep(connection);
        }
        reply
    }
}

/// Sends a message to a receiver, signed at `now`. `names` bounds the look-ups of names.
pub async fn send(
    policy: &AddressPolicy,
    receiver: &Receiver,
    message: Message<'_>,
    now: SystemTime,
    names: &Arc<Semaphore>,
) -> Reply {
    let Receiver { url, secrets, idle } = receiver;
    let deadline = Instant::now() + TIMEOUT;
    let Some(request) = request(url, secrets, message, now) else {
        return Reply::Unreachable(Unreachable::Name);
    };
    if let Some(connection) = idle.take() {
        match timeout_at(deadline, connection.exchange(request.clone(), now)).await {
            Ok(Some(answer)) => return receiver.keep(answer),
            // It was closed meanwhile. If the receiver has taken the message, it knows it again.
            Ok(None) => idle.clear(),
            Err(_) => return Reply::Silent,
        }
    }
    let opened = timeout_at(deadline, open(policy, url, names)).await;
    match opened.unwrap_or(Err(Unreachable::Connection)) {
        Err(reason) => Reply::Unreachable(reason),
        Ok(connection) => match timeout_at(deadline, connection.exchange(request, now)).await {
            Ok(Some(answer)) => receiver.keep(answer),
            Ok(None) | Err(_) => Reply::Silent,
        },
    }
}

/// A new connection.
async fn open(
    policy: &AddressPolicy,
    url: &Url,
    names: &Arc<Semaphore>,
) -> Result<Connection, Unreachable> {
    let is_plain = url.scheme() == "http";
    let stream = connect(policy, url, is_plain, names).await?;
    // Small messages are not held back until the last one is acknowledged.
    stream.set_nodelay(true).map_err(|_| Unreachable::Connection)?;
    if is_plain {
        return Connection::open(stream).await.ok_or(Unreachable::Connection);
    }
    let stream = timeout(TLS_TIME, encrypt(url, stream)).await.ok().flatten();
    Connection::open(stream.ok_or(Unreachable::Tls)?).await.ok_or(Unreachable::Connection)
}

/// Connects to the first address that is permitted and accepts a connection.
async fn connect(
    policy: &AddressPolicy,
    url: &Url,
    is_plain: bool,
    names: &Arc<Semaphore>,
) -> Result<TcpStream, Unreachable> {
    let port = url.port_or_known_default().ok_or(Unreachable::Name)?;
    let found: Vec<IpAddr> = match url.host() {
        Some(Host::Ipv4(address)) => vec![address.into()],
        Some(Host::Ipv6(address)) => vec![address.into()],
        Some(Host::Domain(name)) => resolve(name.to_owned(), port, names).await.unwrap_or_default(),
        None => Vec::new(),
    };
    if found.is_empty() {
        return Err(Unreachable::Name);
    }
    // The name is not looked up again: who changes its addresses meanwhile gains nothing.
    let permitted: Vec<_> =
        found.into_iter().filter(|address| policy.permits(*address, is_plain)).collect();
    if permitted.is_empty() {
        return Err(Unreachable::Address);
    }
    let each = TIMEOUT / MAX_ADDRESSES as u32;
    for address in permitted.into_iter().take(MAX_ADDRESSES) {
        let connecting = TcpStream::connect(SocketAddr::new(address, port));
        if let Ok(Ok(stream)) = timeout(each, connecting).await {
            return Ok(stream);
        }
    }
    Err(Unreachable::Connection)
}

/// The addresses of a name; none if it has none.
async fn resolve(name: String, port: u16, names: &Arc<Semaphore>) -> Option<Vec<IpAddr>> {
    // An attempt whose time is over waits no longer.
    let own = names.clone().acquire_owned().await.ok()?;
    let all = RESOLVING.clone().acquire_owned().await.ok()?;
    // In a task, so that a look-up counts until its thread is free, also after the attempt.
    let resolving = tokio::spawn(async move {
        let _permits = (own, all);
        let found = lookup_host((name.as_str(), port)).await.ok()?;
        Some(found.map(|address| address.ip()).collect())
    });
    resolving.await.ok().flatten()
}

/// A connection with TLS; none if the receiver is not the one that the URL names.
async fn encrypt(
    url: &Url,
    stream: TcpStream,
) -> Option<tokio_rustls::client::TlsStream<TcpStream>> {
    let name = match url.host()? {
        Host::Domain(name) => ServerName::try_from(name.to_owned()).ok()?,
        Host::Ipv4(address) => ServerName::from(IpAddr::from(address)),
        Host::Ipv6(address) => ServerName::from(IpAddr::from(address)),
    };
    TLS.as_ref()?.connect(name, stream).await.ok()
}

/// The request as it is sent on a connection: with the path alone, and the host as a header.
fn request(
    url: &Url,
    secrets: &[Secret],
    message: Message<'_>,
    now: SystemTime,
) -> Option<Request<Full<Bytes>>> {
    let timestamp = now.duration_since(SystemTime::UNIX_EPOCH).ok()?.as_secs().try_into().ok()?;
    let signed = signatures(secrets, message.id, timestamp, message.body);
    let query = url.query().map(|query| format!("?{query}")).unwrap_or_default();
    let host = match url.port() {
        Some(port) => format!("{}:{port}", url.host_str()?),
        None => url.host_str()?.to_owned(),
    };
    Request::builder()
        .method(Method::POST)
        .uri(format!("{}{query}", url.path()))
        .header(HOST, host)
        .header(CONTENT_TYPE, "application/cloudevents+json; charset=utf-8")
        .header(USER_AGENT, concat!("polynym/", env!("CARGO_PKG_VERSION")))
        .header("webhook-id", message.id)
        .header("webhook-timestamp", timestamp)
        .header("webhook-signature", signed)
        .body(Full::from(Bytes::copy_from_slice(message.body)))
        .ok()
}

/// The reply of a status, and of the time for which a receiver asks.
pub const fn reply(status: u16, retry_after: Option<Duration>) -> Reply {
    match (status, retry_after) {
        (200..=299, _) => Reply::Taken(status),
        (410, _) => Reply::Gone,
        (429 | 503, Some(pause)) => Reply::Later(status, pause),
        _ => Reply::Refused(status),
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    use super::*;

    const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

    /// The reply of a receiver that answers with these bytes, and the head of the request.
    async fn reply_to(answer: Vec<u8>) -> (Reply, String) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/a?b=c", listener.local_addr().unwrap());
        let serving = tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut head = vec![0; 4_096];
            let read = stream.read(&mut head).await.unwrap();
            head.truncate(read);
            // The other side may close first.
            let _ = stream.write_all(&answer).await;
            String::from_utf8(head).unwrap()
        });
        let reply = send_to(&url, &["127.0.0.1"]).await;
        (reply, serving.await.unwrap())
    }

    async fn send_to(url: &str, allowed: &[&str]) -> Reply {
        let allowed = allowed.iter().map(|network| network.parse().unwrap()).collect();
        let policy = AddressPolicy::new(allowed);
        let secrets = vec![Secret::parse(SECRET).unwrap()];
        let receiver = Receiver::new(Url::parse(url).unwrap(), secrets);
        let message = Message { id: "user:1", body: b"{}" };
        let names = Arc::new(Semaphore::new(1));
        send(&policy, &receiver, message, SystemTime::now(), &names).await
    }

    fn answer(text: &str) -> Vec<u8> {
        format!("HTTP/1.1 {text}\r\nContent-Length: 0\r\n\r\n").into_bytes()
    }

    #[tokio::test]
    async fn the_status_of_the_answer_counts() {
        let (reply, head) = reply_to(answer("204 No Content")).await;
        assert_eq!(reply, Reply::Taken(204));
        let head = head.to_ascii_lowercase();
        assert!(head.starts_with("post /a?b=c http/1.1\r\nhost: 127.0.0.1:"), "{head}");
        for part in ["webhook-id: user:1\r\n", "webhook-timestamp: ", "webhook-signature: v1,"] {
            assert!(head.contains(part), "{head}");
        }
        let later = Reply::Later(503, Duration::from_secs(7));
        for (text, reply) in [
            ("410 Gone", Reply::Gone),
            ("500 Wrong", Reply::Refused(500)),
            ("302 Found\r\nLocation: http://127.0.0.1:1/", Reply::Refused(302)),
            ("503 Busy", Reply::Refused(503)),
            ("503 Busy\r\nRetry-After: 7", later),
        ] {
            assert_eq!(reply_to(answer(text)).await.0, reply, "{text}");
        }
    }

    #[tokio::test]
    async fn look_ups_of_a_tenant_wait_for_its_own_and_leave_the_queue() {
        let names = Arc::new(Semaphore::new(0));
        let waiting = timeout(Duration::from_millis(50), resolve("localhost".into(), 1, &names));
        assert!(waiting.await.is_err());
        names.add_permits(1);
        assert!(resolve("localhost".into(), 1, &names).await.is_some());
        assert_eq!(names.available_permits(), 1);
    }

    #[tokio::test]
    async fn an_answer_of_any_size_or_form_ends() {
        let endless = [answer("200 OK").as_slice(), &vec![b'a'; 4 << 20]].concat();
        assert_eq!(reply_to(endless).await.0, Reply::Taken(200));
        let large = [b"HTTP/1.1 200 OK\r\n\r\n".as_slice(), &vec![b'a'; 4 << 20]].concat();
        assert_eq!(reply_to(large).await.0, Reply::Taken(200));
        let long_head = [b"HTTP/1.1 200 OK\r\nA: ".as_slice(), &vec![b'a'; 1 << 20]].concat();
        for answer in [long_head, b"no http\r\n\r\n".to_vec(), Vec::new()] {
            assert_eq!(reply_to(answer).await.0, Reply::Silent);
        }
    }

    #[tokio::test]
    async fn without_a_connection_the_reason_is_told() {
        let closed = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
        let local = ["127.0.0.0/8", "::1"];
        let reply = send_to(&format!("http://{closed}/"), &local).await;
        assert_eq!(reply, Reply::Unreachable(Unreachable::Connection));
        // A name is checked by its addresses.
        for url in ["http://127.0.0.1:1/", "https://localhost:1/", "https://[::ffff:127.0.0.1]:1/"]
        {
            assert_eq!(send_to(url, &[]).await, Reply::Unreachable(Unreachable::Address), "{url}");
        }
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("https://{}/", listener.local_addr().unwrap());
        let plain = tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            let _ = stream.write_all(&answer("200 OK")).await;
        });
        assert_eq!(send_to(&url, &local).await, Reply::Unreachable(Unreachable::Tls));
        plain.await.unwrap();
    }
}
