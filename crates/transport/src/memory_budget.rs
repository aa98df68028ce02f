//! The memory that connections use: calls in flight, partial messages, and answers that clients
//! have not read. Nothing here waits or locks. A reservation beyond a limit is refused, and the
//! connection polls for stuck calls.
//!
//! Each connection is guaranteed some bytes. Beyond those, its caller has a share of the bytes that
//! all connections share: a client that does not read uses up its own. A connection without a
//! caller so far has the guaranteed bytes alone.

use std::sync::atomic::{AtomicBool, AtomicIsize, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::sleep;

use polynym_access::{ActiveCount, Caller, CallerState, MethodCounts, Turn};

/// The bytes that every connection may reserve, whatever others do.
const GUARANTEED_BYTES: usize = 64 << 10;
/// The maximum bytes of one connection: many full answers to batches.
const MAX_CONNECTION_BYTES: usize = 16 << 20;
/// The maximum bytes of all connections together, beyond the guaranteed ones.
const MAX_SHARED_BYTES: isize = 32 << 20;
/// The number of polls without calls after which a connection is idle, its last answer sent.
const IDLE_POLLS: u32 = 10;
const IDLE_POLL_INTERVAL: Duration = Duration::from_millis(50);
/// The index of the requests of the site among the calls.
const SITE: usize = 2;
/// The index of the streams that come to an end by themselves.
const FINITE: usize = 3;

/// The usage of all connections.
#[derive(Default)]
pub struct GlobalBudget {
    /// The reserved bytes beyond the guaranteed ones.
    bytes: AtomicIsize,
    /// The open streams, by method.
    pub streams: MethodCounts,
}

/// The usage of one connection.
pub struct ConnectionBudget {
    pub total: Arc<GlobalBudget>,
    /// The caller whose share its bytes beyond the guaranteed ones are counted against.
    owner: OnceLock<Owner>,
    bytes: AtomicUsize,
    /// The calls in flight that began in an even era, those that began in an odd one, and those
    /// without an era: the requests of the site, and the finite streams with their messages.
    calls: [AtomicUsize; 4],
    era: AtomicUsize,
    /// The open streams, in all and by method.
    pub streams: Arc<ActiveCount>,
    pub method_streams: MethodCounts,
    /// The streams that end now.
    ending: watch::Sender<Ending>,
    /// The turn of its long computations, without credentials.
    turn: Turn,
    /// Whether a call or a stream began since the last check.
    was_used: AtomicBool,
}

/// The streams of a connection that end before their time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Ending {
    /// None.
    #[default]
    None,
    /// Those without an end of their own: the connection is old.
    Endless,
    /// All: its client's certificate is no longer valid.
    Distrusted,
    /// All: the server stops.
    Stopping,
}

/// A caller, and its share of the bytes of all connections.
struct Owner {
    state: Arc<CallerState>,
    share: isize,
    turn: Turn,
}

impl ConnectionBudget {
    pub fn new(total: Arc<GlobalBudget>) -> Self {
        let (owner, bytes, calls, era, was_used) = Default::default();
        let (streams, method_streams, ending, turn) = Default::default();
        Self { total, owner, bytes, calls, era, streams, method_streams, ending, turn, was_used }
    }

    /// Counts the bytes of the connection against the share of a caller. The first one stays.
    pub fn assign_to(&self, caller: &Caller) {
        self.owner.get_or_init(|| {
            let share = caller.share(MAX_SHARED_BYTES as usize).min(MAX_SHARED_BYTES as usize);
            let turn = self.turn_of(caller).clone();
            Owner { state: caller.state.clone(), share: share as isize, turn }
        });
    }

    /// The turn of a caller for long computations; without credentials, that of the connection.
    pub fn turn_of<'t>(&'t self, caller: &'t Caller) -> &'t Turn {
        if caller.is_anonymous() { &self.turn } else { &caller.state.turn }
    }

    /// Notes that a call or a stream began.
    pub fn note_use(&self) {
        self.was_used.store(true, Ordering::Relaxed);
    }

    /// Whether calls or finite streams are in flight.
    pub fn has_calls(&self) -> bool {
        (0..self.calls.len()).any(|kind| self.has(kind))
    }

    /// Whether finite streams are in flight.
    pub fn has_finite_streams(&self) -> bool {
        self.has(FINITE)
    }

    fn has(&self, kind: usize) -> bool {
        self.calls[kind].load(Ordering::Relaxed) > 0
    }

    /// Whether calls or streams are in flight.
    pub fn is_used(&self) -> bool {
        self.has_calls() || self.streams.get() > 0
    }

    /// Ends these streams with a status.
    pub fn end_streams(&self, ending: Ending) {
        self.ending.send_replace(ending);
    }

    /// The streams that end now.
    pub fn ending(&self) -> watch::Receiver<Ending> {
        self.ending.subscribe()
    }

    /// Waits until there were no calls and no finite streams for half a second.
    pub async fn idle(&self) {
        self.without(|| self.has_calls()).await;
    }

    /// Waits until there were no requests of the site and no finite streams for half a second.
    pub async fn without_long_calls(&self) {
        self.without(|| self.has(SITE) || self.has_finite_streams()).await;
    }

    async fn without(&self, is_busy: impl Fn() -> bool) {
        let mut idle_polls = 0;
        while idle_polls < IDLE_POLLS {
            sleep(IDLE_POLL_INTERVAL).await;
            idle_polls = if is_busy() { 0 } else { idle_polls + 1 };
        }
    }

    /// Waits until there were no calls or streams for `period`, at least twice that time.
    pub async fn unused(&self, period: Duration) {
        loop {
            self.was_used.store(false, Ordering::Relaxed);
            sleep(period).await;
            if !self.is_used() && !self.was_used.load(Ordering::Relaxed) {
                return;
            }
        }
    }

    /// Waits until a call is older than `age_limit`, at least twice that time. Requests of the site
    /// do not count: uploads take long.
    pub async fn stuck(&self, age_limit: Duration) {
        loop {
            sleep(age_limit).await;
            // New calls are now counted where those from before this era were.
            let next = self.era.fetch_add(1, Ordering::Relaxed).wrapping_add(1);
            if self.has(next % 2) {
                return;
            }
        }
    }

    /// Whether more calls may start: the client has read enough for their answers to fit.
    pub fn has_room(&self) -> bool {
        let own = self.bytes.load(Ordering::Relaxed);
        let has_shared_room = |owner: &Owner| {
            let of_caller = owner.state.shared_bytes.load(Ordering::Relaxed);
            let total = self.total.bytes.load(Ordering::Relaxed);
            own < MAX_CONNECTION_BYTES / 4 * 3
                && of_caller < owner.share / 4 * 3
                && total < MAX_SHARED_BYTES / 4 * 3
        };
        own < GUARANTEED_BYTES || self.owner.get().is_some_and(has_shared_room)
    }

    fn reserve(&self, bytes: usize) -> bool {
        let Some(owner) = self.owner.get() else { return self.reserve_guaranteed(bytes) };
        let before = self.bytes.fetch_add(bytes, Ordering::Relaxed);
        let more = shared_bytes(before + bytes) - shared_bytes(before);
        let add = |count: &AtomicIsize| count.fetch_add(more, Ordering::Relaxed) + more;
        let fits_shared = || {
            // Both are added to, whether they fit or not: a release subtracts from both.
            let (of_caller, total) = (add(&owner.state.shared_bytes), add(&self.total.bytes));
            of_caller <= owner.share && total <= MAX_SHARED_BYTES
        };
        let fits = (more == 0 || fits_shared()) && before + bytes <= MAX_CONNECTION_BYTES;
        if !fits {
            self.release(bytes);
        }
        fits
    }

    /// Reserves guaranteed bytes.
    fn reserve_guaranteed(&self, bytes: usize) -> bool {
        let add = |own: usize| Some(own + bytes).filter(|own| *own <= GUARANTEED_BYTES);
        self.bytes.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add).is_ok()
    }

    fn release(&self, bytes: usize) {
        let before = self.bytes.fetch_sub(bytes, Ordering::Relaxed);
        let less = shared_bytes(before) - shared_bytes(before - bytes);
        // Without a caller, no bytes beyond the guaranteed ones are reserved.
        if less > 0
            && let Some(owner) = self.owner.get()
        {
            owner.state.shared_bytes.fetch_sub(less, Ordering::Relaxed);
            self.total.bytes.fetch_sub(less, Ordering::Relaxed);
        }
    }
}

/// The bytes of a connection beyond the guaranteed ones.
const fn shared_bytes(bytes: usize) -> isize {
    bytes.saturating_sub(GUARANTEED_BYTES) as isize
}

/// Bytes reserved for a connection, and their call, until this is dropped.
pub struct Reservation {
    budget: Arc<ConnectionBudget>,
    bytes: usize,
    /// The index of its call.
    call: Option<usize>,
}

impl Reservation {
    /// Starts a call, in flight until its answer is sent.
    pub fn for_call(budget: &Arc<ConnectionBudget>) -> Self {
        Self::counted(budget, budget.era.load(Ordering::Relaxed) % 2)
    }

    /// Starts a request of the site, in flight until it is answered. It does not age: the site
    /// limits its time.
    pub fn for_site(budget: &Arc<ConnectionBudget>) -> Self {
        Self::counted(budget, SITE)
    }

    /// For a stream that comes to an end by itself. It does not age.
    pub fn for_finite(budget: &Arc<ConnectionBudget>) -> Self {
        Self::counted(budget, FINITE)
    }

    fn counted(budget: &Arc<ConnectionBudget>, call: usize) -> Self {
        budget.calls[call].fetch_add(1, Ordering::Relaxed);
        budget.note_use();
        Self { budget: budget.clone(), bytes: 0, call: Some(call) }
    }

    /// For a message of a stream without an end.
    pub fn for_message(budget: &Arc<ConnectionBudget>) -> Self {
        Self { budget: budget.clone(), bytes: 0, call: None }
    }

    /// The reserved bytes.
    #[cfg(test)]
    pub const fn bytes(&self) -> usize {
        self.bytes
    }

    /// The turn for long computations of the caller of the connection.
    pub fn turn(&self) -> &Turn {
        self.budget.owner.get().map_or(&self.budget.turn, |owner| &owner.turn)
    }

    /// Reserves more bytes. Returns whether they fit.
    pub fn reserve(&mut self, bytes: usize) -> bool {
        let fits = self.budget.reserve(bytes);
        self.bytes += if fits { bytes } else { 0 };
        fits
    }

    /// Releases bytes.
    pub fn release(&mut self, bytes: usize) {
        let less = bytes.min(self.bytes);
        if less > 0 {
            self.bytes -= less;
            self.budget.release(less);
        }
    }

    /// Replaces the reserved bytes. Returns whether they fit; fewer always do.
    pub fn resize(&mut self, bytes: usize) -> bool {
        if bytes <= self.bytes {
            self.release(self.bytes - bytes);
            return true;
        }
        self.release(self.bytes);
        self.reserve(bytes)
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.release(self.bytes);
        if let Some(call) = self.call {
            self.budget.calls[call].fetch_sub(1, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests;
