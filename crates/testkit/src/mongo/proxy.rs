//! A faulty network between a client and a server: slow, lossy, cut for a while or for some
//! connections only. Or it traps the n-th message of one kind, so that a test can end the server
//! between any two statements, or lose a reply.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::io::{AsyncWriteExt, BufReader};
use tokio::net::TcpListener;
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::{oneshot, watch};
use tokio::task::JoinHandle;
use tokio::time::sleep;

use super::front::wire::{MSG, Message};
use super::in_background;

/// The faults that apply to every message.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct NetworkFaults {
    /// The mean delay of a message and its reply together: each is delayed by zero to this value,
    /// uniformly.
    pub latency: Duration,
    /// The probability that a message is lost, and its connection with it: 0 to 1.
    pub loss: f64,
    /// Cuts all connections every few seconds, for 0.3 to 3 s.
    pub cuts: bool,
}

impl NetworkFaults {
    /// A bad network: 20 ms, 5 % loss, and cuts.
    pub const BAD: Self = Self { latency: Duration::from_millis(20), loss: 0.05, cuts: true };
}

/// The state of all connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Line {
    Up,
    /// Nothing is delivered; pending messages are delivered when the line is up again.
    Stalled,
    /// All connections are closed, new ones at once.
    Down,
}

/// The direction of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    Request,
    Reply,
}

/// The client of a connection, as known from its messages.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Origin {
    /// True if the client is a server of MongoDB.
    pub is_server: bool,
    /// The name of the application; empty if there is none.
    pub application: String,
    /// The host of the replica set member that sends heartbeats on this connection; empty if there
    /// are none.
    pub member: String,
}

/// Selects the connections that are carried.
type Filter = Option<Arc<dyn Fn(&Origin) -> bool + Send + Sync>>;

/// A proxy to one server. It runs until it is dropped.
pub struct Proxy {
    address: SocketAddr,
    shared: Arc<Shared>,
    tasks: Vec<JoinHandle<()>>,
}

struct Shared {
    server: SocketAddr,
    faults: Mutex<NetworkFaults>,
    line: watch::Sender<Line>,
    filter: watch::Sender<Filter>,
    traps: Mutex<Vec<PendingTrap>>,
}

/// A trap that waits for its message.
struct PendingTrap {
    side: Side,
    /// `None` for every statement of a mutation.
    command: Option<String>,
    left: usize,
    caught: oneshot::Sender<()>,
    verdict: oneshot::Receiver<()>,
}

/// A message that is awaited or held. On drop, the trap is removed; a held message is lost, and its
/// connection with it.
pub struct Trap {
    caught: oneshot::Receiver<()>,
    verdict: oneshot::Sender<()>,
}

impl Trap {
    /// Waits until the message has arrived and is held.
    pub async fn caught(&mut self) {
        (&mut self.caught).await.expect("the proxy was dropped");
    }

    /// Delivers the message.
    pub fn release(self) {
        let _ = self.verdict.send(());
    }
}

impl Proxy {
    /// Starts a proxy to a server, without faults.
    pub async fn start(server: SocketAddr) -> Self {
        in_background(async move {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let address = listener.local_addr().unwrap();
            let (faults, line, traps) =
                (Mutex::default(), watch::Sender::new(Line::Up), Mutex::default());
            let shared =
                Arc::new(Shared { server, faults, line, filter: watch::Sender::new(None), traps });
            let tasks = vec![
                tokio::spawn(accept(shared.clone(), listener)),
                tokio::spawn(cut(shared.clone())),
            ];
            Self { address, shared, tasks }
        })
        .await
    }

    /// Returns the address of the proxy.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Sets the faults of later messages.
    pub fn set_faults(&self, faults: NetworkFaults) {
        *self.shared.faults.lock().unwrap() = faults;
        if !faults.cuts {
            self.set_line(Line::Up);
        }
    }

    /// Sets the state of all connections.
    pub fn set_line(&self, line: Line) {
        self.shared.line.send_replace(line);
    }

    /// Carries only connections accepted by the filter, and closes all others.
    pub fn carry_only(&self, filter: impl Fn(&Origin) -> bool + Send + Sync + 'static) {
        self.shared.filter.send_replace(Some(Arc::new(filter)));
    }

    /// Carries all connections again.
    pub fn carry_all(&self) {
        self.shared.filter.send_replace(None);
    }

    /// Traps the `nth` message from now on, counted from 1, in this direction of commands with this
    /// name. Later messages of its connection wait behind it.
    pub fn trap(&self, side: Side, command: &str, nth: usize) -> Trap {
        self.set(side, Some(command.to_owned()), nth)
    }

    /// Traps the `nth` message of statements of mutations, with commits and aborts.
    pub fn trap_statement(&self, side: Side, nth: usize) -> Trap {
        self.set(side, None, nth)
    }

    fn set(&self, side: Side, command: Option<String>, nth: usize) -> Trap {
        let ((caught, caught_receiver), (verdict, verdict_receiver)) =
            (oneshot::channel(), oneshot::channel());
        self.shared.traps.lock().unwrap().push(PendingTrap {
            side,
            command,
            left: nth,
            caught,
            verdict: verdict_receiver,
        });
        Trap { caught: caught_receiver, verdict }
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.set_line(Line::Down);
        self.tasks.iter().for_each(JoinHandle::abort);
    }
}

async fn accept(shared: Arc<Shared>, listener: TcpListener) {
    while let Ok((client, _)) = listener.accept().await {
        let shared = shared.clone();
        tokio::spawn(async move {
            let mut line = shared.line.subscribe();
            tokio::select! {
                _ = line.wait_for(|line| *line == Line::Down) => {}
                _ = shared.connect(client) => {}
            }
        });
    }
}

/// Cuts the line at random times while the faults include cuts.
async fn cut(shared: Arc<Shared>) {
    loop {
        sleep(Duration::from_secs_f64(2.0 + 3.0 * random())).await;
        if shared.faults.lock().unwrap().cuts {
            shared.line.send_replace(if random() < 0.5 { Line::Stalled } else { Line::Down });
            sleep(Duration::from_secs_f64(0.3 + 2.7 * random())).await;
            shared.line.send_replace(Line::Up);
        }
    }
}

/// The state of one connection.
#[derive(Default)]
struct Connection {
    commands: Commands,
    origin: Mutex<Origin>,
}

/// The commands in progress on one connection, by the ids of their messages.
type Commands = Mutex<HashMap<i32, Command>>;

#[derive(Clone)]
struct Command {
    name: String,
    /// Whether it belongs to a mutation: in its transaction, or about names of attributes before
    /// it.
    is_statement: bool,
}

impl Shared {
    async fn connect(&self, client: TcpStream) -> io::Result<()> {
        let server = TcpStream::connect(self.server).await?;
        client.set_nodelay(true)?;
        server.set_nodelay(true)?;

        let ((from_client, to_client), (from_server, to_server)) =
            (client.into_split(), server.into_split());
        let connection = Connection::default();

        tokio::select! {
            ended = self.carry(Side::Request, from_client, to_server, &connection) => ended,
            ended = self.carry(Side::Reply, from_server, to_client, &connection) => ended,
            () = self.filtered_out(&connection) => Ok(()),
        }
    }

    /// Waits until the filter rejects a connection.
    async fn filtered_out(&self, connection: &Connection) {
        let mut filter = self.filter.subscribe();
        while self.carries(connection) && filter.changed().await.is_ok() {}
    }

    fn carries(&self, connection: &Connection) -> bool {
        let filter = self.filter.borrow().clone();
        filter.is_none_or(|filter| filter(&connection.origin.lock().unwrap()))
    }

    /// Carries messages in one direction until a side closes the connection, or a fault does.
    async fn carry(
        &self,
        side: Side,
        from: OwnedReadHalf,
        mut to: OwnedWriteHalf,
        connection: &Connection,
    ) -> io::Result<()> {
        let mut reader = BufReader::new(from);
        let mut line = self.line.subscribe();

        while let Some(message) = Message::read(&mut reader).await? {
            if side == Side::Request {
                connection.origin.lock().unwrap().learn(&message);
                if !self.carries(connection) {
                    return Ok(());
                }
            }
            let faults = *self.faults.lock().unwrap();
            if faults.latency > Duration::ZERO {
                sleep(faults.latency.mul_f64(random())).await;
            }
            if random() < faults.loss {
                return Ok(());
            }
            if let Some(trap) = self.caught(side, &message, &connection.commands) {
                let _ = trap.caught.send(());
                if trap.verdict.await.is_err() {
                    return Ok(());
                }
            }
            let _ = line.wait_for(|line| *line == Line::Up).await;
            to.write_all(message.bytes()).await?;
        }

        Ok(())
    }

    /// Returns the trap that this message completes.
    fn caught(&self, side: Side, message: &Message, commands: &Commands) -> Option<PendingTrap> {
        let command = match side {
            Side::Request => {
                let command = Command::of(message)?;
                commands.lock().unwrap().insert(message.id(), command.clone());
                command
            }
            Side::Reply => commands.lock().unwrap().remove(&message.response_to())?,
        };

        let mut traps = self.traps.lock().unwrap();
        traps.retain(|trap| !trap.caught.is_closed());
        let matching = traps.iter_mut().filter(|trap| trap.side == side && trap.is_for(&command));
        matching.for_each(|trap| trap.left -= 1);

        let closed = traps.iter().position(|trap| trap.left == 0)?;
        Some(traps.remove(closed))
    }
}

impl Origin {
    /// Learns from a request: a hello names the application, a heartbeat its member.
    fn learn(&mut self, message: &Message) {
        let Ok(body) = message.greeting_or_body() else { return };
        self.is_server |= matches!(body.get("internalClient"), Ok(Some(_)));

        let application =
            body.get_document("client").and_then(|client| client.get_document("application"));
        if let Ok(name) = application.and_then(|application| application.get_str("name")) {
            self.application = name.to_owned();
        }

        if body.get("replSetHeartbeat").is_ok_and(|command| command.is_some())
            && let Ok(from) = body.get_str("from")
        {
            self.member = from.to_owned();
        }
    }
}

impl Command {
    fn of(message: &Message) -> Option<Self> {
        let body = Some(message).filter(|message| message.kind() == MSG)?.body().ok()?;
        let (name, first) = body.iter().next()?.ok()?;
        let is_about_names = first.as_str() == Some("names");
        let is_statement = is_about_names || body.get("autocommit").ok()?.is_some();
        Some(Self { name: name.as_str().to_owned(), is_statement })
    }
}

impl PendingTrap {
    fn is_for(&self, command: &Command) -> bool {
        self.command.as_ref().map_or(command.is_statement, |name| *name == command.name)
    }
}

/// Returns a random number from 0 to 1.
fn random() -> f64 {
    (RandomState::new().hash_one(0) >> 11) as f64 / (1_u64 << 53) as f64
}
