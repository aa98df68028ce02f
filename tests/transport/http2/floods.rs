//! Floods of frames from clients without a credential: their connections end, and another caller's
//! look-ups go on beside them.

use std::io::{self, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, sleep};
use std::time::{Duration, Instant};

use super::block_on;
use super::raw::{DATA, HEADERS, PREFACE, RESET, SETTINGS, WINDOW_UPDATE};
use super::store::{TestStore, tests_on_store};
use crate::calls::{Client, handle};
use crate::server::Server;

const PING: u8 = 6;
const PRIORITY: u8 = 2;
const CONTINUATION: u8 = 9;
/// The flag of the last frame of headers.
const END_HEADERS: u8 = 4;
/// A type that no specification has.
const UNKNOWN: u8 = 0x77;
const CONNECTIONS: usize = 64;
/// The threads that flood: more would keep the server from its cores.
const THREADS: usize = 2;
/// The time after which a closed connection is opened again: connecting is another attack.
const PAUSE: Duration = Duration::from_millis(100);
/// The frames of a flood, which are sent again and again.
const FRAMES: u32 = 5_000;
/// The look-ups of the other caller in each phase.
const LOOK_UPS: usize = 40;
/// The look-ups of a measurement.
const MEASURED: usize = 2_000;
/// The number of times that a slow phase is measured again: other tests may take the processors.
const ROUNDS: usize = 10;
/// The time of a look-up beside a flood that is no fault on a busy machine.
const BUSY: Duration = Duration::from_millis(200);
/// One flood at a time: several would measure each other.
static FLOODS: Mutex<()> = Mutex::new(());

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let head = [0, 0, payload.len() as u8, kind, flags];
    [&head, &stream.to_be_bytes()[..], payload].concat()
}

/// Clients that send frames as fast as they can, and connect again when the server closes a
/// connection.
struct Flood {
    is_over: Arc<AtomicBool>,
    closed: Arc<AtomicUsize>,
    threads: Vec<thread::JoinHandle<()>>,
}

impl Flood {
    /// Sends `frames` again and again on so many connections.
    fn start(address: &str, frames: &[u8], connections: usize) -> Self {
        let (is_over, closed) = <(Arc<AtomicBool>, Arc<AtomicUsize>)>::default();
        let threads = (0..THREADS.min(connections)).map(|_| {
            let (address, frames) = (address.to_owned(), frames.to_vec());
            let (is_over, closed) = (is_over.clone(), closed.clone());
            let connect = move || Flooding::connect(&address);
            let mut own: Vec<_> = (0..connections.div_ceil(THREADS)).map(|_| connect()).collect();
            thread::spawn(move || {
                while !is_over.load(Relaxed) {
                    let mut waits = true;
                    for flooding in &mut own {
                        if flooding.closed.is_some_and(|at| at.elapsed() < PAUSE) {
                            continue;
                        } else if flooding.closed.is_some() {
                            *flooding = connect();
                        }
                        match flooding.send(&frames) {
                            Ok(count) => waits &= count == 0,
                            Err(_) => {
                                closed.fetch_add(1, Relaxed);
                                flooding.closed = Some(Instant::now());
                            }
                        }
                    }
                    if waits {
                        sleep(Duration::from_millis(1));
                    }
                }
            })
        });
        let threads = threads.collect();
        Self { is_over, closed, threads }
    }

    /// Waits until the server has closed so many connections.
    async fn closes(&self, what: &str, connections: usize) {
        let begun = Instant::now();
        while self.closed.load(Relaxed) < connections {
            assert!(begun.elapsed() < super::TIMEOUT, "{what}: the connections stay open");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    /// Ends it. Returns how many connections the server has closed.
    fn end(self) -> usize {
        self.is_over.store(true, Relaxed);
        self.threads.into_iter().for_each(|thread| thread.join().unwrap());
        self.closed.load(Relaxed)
    }
}

/// A connection of a flood.
struct Flooding {
    stream: TcpStream,
    /// The bytes of the frames that were sent.
    sent: usize,
    /// The time when the server closed it.
    closed: Option<Instant>,
}

impl Flooding {
    fn connect(address: &str) -> Self {
        let mut stream = TcpStream::connect(address).unwrap();
        // The server may close it at any time: the next write tells.
        let _ = stream.write_all(&[PREFACE, &frame(SETTINGS, 0, 0, &[])].concat());
        stream.set_nonblocking(true).unwrap();
        Self { stream, sent: 0, closed: None }
    }

    /// Sends what the socket takes, and returns the number of bytes. Fails once the server has
    /// closed the connection.
    fn send(&mut self, frames: &[u8]) -> io::Result<usize> {
        let waits = |error: io::Error| match error.kind() {
            ErrorKind::WouldBlock => Ok(None),
            _ => Err(error),
        };
        if self.stream.read(&mut [0; 16_384]).map(Some).or_else(waits)? == Some(0) {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        let count = self.stream.write(&frames[self.sent..]).map(Some).or_else(waits)?;
        self.sent = (self.sent + count.unwrap_or_default()) % frames.len();
        Ok(count.unwrap_or_default())
    }
}

/// The times of look-ups, one after the other, the shortest first.
async fn look_ups(client: &mut Client, count: usize) -> Vec<Duration> {
    let mut times = Vec::new();
    for _ in 0..count {
        let begun = Instant::now();
        let status = client.resolve(handle("nobody")).await.unwrap_err();
        assert_eq!(status.code(), tonic::Code::NotFound, "{status:?}");
        times.push(begun.elapsed());
    }
    times.sort_unstable();
    times
}

async fn median(client: &mut Client) -> Duration {
    look_ups(client, LOOK_UPS).await[LOOK_UPS / 2]
}

async fn p99(client: &mut Client) -> f64 {
    let time = look_ups(client, MEASURED).await[MEASURED * 99 / 100];
    time.as_secs_f64() * 1_000.0
}

/// The flooded port of a server of this store.
struct Target<'a> {
    store: &'a TestStore,
    server: &'a Server,
    address: &'a str,
}

impl Target<'_> {
    /// Asserts that look-ups go on beside floods of these frames, and that each connection ends.
    fn stands(&self, floods: &[(&str, Vec<u8>)], connections: usize) {
        let _one_at_a_time = FLOODS.lock().unwrap_or_else(PoisonError::into_inner);
        block_on(async {
            let mut client = Client::connect(&self.server.url).await;
            // On MongoDB the same connections end; one flood shows that look-ups are answered.
            let floods = if self.store.is_embedded() { floods } else { &floods[..1] };
            for (what, frames) in floods {
                // Other tests may take the processors during a round.
                let mut rounds = 0..ROUNDS;
                while !self.is_quick_beside(&mut client, what, frames, connections).await {
                    assert!(rounds.next().is_some(), "{what}: look-ups are slow beside them");
                }
            }
        });
    }

    async fn is_quick_beside(
        &self,
        client: &mut Client,
        what: &str,
        frames: &[u8],
        connections: usize,
    ) -> bool {
        let alone = median(client).await;
        let flood = Flood::start(self.address, frames, connections);
        flood.closes(what, connections).await;
        let beside = median(client).await;
        let closed = flood.end();
        println!("{what}: {alone:?} alone, {beside:?} beside {closed} connections");
        // Tests of clusters take the processors, so that on MongoDB any answer will do.
        beside < 5 * alone + BUSY || !self.store.is_embedded()
    }
}

fn frames_without_calls() -> Vec<(&'static str, Vec<u8>)> {
    let frames = [
        ("windows", frame(WINDOW_UPDATE, 0, 0, &[0, 0, 0, 1])),
        ("unknown frames", frame(UNKNOWN, 0, 0, &[])),
        ("pings", frame(PING, 0, 0, &[0; 8])),
        ("priorities", frame(PRIORITY, 0, 1, &[0, 0, 0, 3, 0])),
        ("settings", frame(SETTINGS, 0, 0, &[])),
    ];
    frames.map(|(what, frame)| (what, frame.repeat(FRAMES as usize))).to_vec()
}

/// Streams that are reset at once (CVE-2023-44487), headers without an end (CVE-2024-27316), and
/// empty messages of a stream.
fn frames_of_streams() -> Vec<(&'static str, Vec<u8>)> {
    // POST http /
    let open = |stream, flags| frame(HEADERS, flags, stream, &[0x83, 0x86, 0x84]);
    let reset = |stream| [open(stream, END_HEADERS), frame(RESET, 0, stream, &[0, 0, 0, 8])];
    let endless = |start: Vec<u8>, more: Vec<u8>| [start, more.repeat(FRAMES as usize)].concat();
    vec![
        ("resets", (0..FRAMES).flat_map(|n| reset(2 * n + 1).concat()).collect()),
        ("headers", endless(open(1, 0), frame(CONTINUATION, 0, 1, b"\0\x01x\x01y"))),
        ("empty data", endless(open(1, END_HEADERS), frame(DATA, 0, 1, &[]))),
    ]
}

tests_on_store! {
    strangers_who_flood_the_port_of_grpc_lose_their_connections
    strangers_who_flood_the_http_port_lose_their_connections
    strangers_who_flood_streams_of_grpc_lose_their_connections
    strangers_who_flood_streams_of_http_lose_their_connections
}

fn strangers_who_flood_the_port_of_grpc_lose_their_connections(store: &TestStore) {
    let server = store.serve(&[]);
    let target =
        Target { store, server: &server, address: server.url.trim_start_matches("http://") };
    target.stands(&frames_without_calls(), CONNECTIONS);
    target.stands(&frames_without_calls()[2..3], 1);
}

fn strangers_who_flood_the_http_port_lose_their_connections(store: &TestStore) {
    let mut server = store.serve(&["--http-listen", "127.0.0.1:0"]);
    let url = server.http_url();
    let target = Target { store, server: &server, address: url.trim_start_matches("http://") };
    target.stands(&frames_without_calls()[..3], CONNECTIONS);
}

fn strangers_who_flood_streams_of_grpc_lose_their_connections(store: &TestStore) {
    let server = store.serve(&[]);
    let target =
        Target { store, server: &server, address: server.url.trim_start_matches("http://") };
    target.stands(&frames_of_streams(), CONNECTIONS);
}

fn strangers_who_flood_streams_of_http_lose_their_connections(store: &TestStore) {
    let mut server = store.serve(&["--http-listen", "127.0.0.1:0"]);
    let url = server.http_url();
    let target = Target { store, server: &server, address: url.trim_start_matches("http://") };
    target.stands(&frames_of_streams(), CONNECTIONS);
}

/// Measures a caller beside each flood: the table of docs/security.md. Alone, threads compute in
/// place of those that flood.
#[test]
#[ignore = "takes a minute, and measures an idle machine"]
fn long_floods_beside_a_healthy_caller() {
    let store = crate::test_store();
    let mut server = store.serve(&["--http-listen", "127.0.0.1:0"]);
    let ports = [("gRPC", server.url.clone()), ("HTTP", server.http_url())];
    println!("| flood | port | p99 alone, ms | beside it, ms | ratio |");
    block_on(async {
        let mut client = Client::connect(&server.url).await;
        for (port, url) in &ports {
            for (what, frames) in [frames_without_calls(), frames_of_streams()].concat() {
                let busy = Arc::new(AtomicBool::new(true));
                let threads = [(); THREADS].map(|()| {
                    let busy = busy.clone();
                    thread::spawn(move || while busy.load(Relaxed) {})
                });
                let alone = p99(&mut client).await;
                busy.store(false, Relaxed);
                threads.into_iter().for_each(|thread| thread.join().unwrap());
                let address = url.trim_start_matches("http://");
                let flood = Flood::start(address, &frames, CONNECTIONS);
                let beside = p99(&mut client).await;
                flood.end();
                let ratio = beside / alone;
                println!("| {what} | {port} | {alone:.1} | {beside:.1} | {ratio:.1} |");
            }
        }
    });
}
