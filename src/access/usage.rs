//! The use that callers make of a server: their connections, their calls under way, and the two
//! rates that they may spend.

use std::collections::HashMap;
use std::fmt;
use std::num::NonZeroU32;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use metrics::Counter;

use super::tally::Tally;

/// The bounds of a caller, each a second and with a burst of one second; none is no bound.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rate {
    /// Calls.
    pub calls: Option<NonZeroU32>,
    /// Look-ups that find nobody.
    pub misses: Option<NonZeroU32>,
}

/// The use that one caller makes of a server.
#[derive(Debug, Default)]
pub struct Usage {
    /// Open connections.
    pub connections: Counted,
    /// Look-ups under way.
    pub reads: Counted,
    /// Mutations under way.
    pub mutations: Counted,
    /// The calls of late.
    pub calls: Spent,
    /// The look-ups of late that found nobody.
    pub misses: Spent,
    /// The calls that were counted, by method and code.
    pub counters: Counters,
    /// The calls and look-ups by tenant, since they were last stored.
    pub tally: Tally,
}

/// Counters by two small numbers, registered when they are first used.
#[derive(Default)]
pub struct Counters(OnceLock<Box<[Row; ROWS]>>);

type Row = OnceLock<Box<[OnceLock<Counter>; COLUMNS]>>;
/// The most methods and codes that are counted apart.
const ROWS: usize = 64;
const COLUMNS: usize = 17;

impl Counters {
    /// The counter in this place.
    pub fn get(&self, row: usize, column: usize, register: impl FnOnce() -> Counter) -> &Counter {
        let rows = self.0.get_or_init(|| Box::new([const { OnceLock::new() }; ROWS]));
        let columns =
            rows[row.min(ROWS - 1)].get_or_init(|| Box::new([const { OnceLock::new() }; COLUMNS]));
        columns[column.min(COLUMNS - 1)].get_or_init(register)
    }
}

impl fmt::Debug for Counters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Counters")
    }
}

/// A number of things that are there at once.
#[derive(Debug, Default)]
pub struct Counted(AtomicUsize);

impl Counted {
    /// The number.
    pub fn get(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }

    /// One more, unless there are `most` already.
    pub fn add(&self, most: usize) -> bool {
        let more = |count: usize| (count < most).then_some(count + 1);
        self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).is_ok()
    }

    /// One less.
    pub fn remove(&self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A rate that is being spent, by the generic cell rate algorithm (ITU-T I.371): the time up to
/// which it is spent, in nanoseconds of [`now`]. It may be overspent, since misses are known only
/// once they have happened, and is then paid back.
#[derive(Debug, Default)]
pub struct Spent(AtomicU64);

/// The burst: the rate of one second.
const BURST: u64 = 1_000_000_000;

impl Spent {
    /// Spends one, if there is one left.
    ///
    /// # Errors
    /// The time until there is.
    pub fn take(&self, rate: NonZeroU32) -> Result<(), Duration> {
        self.take_at(rate, now())
    }

    /// Whether one is left.
    ///
    /// # Errors
    /// The time until there is.
    pub fn check(&self, rate: NonZeroU32) -> Result<(), Duration> {
        next(self.0.load(Ordering::Relaxed), rate, now()).map(drop)
    }

    /// Spends so many, whether they are left or not.
    pub fn spend(&self, count: usize, rate: NonZeroU32) {
        self.spend_at(count, rate, now());
    }

    fn take_at(&self, rate: NonZeroU32, now: u64) -> Result<(), Duration> {
        let spend = |until| next(until, rate, now).ok();
        let taken = self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, spend);
        taken.map(drop).map_err(|until| next(until, rate, now).err().unwrap_or_default())
    }

    fn spend_at(&self, count: usize, rate: NonZeroU32, now: u64) {
        let cost = cost(rate).saturating_mul(count as u64);
        let spend = |until: u64| Some(until.max(now).saturating_add(cost).min(u64::MAX / 2));
        let _ = self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, spend);
    }
}

/// The time up to which a rate is spent once one more is; else the time until there is one.
fn next(until: u64, rate: NonZeroU32, now: u64) -> Result<u64, Duration> {
    let next = until.max(now) + cost(rate);
    match next.saturating_sub(now + BURST) {
        0 => Ok(next),
        wait => Err(Duration::from_nanos(wait)),
    }
}

/// The time that one takes up of a rate, in nanoseconds.
fn cost(rate: NonZeroU32) -> u64 {
    BURST / u64::from(rate.get())
}

/// The monotonic time, in nanoseconds.
fn now() -> u64 {
    static START: LazyLock<Instant> = LazyLock::new(Instant::now);
    START.elapsed().as_nanos() as u64
}

/// The usages of all callers, by their names: they outlive the entries of a credentials file.
#[derive(Debug, Default)]
pub struct Usages(Mutex<HashMap<String, Arc<Usage>>>);

impl Usages {
    /// The usage of a caller.
    pub fn of(&self, name: &str) -> Arc<Usage> {
        let mut by_name = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        by_name.entry(name.to_owned()).or_default().clone()
    }

    /// Forgets those that nobody uses any more.
    pub fn forget_unused(&self) {
        let mut by_name = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        by_name.retain(|_, usage| Arc::strong_count(usage) > 1 || !usage.tally.is_empty());
    }

    /// All usages, with the names of their callers.
    pub fn all(&self) -> Vec<(String, Arc<Usage>)> {
        let by_name = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        by_name.iter().map(|(name, usage)| (name.clone(), usage.clone())).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RATE: NonZeroU32 = NonZeroU32::new(100).unwrap();

    /// How many can be taken at a time.
    fn takes(spent: &Spent, now: u64) -> usize {
        (0..1_000).take_while(|_| spent.take_at(RATE, now).is_ok()).count()
    }

    #[test]
    fn a_rate_has_a_burst_of_one_second_and_comes_back() {
        let (spent, start) = (Spent::default(), 7 * BURST);
        assert_eq!(takes(&spent, start), 100);
        assert_eq!(spent.take_at(RATE, start), Err(Duration::from_millis(10)));
        assert_eq!(takes(&spent, start + BURST / 2), 50);
        assert_eq!(takes(&spent, start + 60 * BURST), 100, "no more than one second is saved");
    }

    #[test]
    fn what_is_overspent_is_paid_back() {
        let (spent, start) = (Spent::default(), BURST);
        spent.spend_at(300, RATE, start);
        assert_eq!(spent.take_at(RATE, start), Err(Duration::from_millis(2_010)));
        assert_eq!(takes(&spent, start + 2 * BURST), 0);
        assert_eq!(takes(&spent, start + 3 * BURST), 100);
        spent.spend_at(usize::MAX, RATE, start);
        assert!(spent.take_at(RATE, start).is_err());
    }

    #[test]
    fn usages_stay_while_they_are_used() {
        let usages = Usages::default();
        let one = usages.of("one");
        assert!(usages.of("two").connections.add(1));
        usages.forget_unused();
        assert!(Arc::ptr_eq(&one, &usages.of("one")));
        assert_eq!(usages.of("two").connections.get(), 0);
    }

    #[test]
    fn things_are_counted_up_to_a_bound() {
        let counted = Counted::default();
        assert!(counted.add(2) && counted.add(2) && !counted.add(2));
        counted.remove();
        assert!(counted.add(2) && counted.get() == 2);
    }
}
