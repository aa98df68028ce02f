//! Those who are not signed in keep nobody from signing in, and no caller from his answers.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crate::browser::{Browser, HOME};
use crate::tokens::GuardedSite;

/// The requests that strangers may have in flight.
const STRANGERS: usize = 64;
/// The time limit of what a busy machine does at once.
const TIMEOUT: Duration = Duration::from_secs(60);

/// The head of a form to sign in, of this length.
fn head(length: usize) -> String {
    format!(
        "POST /console/sign-in HTTP/1.1\r\nhost: localhost\r\n\
         content-type: application/x-www-form-urlencoded\r\ncontent-length: {length}\r\n\r\n"
    )
}

fn connect(site: &GuardedSite) -> TcpStream {
    let stream = TcpStream::connect(site.site.url.trim_start_matches("http://")).unwrap();
    stream.set_read_timeout(Some(TIMEOUT)).unwrap();
    stream
}

/// The first line of a response.
fn status(stream: &mut TcpStream) -> String {
    let mut start = [0; 12];
    match stream.read_exact(&mut start) {
        Ok(()) => String::from_utf8(start.to_vec()).unwrap(),
        Err(error) => format!("{error:?}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn slow_forms_keep_nobody_from_signing_in() {
    let site = GuardedSite::start(&[("ana", "viewer", "*")]);
    let mut slow: Vec<_> = (0..2 * STRANGERS).map(|_| connect(&site)).collect();
    for stream in &mut slow {
        stream.write_all(format!("{}token=", head(1_000)).as_bytes()).unwrap();
    }
    let begun = Instant::now();
    for _ in 0..5 {
        site.browser("ana").await;
    }
    assert!(begun.elapsed() < TIMEOUT);
    // Each ends, though it goes on sending.
    while begun.elapsed() < Duration::from_secs(7) {
        slow.iter_mut().for_each(|stream| _ = stream.write_all(b"x"));
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    for stream in &mut slow {
        assert_eq!(status(stream), "HTTP/1.1 422");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_form_ends_the_oldest_of_many_slow_ones() {
    let site = GuardedSite::start(&[("ana", "viewer", "*")]);
    let mut slow: Vec<_> = (0..400).map(|_| connect(&site)).collect();
    for stream in &mut slow {
        stream.write_all(format!("{}token=", head(1_000)).as_bytes()).unwrap();
    }
    assert_eq!(status(&mut slow[0]), "HTTP/1.1 429");
    site.browser("ana").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn wrong_tokens_keep_nobody_from_signing_in() {
    let site = GuardedSite::start(&[("ana", "viewer", "*")]);
    let flood = Flood::start(&site, "token=pn_wrong", 2 * STRANGERS);
    for _ in 0..5 {
        site.browser("ana").await;
    }
    assert!(flood.end() > 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn forms_of_many_fields_are_refused_before_they_are_read() {
    let site = GuardedSite::start(&[("ana", "viewer", "*")]);
    let mut ana = site.browser("ana").await;
    let alone = median(&mut ana).await;
    let fields = "a=&".repeat(83_000);
    let flood = Flood::start(&site, &fields, STRANGERS);
    let limit = 5 * alone + Duration::from_millis(100);
    let mut beside = median(&mut ana).await;
    // Other tests may take the processors meanwhile.
    for _ in 0..10 {
        if beside >= limit {
            beside = median(&mut ana).await;
        }
    }
    let answered = flood.end();
    println!("{alone:?} alone, {beside:?} beside {answered} forms");
    assert!(answered > 0);
    assert!(beside < limit, "{alone:?} alone, {beside:?} beside");

    let form = |fields: usize| {
        let mut stream = connect(&site);
        let body = "a=&".repeat(fields - 1);
        stream.write_all(format!("{}{body}", head(body.len())).as_bytes()).unwrap();
        status(&mut stream)
    };
    assert_eq!(form(64), "HTTP/1.1 401");
    assert_eq!(form(65), "HTTP/1.1 422");
    // A session has larger ones.
    let many = vec![("a", ""); 8_000];
    ana.post("/console/t/default/search", &many).await.assert_has(&["<h1>All users</h1>"]);
    let too_many = vec![("a", ""); 8_193];
    let refused = ana.post("/console/t/default/search", &too_many).await;
    refused.assert_has(&["The form has too many fields."]);
}

/// The median time of a page, loaded again and again.
async fn median(browser: &mut Browser) -> Duration {
    let mut times = Vec::new();
    for _ in 0..40 {
        let begun = Instant::now();
        assert_eq!(browser.get(&format!("{HOME}/")).await.status, 200);
        times.push(begun.elapsed());
    }
    times.sort_unstable();
    times[times.len() / 2]
}

/// Clients that send a form to sign in again and again.
struct Flood {
    is_over: Arc<AtomicBool>,
    answered: Arc<AtomicUsize>,
    threads: Vec<JoinHandle<()>>,
}

impl Flood {
    /// Starts so many clients, and waits until each has been answered.
    fn start(site: &GuardedSite, body: &str, clients: usize) -> Self {
        let (is_over, answered) = <(Arc<AtomicBool>, Arc<AtomicUsize>)>::default();
        let request = Arc::new(format!("{}{body}", head(body.len())));
        let address = site.site.url.trim_start_matches("http://").to_owned();
        let threads = (0..clients).map(|_| {
            let (request, address) = (request.clone(), address.clone());
            let (is_over, answered) = (is_over.clone(), answered.clone());
            thread::spawn(move || {
                while !is_over.load(Relaxed) {
                    send(&address, &request);
                    answered.fetch_add(1, Relaxed);
                }
            })
        });
        let flood = Self { threads: threads.collect(), is_over, answered };
        let begun = Instant::now();
        while flood.answered.load(Relaxed) < clients {
            assert!(begun.elapsed() < TIMEOUT);
            thread::sleep(Duration::from_millis(10));
        }
        flood
    }

    /// Ends it. Returns the number of answers.
    fn end(self) -> usize {
        self.is_over.store(true, Relaxed);
        self.threads.into_iter().for_each(|thread| thread.join().unwrap());
        self.answered.load(Relaxed)
    }
}

/// Sends a request on a connection of its own, and waits until it is answered or closed.
fn send(address: &str, request: &str) {
    let Ok(mut stream) = TcpStream::connect(address) else { return };
    stream.set_read_timeout(Some(TIMEOUT)).unwrap();
    // The server may answer, and close the connection, before it has read all.
    let sent = stream.write_all(request.as_bytes());
    let read = stream.read(&mut [0; 64]);
    let was_late = |kind| matches!(kind, ErrorKind::WouldBlock | ErrorKind::TimedOut);
    assert!(!read.is_err_and(|error| was_late(error.kind())), "no answer; sent: {sent:?}");
}
