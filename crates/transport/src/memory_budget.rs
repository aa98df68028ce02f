//! The memory that connections use: calls in flight, partial messages, and answers that clients
//! have not read. Nothing here waits or locks. A reservation beyond a limit is refused, and the
//! connection polls for stuck calls.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicIsize, AtomicUsize, Ordering};
use std::time::Duration;

use tokio::time::sleep;

/// The bytes that every connection may reserve, whatever others do.
const GUARANTEED_BYTES: usize = 64 << 10;
/// The maximum bytes of one connection: many full answers to batches.
const MAX_CONNECTION_BYTES: usize = 16 << 20;
/// The maximum bytes of all connections together, beyond the guaranteed ones.
const MAX_SHARED_BYTES: isize = 32 << 20;
/// The maximum number of long-lived streams, such as watches, of one connection and of all.
const MAX_CONNECTION_STREAMS: usize = 8;
const MAX_TOTAL_STREAMS: usize = 1_024;
/// The number of polls without calls after which a connection is idle, its last answer sent.
const IDLE_POLLS: u32 = 10;
const IDLE_POLL_INTERVAL: Duration = Duration::from_millis(50);

/// The usage of all connections.
#[derive(Default)]
pub struct GlobalBudget {
    /// The reserved bytes beyond the guaranteed ones.
    bytes: AtomicIsize,
    streams: AtomicUsize,
}

/// The usage of one connection.
pub struct ConnectionBudget {
    total: Arc<GlobalBudget>,
    bytes: AtomicUsize,
    /// The calls in flight that began in an even era, and in an odd one.
    calls: [AtomicUsize; 2],
    era: AtomicUsize,
    streams: AtomicUsize,
    /// Whether a call or a stream began since the last check.
    was_used: AtomicBool,
}

impl ConnectionBudget {
    pub fn new(total: Arc<GlobalBudget>) -> Self {
        let (bytes, calls, era, streams, was_used) = Default::default();
        Self { total, bytes, calls, era, streams, was_used }
    }

    /// Whether calls are in flight, not counting long-lived streams.
    pub fn has_calls(&self) -> bool {
        self.calls.iter().any(|calls| calls.load(Ordering::Relaxed) > 0)
    }

    /// Waits until there were no calls for half a second.
    pub async fn idle(&self) {
        let mut idle_polls = 0;
        while idle_polls < IDLE_POLLS {
            sleep(IDLE_POLL_INTERVAL).await;
            idle_polls = if self.has_calls() { 0 } else { idle_polls + 1 };
        }
    }

    /// Waits until there were no calls or streams for `period`, at least twice that time.
    pub async fn unused(&self, period: Duration) {
        loop {
            self.was_used.store(false, Ordering::Relaxed);
            sleep(period).await;
            let is_open = self.has_calls() || self.streams.load(Ordering::Relaxed) > 0;
            if !is_open && !self.was_used.load(Ordering::Relaxed) {
                return;
            }
        }
    }

    /// Waits until a call is older than `age_limit`, at least twice that time.
    pub async fn stuck(&self, age_limit: Duration) {
        loop {
            sleep(age_limit).await;
            // New calls are now counted where those from before this era were.
            let next = self.era.fetch_add(1, Ordering::Relaxed).wrapping_add(1);
            if self.calls[next % 2].load(Ordering::Relaxed) > 0 {
                return;
            }
        }
    }

    /// Whether more calls may start: the client has read enough for their answers to fit.
    pub fn has_room(&self) -> bool {
        let own = self.bytes.load(Ordering::Relaxed);
        let total = self.total.bytes.load(Ordering::Relaxed);
        own < GUARANTEED_BYTES
            || (own < MAX_CONNECTION_BYTES / 4 * 3 && total < MAX_SHARED_BYTES / 2)
    }

    fn reserve(&self, bytes: usize) -> bool {
        let before = self.bytes.fetch_add(bytes, Ordering::Relaxed);
        let more = shared_bytes(before + bytes) - shared_bytes(before);
        let total =
            if more > 0 { self.total.bytes.fetch_add(more, Ordering::Relaxed) + more } else { 0 };
        let fits = before + bytes <= MAX_CONNECTION_BYTES && total <= MAX_SHARED_BYTES;
        if !fits {
            self.release(bytes);
        }
        fits
    }

    fn release(&self, bytes: usize) {
        let before = self.bytes.fetch_sub(bytes, Ordering::Relaxed);
        let less = shared_bytes(before) - shared_bytes(before - bytes);
        if less > 0 {
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
    era: Option<usize>,
}

impl Reservation {
    /// Starts a call, in flight until its answer is sent.
    pub fn for_call(budget: &Arc<ConnectionBudget>) -> Self {
        let era = budget.era.load(Ordering::Relaxed) % 2;
        budget.calls[era].fetch_add(1, Ordering::Relaxed);
        budget.was_used.store(true, Ordering::Relaxed);
        Self { budget: budget.clone(), bytes: 0, era: Some(era) }
    }

    /// The reserved bytes.
    #[cfg(test)]
    pub const fn bytes(&self) -> usize {
        self.bytes
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

    /// Replaces the reserved bytes. Returns whether they fit.
    pub fn resize(&mut self, bytes: usize) -> bool {
        self.release(self.bytes);
        self.reserve(bytes)
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.release(self.bytes);
        if let Some(era) = self.era {
            self.budget.calls[era].fetch_sub(1, Ordering::Relaxed);
        }
    }
}

/// A long-lived stream, until this is dropped.
pub struct OpenStream(Arc<ConnectionBudget>);

impl OpenStream {
    /// Opens a stream, within the limits.
    pub fn new(budget: &Arc<ConnectionBudget>) -> Option<Self> {
        let stream = Self(budget.clone());
        budget.was_used.store(true, Ordering::Relaxed);
        let own = budget.streams.fetch_add(1, Ordering::Relaxed);
        let all = budget.total.streams.fetch_add(1, Ordering::Relaxed);
        (own < MAX_CONNECTION_STREAMS && all < MAX_TOTAL_STREAMS).then_some(stream)
    }

    /// A reservation for a message of the stream.
    pub fn reserve_message(&self) -> Reservation {
        Reservation { budget: self.0.clone(), bytes: 0, era: None }
    }

    /// A reservation until the client reads on. It ages like a call.
    pub fn wait_for_client(&self) -> Reservation {
        Reservation::for_call(&self.0)
    }
}

impl Drop for OpenStream {
    fn drop(&mut self) {
        self.0.streams.fetch_sub(1, Ordering::Relaxed);
        self.0.total.streams.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn budget(total: &Arc<GlobalBudget>) -> Arc<ConnectionBudget> {
        Arc::new(ConnectionBudget::new(total.clone()))
    }

    #[test]
    fn a_connection_stays_within_its_limit_and_releases_everything() {
        let total = Arc::new(GlobalBudget::default());
        let budget = budget(&total);
        let mut reservations: Vec<_> = (0..17).map(|_| Reservation::for_call(&budget)).collect();
        let held: Vec<_> = reservations
            .iter_mut()
            .map(|reservation| reservation.reserve(MAX_CONNECTION_BYTES / 16))
            .collect();
        assert_eq!(held.iter().filter(|held| **held).count(), 16);
        assert!(budget.has_calls());
        reservations[0].release(MAX_CONNECTION_BYTES / 16);
        assert!(reservations[16].resize(MAX_CONNECTION_BYTES / 16));
        reservations.clear();
        assert_eq!(
            (budget.bytes.load(Ordering::Relaxed), total.bytes.load(Ordering::Relaxed)),
            (0, 0)
        );
        assert!(!budget.has_calls());
    }

    #[test]
    fn each_connection_has_its_guaranteed_bytes() {
        let total = Arc::new(GlobalBudget::default());
        let mut greedy: Vec<_> = (0..3)
            .map(|_| Reservation::for_call(&budget(&total)))
            .map(|mut reservation| (reservation.reserve(MAX_CONNECTION_BYTES), reservation))
            .collect();
        assert!(!greedy.pop().is_some_and(|(held, _)| held), "the third exceeds the total");
        let mut modest = Reservation::for_call(&budget(&total));
        assert!(
            modest.budget.has_room()
                && modest.reserve(GUARANTEED_BYTES)
                && !modest.reserve(4 << 20)
        );
        assert!(!modest.budget.has_room());
        drop(greedy);
        assert!(modest.reserve(4 << 20));
    }

    #[test]
    fn streams_are_counted_apart_from_calls() {
        let budget = budget(&Arc::default());
        let mut open: Vec<_> =
            (0..MAX_CONNECTION_STREAMS).filter_map(|_| OpenStream::new(&budget)).collect();
        assert_eq!((open.len(), budget.has_calls()), (MAX_CONNECTION_STREAMS, false));
        assert!(OpenStream::new(&budget).is_none());
        open.pop();
        assert!(OpenStream::new(&budget).is_some());
    }

    #[test]
    fn the_streams_of_all_connections_are_bounded() {
        let total = Arc::new(GlobalBudget::default());
        let budgets: Vec<_> = (0..MAX_TOTAL_STREAMS).map(|_| budget(&total)).collect();
        let mut open: Vec<_> = budgets.iter().flat_map(OpenStream::new).collect();
        assert_eq!(open.len(), MAX_TOTAL_STREAMS);
        assert!(OpenStream::new(&budgets[0]).is_none());
        open.pop();
        assert!(OpenStream::new(&budgets[0]).is_some());
    }

    #[tokio::test]
    async fn a_connection_is_unused_after_a_period_without_calls() {
        let budget = budget(&Arc::default());
        let limit = Duration::from_millis(200);
        let unused = || tokio::time::timeout(3 * limit, budget.unused(limit));
        let stream = OpenStream::new(&budget);
        assert!(unused().await.is_err(), "a stream is open");
        drop(stream);
        let calls = async {
            for _ in 0..40 {
                drop(Reservation::for_call(&budget));
                sleep(limit / 10).await;
            }
        };
        let (outcome, ()) = tokio::join!(unused(), calls);
        assert!(outcome.is_err(), "calls came again and again");
        assert!(unused().await.is_ok());
    }

    #[tokio::test]
    async fn a_call_that_never_ends_is_stuck() {
        let budget = budget(&Arc::default());
        let limit = Duration::from_secs(1);
        let quiet = tokio::time::timeout(3 * limit, budget.stuck(limit));
        let short = async {
            for _ in 0..12 {
                let call = Reservation::for_call(&budget);
                sleep(limit / 4).await;
                drop(call);
            }
        };
        let (quiet, ()) = tokio::join!(quiet, short);
        assert!(quiet.is_err(), "short calls, one after the other, are not stuck");
        let _call = Reservation::for_call(&budget);
        assert!(tokio::time::timeout(60 * limit, budget.stuck(limit)).await.is_ok());
    }
}
