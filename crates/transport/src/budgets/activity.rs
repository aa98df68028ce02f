//! The activity of a connection: its calls, requests and streams in flight, and the waits for their
//! absence or age. A wait polls, so that a call costs a few atomic additions.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use tokio::time::sleep;

use polynym_access::ActiveCount;

/// The number of polls without calls after which a connection is idle, its last answer sent.
const IDLE_POLLS: u32 = 10;
const IDLE_POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Work in flight on a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InFlight {
    /// A call.
    Call(CallGeneration),
    /// A request of the site. It does not age: the site limits its time, and uploads take long.
    SiteRequest,
    /// A stream that comes to an end by itself. It does not age.
    FiniteStream,
}

/// The calls that began between two checks for stuck ones. At the check after the next one, those
/// that are left are stuck, and their counter serves the next generation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallGeneration {
    Even,
    Odd,
}

/// The activity of one connection.
#[derive(Default)]
pub struct Activity {
    even_calls: AtomicUsize,
    odd_calls: AtomicUsize,
    /// Whether new calls belong to the odd generation.
    is_odd: AtomicBool,
    site_requests: AtomicUsize,
    finite_streams: AtomicUsize,
    /// All open streams.
    pub streams: Arc<ActiveCount>,
    /// Whether a call or a stream began since the last check.
    was_used: AtomicBool,
}

impl Activity {
    /// Begins a call.
    pub fn begin_call(&self) -> InFlight {
        let is_odd = self.is_odd.load(Ordering::Relaxed);
        self.begin(InFlight::Call(if is_odd { CallGeneration::Odd } else { CallGeneration::Even }))
    }

    /// Counts work as in flight.
    pub fn begin(&self, work: InFlight) -> InFlight {
        self.count(work).fetch_add(1, Ordering::Relaxed);
        self.note_use();
        work
    }

    /// Ends what was begun.
    pub fn end(&self, work: InFlight) {
        self.count(work).fetch_sub(1, Ordering::Relaxed);
    }

    /// Notes that a call or a stream began.
    pub fn note_use(&self) {
        self.was_used.store(true, Ordering::Relaxed);
    }

    const fn count(&self, work: InFlight) -> &AtomicUsize {
        match work {
            InFlight::Call(CallGeneration::Even) => &self.even_calls,
            InFlight::Call(CallGeneration::Odd) => &self.odd_calls,
            InFlight::SiteRequest => &self.site_requests,
            InFlight::FiniteStream => &self.finite_streams,
        }
    }

    fn has(&self, work: InFlight) -> bool {
        self.count(work).load(Ordering::Relaxed) > 0
    }

    /// Whether calls, requests of the site or finite streams are in flight.
    pub fn has_calls(&self) -> bool {
        let has_calls = |generation| self.has(InFlight::Call(generation));
        has_calls(CallGeneration::Even) || has_calls(CallGeneration::Odd) || self.has_long_calls()
    }

    /// Whether requests of the site or finite streams are in flight.
    fn has_long_calls(&self) -> bool {
        self.has(InFlight::SiteRequest) || self.has_finite_streams()
    }

    /// Whether finite streams are in flight.
    pub fn has_finite_streams(&self) -> bool {
        self.has(InFlight::FiniteStream)
    }

    /// Whether calls or streams are in flight.
    pub fn is_used(&self) -> bool {
        self.has_calls() || self.streams.get() > 0
    }

    /// Waits until there were no calls and no finite streams for half a second.
    pub async fn wait_idle(&self) {
        wait_while(|| self.has_calls()).await;
    }

    /// Waits until there were no requests of the site and no finite streams for half a second.
    pub async fn wait_without_long_calls(&self) {
        wait_while(|| self.has_long_calls()).await;
    }

    /// Waits until there were no calls or streams for `period`, at most twice that time.
    pub async fn wait_unused(&self, period: Duration) {
        loop {
            self.was_used.store(false, Ordering::Relaxed);
            sleep(period).await;
            if !self.is_used() && !self.was_used.load(Ordering::Relaxed) {
                return;
            }
        }
    }

    /// Waits until a call is older than `age_limit`, at most twice that age.
    pub async fn wait_stuck(&self, age_limit: Duration) {
        loop {
            sleep(age_limit).await;
            if self.has(InFlight::Call(self.next_generation())) {
                return;
            }
        }
    }

    /// Begins the next generation of calls.
    fn next_generation(&self) -> CallGeneration {
        let was_odd = self.is_odd.fetch_xor(true, Ordering::Relaxed);
        if was_odd { CallGeneration::Even } else { CallGeneration::Odd }
    }
}

/// Waits until `is_busy` was false for some time.
async fn wait_while(is_busy: impl Fn() -> bool) {
    let mut idle_polls = 0;
    while idle_polls < IDLE_POLLS {
        sleep(IDLE_POLL_INTERVAL).await;
        idle_polls = if is_busy() { 0 } else { idle_polls + 1 };
    }
}
