//! A proxy between client and server that loses, delays and cuts calls.

use std::collections::{HashMap, HashSet, VecDeque};
use std::io;
use std::pin::pin;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde::Deserialize;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Mutex as AsyncMutex, Notify, watch};
use tokio::task::JoinHandle;
use tokio::time::sleep;

use crate::frame::{Frame, PREFACE_BYTES, kind};
use crate::server::free_address;
use crate::{Outcome, context};

/// The number of attempts to reach a server that starts, and their interval.
const CONNECT_ATTEMPTS: usize = 250;
const CONNECT_INTERVAL: Duration = Duration::from_millis(20);

/// The fault of one call.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum Fault {
    /// Nothing.
    None,
    /// The proxy answers UNAVAILABLE in place of the server.
    Unavailable,
    /// The connection is closed before the server sees the call.
    LoseRequest,
    /// The connection is closed once the server has answered.
    LoseReply,
    /// The answer is dropped, and the connection stays.
    SwallowReply,
    /// The stream is reset instead of the answer.
    Reset,
    /// The connection ends before the call: the client learns that the server did not see it.
    GoAway,
    /// The call is delayed by this many milliseconds.
    Delay(u64),
}

#[derive(Default)]
struct State {
    upstream: Mutex<String>,
    faults: Mutex<VecDeque<Fault>>,
    calls: AtomicU64,
    /// The number of open connections.
    open: AtomicUsize,
    /// Ends all connections.
    cut: Notify,
    /// Whether the connections that are open are frozen.
    freeze: Mutex<watch::Sender<bool>>,
    /// The same of connections that were frozen. They end with it.
    frozen: Mutex<Vec<watch::Sender<bool>>>,
}

/// A running proxy.
pub struct Proxy {
    /// Where clients connect.
    pub address: String,
    state: Arc<State>,
    /// The task that accepts connections.
    accepting: Mutex<Option<JoinHandle<()>>>,
}

impl Proxy {
    /// Listens on a free port.
    pub async fn start() -> Outcome<Self> {
        let proxy = Self { address: free_address(), state: Arc::default(), accepting: None.into() };
        proxy.end_outage().await?;
        Ok(proxy)
    }

    /// Listens, whether it does already or not.
    pub async fn end_outage(&self) -> Outcome<()> {
        self.stop_accepting().await;
        let listener = TcpListener::bind(&self.address).await.map_err(context("the proxy"))?;
        *lock(&self.accepting) = Some(tokio::spawn(accept(listener, Arc::clone(&self.state))));
        Ok(())
    }

    /// Ends all connections, and refuses new ones for this time; for good without it.
    pub async fn begin_outage(&self, time: Option<Duration>) {
        self.stop_accepting().await;
        while self.state.open.load(Ordering::Relaxed) > 0 {
            self.state.cut.notify_waiters();
            sleep(CONNECT_INTERVAL).await;
        }
        let Some(time) = time else { return };
        let (address, state) = (self.address.clone(), Arc::clone(&self.state));
        *lock(&self.accepting) = Some(tokio::spawn(async move {
            sleep(time).await;
            // Another program may have the port for a moment.
            loop {
                match TcpListener::bind(&address).await {
                    Ok(listener) => return accept(listener, state).await,
                    Err(_) => sleep(CONNECT_INTERVAL).await,
                }
            }
        }));
    }

    /// Closes the listener.
    async fn stop_accepting(&self) {
        let former = lock(&self.accepting).take();
        if let Some(former) = former {
            former.abort();
            former.await.ok();
        }
    }

    /// Sets the server for new connections.
    pub fn set_upstream(&self, address: &str) {
        address.clone_into(&mut lock(&self.state.upstream));
    }

    /// Sets the faults of the next calls, one each.
    pub fn set_faults(&self, faults: &[Fault]) {
        *lock(&self.state.faults) = faults.iter().copied().collect();
    }

    /// The faults that no call has met yet.
    pub fn take_faults(&self) -> Vec<Fault> {
        std::mem::take(&mut *lock(&self.state.faults)).into()
    }

    /// Freezes the connections that are open: nothing passes them any more, and they stay open. New
    /// ones pass.
    pub fn freeze(&self) {
        let open = std::mem::take(&mut *lock(&self.state.freeze));
        open.send_replace(true);
        lock(&self.state.frozen).push(open);
    }

    /// Ends the frozen connections.
    pub fn end_frozen(&self) {
        lock(&self.state.frozen).clear();
    }

    /// The number of calls since this was last called.
    pub fn take_calls(&self) -> u64 {
        self.state.calls.swap(0, Ordering::Relaxed)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn accept(listener: TcpListener, state: Arc<State>) {
    while let Ok((client, _)) = listener.accept().await {
        let state = Arc::clone(&state);
        state.open.fetch_add(1, Ordering::Relaxed);
        tokio::spawn(async move {
            tokio::select! {
                // Faults end connections on purpose.
                _ = serve(client, &state) => {}
                () = state.cut.notified() => {}
            }
            state.open.fetch_sub(1, Ordering::Relaxed);
        });
    }
}

/// One connection.
struct Connection<'a> {
    state: &'a State,
    /// The streams whose answers meet a fault.
    faulty: Mutex<HashMap<u32, Fault>>,
    to_client: AsyncMutex<OwnedWriteHalf>,
}

/// Serves a connection until one side closes it, or a fault does. A frozen one stays open.
async fn serve(client: TcpStream, state: &State) -> io::Result<()> {
    let mut freeze = lock(&state.freeze).subscribe();
    let server = connect(state).await?;
    client.set_nodelay(true)?;
    server.set_nodelay(true)?;
    let (from_client, to_client) = client.into_split();
    let (from_server, to_server) = server.into_split();
    let to_client = AsyncMutex::new(to_client);
    let connection = Connection { state, faulty: Mutex::default(), to_client };
    // A half that is dropped closes its side: both live as long as a frozen connection.
    let mut calls = pin!(connection.forward_calls(from_client, to_server));
    let mut answers = pin!(connection.forward_answers(from_server));
    tokio::select! {
        biased;
        _ = freeze.wait_for(|frozen| *frozen) => {}
        end = &mut calls => return end,
        end = &mut answers => return end,
    }
    while freeze.changed().await.is_ok() {}
    Ok(())
}

/// Connects to the server; one that starts is awaited.
async fn connect(state: &State) -> io::Result<TcpStream> {
    let mut attempts = 1;
    loop {
        let upstream = lock(&state.upstream).clone();
        match TcpStream::connect(upstream).await {
            Err(_) if attempts < CONNECT_ATTEMPTS => sleep(CONNECT_INTERVAL).await,
            outcome => return outcome,
        }
        attempts += 1;
    }
}

impl Connection<'_> {
    async fn forward_calls(
        &self,
        mut from_client: OwnedReadHalf,
        mut to_server: OwnedWriteHalf,
    ) -> io::Result<()> {
        let mut preface = [0; PREFACE_BYTES];
        from_client.read_exact(&mut preface).await?;
        to_server.write_all(&preface).await?;
        let (mut last, mut refused) = (0, u32::MAX);
        let mut refused_calls = HashSet::new();

        loop {
            let mut frame = Frame::read(&mut from_client).await?;
            frame.forbid_header_table();
            if frame.kind == kind::HEADERS && frame.stream > last && refused == u32::MAX {
                match self.begin_call(frame.stream) {
                    Fault::LoseRequest => return Ok(()),
                    Fault::GoAway => {
                        refused = frame.stream;
                        self.send(&Frame::go_away(last)).await?;
                    }
                    Fault::Unavailable => {
                        self.send(&Frame::unavailable(frame.stream)).await?;
                        refused_calls.insert(frame.stream);
                    }
                    Fault::Delay(time) => sleep(Duration::from_millis(time)).await,
                    _ => {}
                }
                last = frame.stream;
            }
            if frame.stream < refused && !refused_calls.contains(&frame.stream) {
                to_server.write_all(&frame.bytes()).await?;
            }
        }
    }

    /// Counts a call, and returns its fault.
    fn begin_call(&self, stream: u32) -> Fault {
        self.state.calls.fetch_add(1, Ordering::Relaxed);
        let fault = lock(&self.state.faults).pop_front().unwrap_or(Fault::None);
        if matches!(fault, Fault::LoseReply | Fault::SwallowReply | Fault::Reset) {
            lock(&self.faulty).insert(stream, fault);
        }
        fault
    }

    async fn forward_answers(&self, mut from_server: OwnedReadHalf) -> io::Result<()> {
        loop {
            let mut frame = Frame::read(&mut from_server).await?;
            // The server does not see the headers of a call that the proxy answers.
            frame.forbid_header_table();
            let fault = lock(&self.faulty).get(&frame.stream).copied();
            match fault {
                None => self.send(&frame).await?,
                Some(Fault::LoseReply) if frame.kind == kind::HEADERS => return Ok(()),
                Some(Fault::Reset) if frame.kind == kind::HEADERS => {
                    self.send(&Frame::reset(frame.stream)).await?;
                    lock(&self.faulty).insert(frame.stream, Fault::SwallowReply);
                }
                Some(_) => {}
            }
        }
    }

    async fn send(&self, frame: &Frame) -> io::Result<()> {
        self.to_client.lock().await.write_all(&frame.bytes()).await
    }
}
