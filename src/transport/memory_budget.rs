//! The memory that a connection makes the server hold: calls in flight, parts of messages, and
//! answers that the client has not taken. Nothing here waits or locks. A request beyond a bound is
//! refused, and the connection finds out by polling.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicIsize, AtomicUsize, Ordering};
use std::time::Duration;

use tokio::time::sleep;

/// Bytes that every connection may have held, whatever others do.
const SHARE: usize = 64 << 10;
/// Bytes that one connection may have held: many full answers to batches.
const MOST: usize = 16 << 20;
/// Bytes beyond their shares that all connections together may have held.
const TOTAL: isize = 32 << 20;
/// Streams that stay open, as those do that watch health, on one connection and on all.
const STREAMS: usize = 8;
const ALL_STREAMS: usize = 1_024;
/// The time without calls after which a connection counts as idle, in steps of `STEP`: the last
/// answer is on its way then.
const QUIET: u32 = 10;
const STEP: Duration = Duration::from_millis(50);

/// The usage of all connections.
#[derive(Default)]
pub struct GlobalBudget {
    /// The bytes beyond their shares that they have held.
    bytes: AtomicIsize,
    streams: AtomicUsize,
}

/// The usage of one connection.
pub struct ConnectionBudget {
    total: Arc<GlobalBudget>,
    bytes: AtomicUsize,
    /// Calls under way: those that began in an even era, and those that began in an odd one.
    calls: [AtomicUsize; 2],
    era: AtomicUsize,
    streams: AtomicUsize,
    /// Whether a call or a stream began since this was last looked at.
    used: AtomicBool,
}

impl ConnectionBudget {
    pub fn new(total: Arc<GlobalBudget>) -> Self {
        let (bytes, calls, era, streams, used) = Default::default();
        Self { total, bytes, calls, era, streams, used }
    }

    /// Whether calls are under way; streams that stay open are none.
    pub fn has_calls(&self) -> bool {
        self.calls.iter().any(|calls| calls.load(Ordering::Relaxed) > 0)
    }

    /// Returns once there have been no calls for a moment.
    pub async fn idle(&self) {
        let mut quiet = 0;
        while quiet < QUIET {
            sleep(STEP).await;
            quiet = if self.has_calls() { 0 } else { quiet + 1 };
        }
    }

    /// Returns once nothing was under way for `least`, though not before twice that time.
    pub async fn unused(&self, least: Duration) {
        loop {
            self.used.store(false, Ordering::Relaxed);
            sleep(least).await;
            let is_open = self.has_calls() || self.streams.load(Ordering::Relaxed) > 0;
            if !is_open && !self.used.load(Ordering::Relaxed) {
                return;
            }
        }
    }

    /// Returns where calls are under way that began longer ago than `most`, though not before twice
    /// that time.
    pub async fn stuck(&self, most: Duration) {
        loop {
            sleep(most).await;
            // From now on, calls are counted where those were that began before the present era.
            let next = self.era.fetch_add(1, Ordering::Relaxed).wrapping_add(1);
            if self.calls[next % 2].load(Ordering::Relaxed) > 0 {
                return;
            }
        }
    }

    /// Whether a connection with so much unread may have further calls worked on. Their answers
    /// would hardly fit.
    pub fn has_room(&self) -> bool {
        let own = self.bytes.load(Ordering::Relaxed);
        let total = self.total.bytes.load(Ordering::Relaxed);
        own < SHARE || (own < MOST / 4 * 3 && total < TOTAL / 2)
    }

    fn hold(&self, bytes: usize) -> bool {
        let before = self.bytes.fetch_add(bytes, Ordering::Relaxed);
        let more = surplus(before + bytes) - surplus(before);
        let total =
            if more > 0 { self.total.bytes.fetch_add(more, Ordering::Relaxed) + more } else { 0 };
        let fits = before + bytes <= MOST && total <= TOTAL;
        if !fits {
            self.release(bytes);
        }
        fits
    }

    fn release(&self, bytes: usize) {
        let before = self.bytes.fetch_sub(bytes, Ordering::Relaxed);
        let less = surplus(before) - surplus(before - bytes);
        if less > 0 {
            self.total.bytes.fetch_sub(less, Ordering::Relaxed);
        }
    }
}

/// The bytes of a connection beyond its share.
const fn surplus(bytes: usize) -> isize {
    bytes.saturating_sub(SHARE) as isize
}

/// Bytes that are held for a connection until this is dropped, and the call that they belong to.
pub struct Reservation {
    budget: Arc<ConnectionBudget>,
    bytes: usize,
    era: Option<usize>,
}

impl Reservation {
    /// A call: under way from now until its answer is taken.
    pub fn call(budget: &Arc<ConnectionBudget>) -> Self {
        let era = budget.era.load(Ordering::Relaxed) % 2;
        budget.calls[era].fetch_add(1, Ordering::Relaxed);
        budget.used.store(true, Ordering::Relaxed);
        Self { budget: budget.clone(), bytes: 0, era: Some(era) }
    }

    /// The bytes that are held.
    #[cfg(test)]
    pub const fn bytes(&self) -> usize {
        self.bytes
    }

    /// Holds so many bytes more, if that many may be held.
    pub fn hold(&mut self, bytes: usize) -> bool {
        let fits = self.budget.hold(bytes);
        self.bytes += if fits { bytes } else { 0 };
        fits
    }

    /// Holds so many bytes less.
    pub fn release(&mut self, bytes: usize) {
        let less = bytes.min(self.bytes);
        if less > 0 {
            self.bytes -= less;
            self.budget.release(less);
        }
    }

    /// Holds so many bytes instead of those of before, if that many may be held.
    pub fn replace(&mut self, bytes: usize) -> bool {
        self.release(self.bytes);
        self.hold(bytes)
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

/// A stream that stays open until this is dropped.
pub struct OpenStream(Arc<ConnectionBudget>);

impl OpenStream {
    /// One more stream, if there may be one.
    pub fn new(budget: &Arc<ConnectionBudget>) -> Option<Self> {
        let stream = Self(budget.clone());
        budget.used.store(true, Ordering::Relaxed);
        let own = budget.streams.fetch_add(1, Ordering::Relaxed);
        let all = budget.total.streams.fetch_add(1, Ordering::Relaxed);
        (own < STREAMS && all < ALL_STREAMS).then_some(stream)
    }

    /// A message on the stream, which is no call of its own.
    pub fn message(&self) -> Reservation {
        Reservation { budget: self.0.clone(), bytes: 0, era: None }
    }

    /// The time until the client takes more of the stream, which counts like a call: it must not
    /// last.
    pub fn pause(&self) -> Reservation {
        Reservation::call(&self.0)
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
    fn a_connection_holds_no_more_than_it_may_and_gives_all_of_it_back() {
        let total = Arc::new(GlobalBudget::default());
        let budget = budget(&total);
        let mut reservations: Vec<_> = (0..17).map(|_| Reservation::call(&budget)).collect();
        let held: Vec<_> =
            reservations.iter_mut().map(|reservation| reservation.hold(MOST / 16)).collect();
        assert_eq!(held.iter().filter(|held| **held).count(), 16);
        assert!(budget.has_calls());
        reservations[0].release(MOST / 16);
        assert!(reservations[16].replace(MOST / 16));
        reservations.clear();
        assert_eq!(
            (budget.bytes.load(Ordering::Relaxed), total.bytes.load(Ordering::Relaxed)),
            (0, 0)
        );
        assert!(!budget.has_calls());
    }

    #[test]
    fn each_connection_has_its_share_though_others_take_the_rest() {
        let total = Arc::new(GlobalBudget::default());
        let greedy: Vec<_> = (0..3).map(|_| Reservation::call(&budget(&total))).collect();
        let mut greedy: Vec<_> = greedy
            .into_iter()
            .map(|mut reservation| (reservation.hold(MOST), reservation))
            .collect();
        assert!(!greedy.pop().is_some_and(|(held, _)| held), "the third is too much for all");
        let mut modest = Reservation::call(&budget(&total));
        assert!(modest.budget.has_room() && modest.hold(SHARE) && !modest.hold(4 << 20));
        assert!(!modest.budget.has_room());
        drop(greedy);
        assert!(modest.hold(4 << 20));
    }

    #[test]
    fn streams_are_counted_on_their_own() {
        let budget = budget(&Arc::default());
        let mut open: Vec<_> = (0..STREAMS).filter_map(|_| OpenStream::new(&budget)).collect();
        assert_eq!((open.len(), budget.has_calls()), (STREAMS, false));
        assert!(OpenStream::new(&budget).is_none());
        open.pop();
        assert!(OpenStream::new(&budget).is_some());
    }

    #[test]
    fn all_connections_together_have_a_bound_of_streams() {
        let total = Arc::new(GlobalBudget::default());
        let accounts: Vec<_> = (0..ALL_STREAMS).map(|_| budget(&total)).collect();
        let mut open: Vec<_> = accounts.iter().flat_map(OpenStream::new).collect();
        assert_eq!(open.len(), ALL_STREAMS);
        assert!(OpenStream::new(&accounts[0]).is_none());
        open.pop();
        assert!(OpenStream::new(&accounts[0]).is_some());
    }

    #[tokio::test]
    async fn a_connection_counts_as_unused_once_nothing_was_under_way_for_a_while() {
        let budget = budget(&Arc::default());
        let limit = Duration::from_millis(200);
        let unused = || tokio::time::timeout(3 * limit, budget.unused(limit));
        let stream = OpenStream::new(&budget);
        assert!(unused().await.is_err(), "a stream is open");
        drop(stream);
        let calls = async {
            for _ in 0..40 {
                drop(Reservation::call(&budget));
                sleep(limit / 10).await;
            }
        };
        let (outcome, ()) = tokio::join!(unused(), calls);
        assert!(outcome.is_err(), "calls came again and again");
        assert!(unused().await.is_ok());
    }

    #[tokio::test]
    async fn a_call_that_is_never_over_is_found_out() {
        let budget = budget(&Arc::default());
        let limit = Duration::from_secs(1);
        let quiet = tokio::time::timeout(3 * limit, budget.stuck(limit));
        let short = async {
            for _ in 0..12 {
                let call = Reservation::call(&budget);
                sleep(limit / 4).await;
                drop(call);
            }
        };
        let (quiet, ()) = tokio::join!(quiet, short);
        assert!(quiet.is_err(), "short calls, one after the other, are not stuck");
        let _call = Reservation::call(&budget);
        assert!(tokio::time::timeout(60 * limit, budget.stuck(limit)).await.is_ok());
    }
}
