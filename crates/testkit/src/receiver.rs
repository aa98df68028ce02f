//! A receiver of deliveries: it notes what it gets, checks the signatures, and answers as a test
//! wants.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use polynym_deliver::{Secret, signatures};
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::Instant;

/// The time limit on a busy machine.
const TIMEOUT: Duration = Duration::from_secs(90);

/// The secrets of deliveries to it: the present one, and the next.
pub const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
/// The next secret.
pub const NEXT_SECRET: &str = "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";

/// What it got.
#[derive(Clone, Debug)]
pub struct Got {
    /// The header `webhook-id`.
    pub id: String,
    /// The secrets by which it is signed.
    pub secrets: Vec<&'static str>,
    /// The body.
    pub body: Value,
    /// Whether it was answered with 200.
    pub is_taken: bool,
}

impl Got {
    /// The user and the number of its event.
    pub fn event(&self) -> (String, u64) {
        let (user, number) = self.id.split_once(':').unwrap();
        (user.to_owned(), number.parse().unwrap())
    }
}

/// How it answers: the status line and headers after `HTTP/1.1 `; none does not answer.
type Answer = Box<dyn Fn(&Got) -> Option<String> + Send>;
type Answers = Arc<Mutex<Answer>>;

/// A receiver.
pub struct Receiver {
    /// Its URL.
    pub url: String,
    got: Arc<Mutex<Vec<Got>>>,
    answers: Answers,
    serving: JoinHandle<()>,
}

impl Drop for Receiver {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

impl Receiver {
    /// A receiver that takes everything.
    pub async fn start() -> Self {
        Self::at("127.0.0.1:0").await
    }

    /// A receiver at an address.
    pub async fn at(address: &str) -> Self {
        let listener = TcpListener::bind(address).await.unwrap();
        let url = format!("http://{}/hook?a=b", listener.local_addr().unwrap());
        let got = Arc::new(Mutex::new(Vec::new()));
        let taking: Answer = Box::new(|_| Some("200 OK".into()));
        let answers: Answers = Arc::new(Mutex::new(taking));
        let (noted, answering) = (got.clone(), answers.clone());
        let serving = tokio::spawn(async move {
            // The connections end with the receiver.
            let mut connections = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                connections.spawn(serve(stream, noted.clone(), answering.clone()));
                while connections.try_join_next().is_some() {}
            }
        });
        Self { url, got, answers, serving }
    }

    /// Answers in this way from now on.
    pub fn answer(&self, answers: impl Fn(&Got) -> Option<&'static str> + Send + 'static) {
        *self.answers.lock().unwrap() = Box::new(move |got| answers(got).map(str::to_owned));
    }

    /// What it got.
    pub fn got(&self) -> Vec<Got> {
        self.got.lock().unwrap().clone()
    }

    /// The numbers of the events of a user that it took, in their order.
    pub fn taken(&self, user: &str) -> Vec<u64> {
        let taken = self.got().into_iter().filter(|got| got.is_taken).map(|got| got.event());
        taken.filter(|(of, _)| of == user).map(|(_, number)| number).collect()
    }

    /// Waits until a condition on what it got holds.
    pub async fn until(&self, what: &str, condition: impl Fn(&[Got]) -> bool) {
        let deadline = Instant::now() + TIMEOUT;
        while !condition(&self.got.lock().unwrap()) {
            assert!(Instant::now() < deadline, "{what}: {:?}", self.got());
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}

/// Serves the requests of a connection.
async fn serve(mut stream: TcpStream, got: Arc<Mutex<Vec<Got>>>, answers: Answers) {
    while let Some((head, body)) = read(&mut stream).await {
        let one = checked(&head, &body);
        let answer = answers.lock().unwrap()(&one);
        let is_taken = answer.as_deref().is_some_and(|answer| answer.starts_with("200"));
        got.lock().unwrap().push(Got { is_taken, ..one });
        match answer {
            Some(answer) => {
                let reply = format!("HTTP/1.1 {answer}\r\nContent-Length: 0\r\n\r\n");
                let _ = stream.write_all(reply.as_bytes()).await;
            }
            None => tokio::time::sleep(TIMEOUT).await,
        }
    }
}

/// A request, whose signatures are right.
fn checked(head: &str, body: &[u8]) -> Got {
    let header = |name: &str| {
        let lines = head.lines().filter_map(|line| line.split_once(": "));
        let mut values = lines.filter(|(key, _)| key.eq_ignore_ascii_case(name));
        values.next().map(|(_, value)| value.to_owned()).unwrap_or_default()
    };
    assert!(head.starts_with("POST /hook?a=b HTTP/1.1\r\n"), "{head}");
    let (id, timestamp) = (header("webhook-id"), header("webhook-timestamp").parse().unwrap());
    let signed = header("webhook-signature");
    let signs = |secret: &&'static str| {
        let expected = signatures(&[Secret::parse(secret).unwrap()], &id, timestamp, body);
        signed.split(' ').any(|signature| signature == expected)
    };
    let secrets: Vec<_> = [SECRET, NEXT_SECRET].into_iter().filter(signs).collect();
    assert_eq!(secrets.len(), signed.split(' ').count(), "a wrong signature");
    let body = serde_json::from_slice(body).unwrap();
    Got { id, secrets, body, is_taken: false }
}

/// The head and the body of a request.
async fn read(stream: &mut TcpStream) -> Option<(String, Vec<u8>)> {
    let (mut bytes, mut part) = (Vec::new(), [0; 4_096]);
    loop {
        let read = stream.read(&mut part).await.ok().filter(|read| *read > 0)?;
        bytes.extend_from_slice(&part[..read]);
        let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") else { continue };
        let head = String::from_utf8(bytes[..end].to_vec()).ok()?;
        let length = head.lines().find_map(|line| {
            let (name, value) = line.split_once(": ")?;
            name.eq_ignore_ascii_case("content-length").then(|| value.parse::<usize>().ok())?
        })?;
        while bytes.len() < end + 4 + length {
            let read = stream.read(&mut part).await.ok().filter(|read| *read > 0)?;
            bytes.extend_from_slice(&part[..read]);
        }
        return Some((head, bytes[end + 4..].to_vec()));
    }
}
