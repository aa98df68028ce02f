//! The open connections to all addresses of the servers. Calls take turns among them. The
//! next call opens a lost connection again, in a task of its own.

use std::collections::BTreeMap;
use std::error::Error as StdError;
use std::fmt;
use std::io;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

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
    /// The text of an error without a connection.
    unreachable: Arc<str>,
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

/// Why an address cannot be reached.
type Cause = Arc<dyn StdError + Send + Sync>;

fn cause(error: impl StdError + Send + Sync + 'static) -> Cause {
    Arc::new(error)
}

struct State {
    open: Vec<Open>,
    steps: BTreeMap<Step, Progress>,
    turn: usize,
    last_id: u64,
    /// Why the last address could not be reached.
    cause: Cause,
}

/// A step of opening connections. Steps run independently of each other.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Step {
    /// Finds the addresses of a server.
    Resolve(usize),
    /// Connects to an address of a server.
    Connect(usize, Address),
}

#[derive(Default)]
struct Progress {
    is_running: bool,
    failures: u32,
    /// When to begin; none if nothing is missing.
    due: Option<Instant>,
}

impl Progress {
    fn due_now() -> Self {
        Self { due: Some(Instant::now()), ..Self::default() }
    }
}

/// An open connection. Calls that have it go on once the pool has left it.
#[derive(Clone)]
pub struct Link {
    id: u64,
    server: usize,
    address: Address,
    pub connection: Connection,
    /// Whether a call that was lost with it was counted.
    is_loss_counted: Arc<AtomicBool>,
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
        let resolve = |server| (Step::Resolve(server), Progress::due_now());
        let state = State {
            open: Vec::new(),
            steps: (0..dials.len()).map(resolve).collect(),
            turn: 0,
            last_id: 0,
            cause: Arc::new(io::Error::from(io::ErrorKind::NotConnected)),
        };
        let (state, changed) = (Mutex::new(state), Notify::new());
        let unreachable = unreachable(&dials);
        let shared = Arc::new(Shared { dials, backoff, state, changed });
        Self { shared, wait_for_ready, unreachable, own: OnceLock::new() }
    }

    /// The text of an error without a connection, which names the servers.
    pub fn unreachable(&self) -> &Arc<str> {
        &self.unreachable
    }

    /// The connection of the next call, once there is one; that of another address than `former`,
    /// if any.
    pub async fn link(&self, former: Option<&Link>, limit: Instant) -> Result<Link, Error> {
        let found = timeout_at(limit, self.wait(former, limit)).await;
        let cause = || self.shared.state().cause.clone();
        found.unwrap_or(None).ok_or_else(|| Error::unreachable(cause(), &self.unreachable))
    }

    async fn wait(&self, former: Option<&Link>, limit: Instant) -> Option<Link> {
        let mut is_new = true;
        loop {
            let mut changed = pin!(self.shared.changed.notified());
            changed.as_mut().enable();
            self.shared.begin_due(is_new && !self.wait_for_ready);
            let (link, is_connecting, due) = {
                let mut state = self.shared.state();
                (state.next(former), state.is_connecting(), state.due())
            };
            if link.is_some() {
                return link;
            }
            let due = due.filter(|due| self.wait_for_ready && *due <= limit);
            if !is_connecting && due.is_none() {
                return None;
            }
            // The limit ends the wait otherwise.
            tokio::select! {
                () = changed => {}
                () = sleep_until(due.unwrap_or(limit)) => {}
            }
            is_new = false;
        }
    }

    /// A connection to the first server for calls by the caller's own rules.
    pub fn connection(&self) -> Connection {
        self.own.get_or_init(|| self.shared.dials[0].connect_lazy()).clone()
    }

    /// Notes the outcome of an attempt. A lost connection is left, and so is a silent one. Returns
    /// whether the outcome counts: of the attempts that are lost with a connection, the first does.
    pub fn note(&self, link: &Link, error: Option<&Error>) -> bool {
        self.note_health(link, error);
        let is_lost = error.is_some_and(|error| error.is_of_connection() && !error.is_never_sent());
        !is_lost || !link.is_loss_counted.swap(true, Ordering::Relaxed)
    }

    fn note_health(&self, link: &Link, error: Option<&Error>) {
        let is_lost = error.is_some_and(Error::is_of_connection);
        let mut state = self.shared.state();
        let Some(open) = state.open.iter_mut().find(|open| open.link.id == link.id) else {
            return;
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

fn unreachable(dials: &[Arc<Dial>]) -> Arc<str> {
    let names: Vec<_> = dials.iter().map(|dial| dial.name(None)).collect();
    let text = match names.as_slice() {
        [name] => format!("the server {name} cannot be reached"),
        names => format!("none of the servers {} can be reached", names.join(", ")),
    };
    text.into()
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins the steps that are due; with `at_once`, without a delay after a failure.
    fn begin_due(self: &Arc<Self>, at_once: bool) {
        let now = Instant::now();
        let begin = |progress: &mut Progress| {
            let is_due = progress.due.is_some_and(|due| at_once || due <= now);
            let begins = is_due && !progress.is_running;
            if begins {
                (progress.is_running, progress.due) = (true, None);
            }
            begins
        };
        let steps: Vec<Step> = {
            let mut state = self.state();
            let all = state.steps.iter_mut();
            all.filter_map(|(step, progress)| begin(progress).then_some(*step)).collect()
        };
        // Not under the lock: a runtime that ends drops the task at once.
        for step in steps {
            tokio::spawn(Running { shared: Arc::clone(self), step, is_done: false }.run());
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

    fn is_connecting(&self) -> bool {
        self.steps.values().any(|progress| progress.is_running)
    }

    /// When the next step begins.
    fn due(&self) -> Option<Instant> {
        let waiting = self.steps.values().filter(|progress| !progress.is_running);
        waiting.filter_map(|progress| progress.due).min()
    }

    fn leave(&mut self, link: &Link) {
        let count = self.open.len();
        self.open.retain(|open| open.link.id != link.id);
        if self.open.len() < count {
            for step in [Step::Resolve(link.server), Step::Connect(link.server, link.address)] {
                self.set_due(step, Instant::now());
            }
        }
    }

    fn set_due(&mut self, step: Step, due: Instant) {
        if let Some(progress) = self.steps.get_mut(&step) {
            progress.due = Some(due);
        }
    }

    /// Sets the addresses of a server. Calls on those that it no longer has go on.
    fn set_addresses(&mut self, server: usize, addresses: &[Address]) {
        let is_former = |of: usize, address: &Address| of == server && !addresses.contains(address);
        self.open.retain(|open| !is_former(open.link.server, &open.link.address));
        self.steps.retain(|step, _| match step {
            Step::Resolve(_) => true,
            Step::Connect(of, address) => !is_former(*of, address),
        });
        for address in addresses {
            let step = Step::Connect(server, *address);
            self.steps.entry(step).or_insert_with(Progress::due_now);
        }
    }

    /// Ends a step. After a failure it is repeated; an address is also resolved anew.
    fn end(&mut self, step: Step, is_done: bool, backoff: Backoff) {
        let Some(progress) = self.steps.get_mut(&step) else { return };
        progress.is_running = false;
        progress.failures = if is_done { 0 } else { progress.failures + 1 };
        if is_done {
            return;
        }
        let due = Instant::now() + backoff.delay(progress.failures);
        progress.due = Some(due);
        if let Step::Connect(server, _) = step
            && let Some(resolve) = self.steps.get_mut(&Step::Resolve(server))
        {
            resolve.due.get_or_insert(due);
        }
    }

    /// Adds a connection, unless the server no longer has its address.
    fn add(&mut self, server: usize, address: Address, connection: Connection) {
        if self.steps.contains_key(&Step::Connect(server, address)) {
            self.last_id += 1;
            let link = Link {
                id: self.last_id,
                server,
                address,
                connection,
                is_loss_counted: Arc::default(),
            };
            self.open.push(Open { link, has_answered: false, unanswered: 0 });
        }
    }
}

impl Link {
    fn has_address_of(&self, other: &Self) -> bool {
        (self.server, self.address) == (other.server, other.address)
    }
}

/// A step in a task of its own. If its runtime ends before, that is a failure like others.
struct Running {
    shared: Arc<Shared>,
    step: Step,
    is_done: bool,
}

impl Running {
    async fn run(mut self) {
        let outcome = match self.step {
            Step::Resolve(server) => self.resolve(server).await,
            Step::Connect(server, address) => self.connect(server, address).await,
        };
        match outcome {
            Ok(()) => self.is_done = true,
            Err(cause) => self.shared.state().cause = cause,
        }
        // Before this one ends: a call waits as long as one goes on.
        self.shared.begin_due(false);
    }

    async fn resolve(&self, server: usize) -> Result<(), Cause> {
        let addresses = self.shared.dials[server].addresses().await.map_err(cause)?;
        if addresses.is_empty() {
            return Err(cause(io::Error::from(io::ErrorKind::NotFound)));
        }
        self.shared.state().set_addresses(server, &addresses);
        Ok(())
    }

    async fn connect(&self, server: usize, address: Address) -> Result<(), Cause> {
        let connection = self.shared.dials[server].connect(address).await.map_err(cause)?;
        self.shared.state().add(server, address, connection);
        Ok(())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.shared.state().end(self.step, self.is_done, self.shared.backoff);
        self.shared.changed.notify_waiters();
    }
}

#[cfg(test)]
mod tests;
