//! The open connections to all addresses of the servers. Calls take turns among them. What is lost
//! is connected again by the next call, in a task of its own.

use std::error::Error as StdError;
use std::fmt;
use std::io;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use futures_util::future::join_all;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until, timeout_at};

use super::Connection;
use super::dial::{Address, Dial};
use crate::attempts::backoff::Backoff;
use crate::error::{Error, Kind};

/// How many attempts in a row reach their deadlines without an answer on a dead connection.
const SILENT_DEADLINES: u32 = 2;

/// The connections of a client.
pub struct Pool {
    shared: Arc<Shared>,
    /// Whether calls wait for a server that cannot be reached.
    wait_for_ready: bool,
    /// For calls by the caller's own rules.
    own: OnceLock<Connection>,
}

struct Shared {
    dials: Vec<Arc<Dial>>,
    backoff: Backoff,
    state: Mutex<State>,
    /// A connection is open, or an attempt to connect has ended.
    changed: Notify,
}

struct State {
    open: Vec<Open>,
    /// For each server.
    servers: Vec<Progress>,
    turn: usize,
    last_id: u64,
    /// Why the last address could not be reached.
    cause: Arc<dyn StdError + Send + Sync>,
}

/// How far a server is from having a connection to each of its addresses.
#[derive(Clone)]
struct Progress {
    is_connecting: bool,
    failures: u32,
    /// When to connect what is missing; none if nothing is.
    due: Option<Instant>,
}

/// An open connection. Calls that have it go on once the pool has left it.
#[derive(Clone)]
pub struct Link {
    id: u64,
    server: usize,
    address: Address,
    pub connection: Connection,
}

impl fmt::Debug for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Link").field("address", &self.address).finish_non_exhaustive()
    }
}

struct Open {
    link: Link,
    /// Whether the server has answered on it: before, it may be busy with its start.
    has_answered: bool,
    /// The attempts since the last answer that have reached their deadlines.
    unanswered: u32,
}

impl Pool {
    pub fn new(dials: Vec<Arc<Dial>>, backoff: Backoff, wait_for_ready: bool) -> Self {
        let progress = Progress { is_connecting: false, failures: 0, due: Some(Instant::now()) };
        let state = State {
            open: Vec::new(),
            servers: vec![progress; dials.len()],
            turn: 0,
            last_id: 0,
            cause: Arc::new(io::Error::from(io::ErrorKind::NotConnected)),
        };
        let (state, changed) = (Mutex::new(state), Notify::new());
        let shared = Arc::new(Shared { dials, backoff, state, changed });
        Self { shared, wait_for_ready, own: OnceLock::new() }
    }

    /// The connection of the next call, once there is one; that of another address than `former`,
    /// if any.
    pub async fn link(&self, former: Option<&Link>, limit: Instant) -> Result<Link, Error> {
        let found = timeout_at(limit, self.wait(former, limit)).await;
        found.unwrap_or(None).ok_or_else(|| Error::unreachable(self.shared.state().cause.clone()))
    }

    async fn wait(&self, former: Option<&Link>, limit: Instant) -> Option<Link> {
        let mut is_new = true;
        loop {
            let mut changed = pin!(self.shared.changed.notified());
            changed.as_mut().enable();
            self.shared.connect_due(is_new && !self.wait_for_ready);
            let (link, due) = {
                let mut state = self.shared.state();
                (state.next(former), state.due())
            };
            match due {
                _ if link.is_some() => return link,
                None => changed.await,
                Some(due) if !self.wait_for_ready || due > limit => return None,
                Some(due) => sleep_until(due).await,
            }
            is_new = false;
        }
    }

    /// A connection to the first server for calls by the caller's own rules.
    pub fn connection(&self) -> Connection {
        self.own.get_or_init(|| self.shared.dials[0].connect_lazy()).clone()
    }

    /// Notes the outcome of an attempt. A lost connection is left, and so is a silent one. Returns
    /// whether the outcome is more than that of other attempts on a connection that was left.
    pub fn note(&self, link: &Link, error: Option<&Error>) -> bool {
        let is_lost = error.is_some_and(Error::is_of_connection);
        let mut state = self.shared.state();
        let Some(open) = state.open.iter_mut().find(|open| open.link.id == link.id) else {
            return !is_lost;
        };
        let is_late = |error: &Error| error.kind() == Kind::DeadlineExceeded;
        match error {
            Some(_) if is_lost => state.leave(link),
            Some(error) if error.reason().is_empty() && is_late(error) => {
                open.unanswered += u32::from(open.has_answered);
                if open.unanswered >= SILENT_DEADLINES {
                    state.leave(link);
                }
            }
            Some(error) if error.reason().is_empty() => {}
            _ => (open.has_answered, open.unanswered) = (true, 0),
        }
        true
    }

    /// Leaves a connection that seems dead.
    pub fn leave(&self, link: &Link) {
        self.shared.state().leave(link);
    }

    /// The address of a connection.
    pub fn name(&self, link: &Link) -> String {
        self.shared.dials[link.server].name(link.address)
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins to connect to the servers that lack a connection; with `at_once`, without a delay
    /// after a failure.
    fn connect_due(self: &Arc<Self>, at_once: bool) {
        let now = Instant::now();
        let begin = |progress: &mut Progress| {
            let is_due = progress.due.is_some_and(|due| at_once || due <= now);
            let begins = is_due && !progress.is_connecting;
            progress.is_connecting |= begins;
            begins
        };
        let servers: Vec<usize> = {
            let mut state = self.state();
            let all = state.servers.iter_mut().enumerate();
            all.filter_map(|(server, progress)| begin(progress).then_some(server)).collect()
        };
        // Not under the lock: a runtime that ends drops the task at once.
        for server in servers {
            let connecting = Connecting { shared: Arc::clone(self), server, addresses: Vec::new() };
            tokio::spawn(connecting.run());
        }
    }
}

impl State {
    /// The connection whose turn it is. After a failed attempt, another takes no turn.
    fn next(&mut self, former: Option<&Link>) -> Option<Link> {
        let start = self.turn % self.open.len().max(1);
        self.turn = start + usize::from(former.is_none());
        let (before, after) = self.open.split_at(start);
        let mut links = after.iter().chain(before).map(|open| &open.link);
        let is_other = |link: &&Link| former.is_none_or(|former| !link.has_address_of(former));
        links.clone().find(is_other).or_else(|| links.next()).cloned()
    }

    /// When to connect next; none while an attempt to connect goes on.
    fn due(&self) -> Option<Instant> {
        let is_connecting = self.servers.iter().any(|progress| progress.is_connecting);
        let due = self.servers.iter().filter_map(|progress| progress.due).min();
        due.filter(|_| !is_connecting)
    }

    fn leave(&mut self, link: &Link) {
        let count = self.open.len();
        self.open.retain(|open| open.link.id != link.id);
        if self.open.len() < count {
            self.servers[link.server].due = Some(Instant::now());
        }
    }

    fn is_open(&self, server: usize, address: &Address) -> bool {
        let is_it = |open: &Open| open.link.server == server && open.link.address == *address;
        self.open.iter().any(is_it)
    }
}

impl Link {
    fn has_address_of(&self, other: &Self) -> bool {
        (self.server, self.address) == (other.server, other.address)
    }
}

/// Connects to the addresses of a server that have no connection. If its runtime ends before, that
/// is a failure like others.
struct Connecting {
    shared: Arc<Shared>,
    server: usize,
    /// What the server has; none if its name cannot be resolved.
    addresses: Vec<Address>,
}

impl Connecting {
    async fn run(mut self) {
        match self.shared.dials[self.server].addresses().await {
            Ok(addresses) => self.addresses = addresses,
            Err(error) => self.shared.state().cause = Arc::new(error),
        }
        let missing: Vec<Address> = {
            let mut state = self.shared.state();
            // Calls on addresses that the server no longer has go on.
            let is_former =
                |link: &Link| link.server == self.server && !self.addresses.contains(&link.address);
            if !self.addresses.is_empty() {
                state.open.retain(|open| !is_former(&open.link));
            }
            let is_missing = |address: &&Address| !state.is_open(self.server, address);
            self.addresses.iter().filter(is_missing).copied().collect()
        };
        join_all(missing.into_iter().map(|address| self.connect(address))).await;
    }

    async fn connect(&self, address: Address) {
        let outcome = self.shared.dials[self.server].connect(address).await;
        let mut state = self.shared.state();
        match outcome {
            Ok(connection) => {
                state.last_id += 1;
                let link = Link { id: state.last_id, server: self.server, address, connection };
                state.open.push(Open { link, has_answered: false, unanswered: 0 });
                drop(state);
                self.shared.changed.notify_waiters();
            }
            Err(error) => state.cause = Arc::new(error),
        }
    }
}

impl Drop for Connecting {
    fn drop(&mut self) {
        let mut state = self.shared.state();
        let is_missing = |address: &Address| !state.is_open(self.server, address);
        let is_failure = self.addresses.is_empty() || self.addresses.iter().any(is_missing);
        let progress = &mut state.servers[self.server];
        progress.is_connecting = false;
        progress.failures = if is_failure { progress.failures + 1 } else { 0 };
        let delay = self.shared.backoff.delay(progress.failures);
        progress.due = is_failure.then(|| Instant::now() + delay);
        drop(state);
        self.shared.changed.notify_waiters();
    }
}

#[cfg(test)]
mod tests;
