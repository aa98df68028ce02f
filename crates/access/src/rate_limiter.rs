//! The rates of a caller, and the limiter that enforces them.

use std::num::NonZeroU32;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// The rate limits of a caller, each per second with a burst of one second. None is unlimited.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RateLimits {
    /// Calls.
    pub calls: Option<NonZeroU32>,
    /// Look-ups that find no user.
    pub misses: Option<NonZeroU32>,
}

/// Limits a rate by the generic cell rate algorithm (ITU-T I.371). Holds the time up to which the
/// rate is spent, in nanoseconds of [`now`]. It may be overspent, as misses are known only
/// afterwards, and then recovers.
#[derive(Debug, Default)]
pub struct RateLimiter(AtomicU64);

/// The burst: one second, in nanoseconds.
const BURST: u64 = 1_000_000_000;

impl RateLimiter {
    /// Spends one, if one is left.
    ///
    /// # Errors
    /// None is left; the time until one is.
    pub fn take(&self, rate: NonZeroU32) -> Result<(), Duration> {
        self.take_at(rate, now())
    }

    /// Checks that one is left.
    ///
    /// # Errors
    /// None is left; the time until one is.
    pub fn check(&self, rate: NonZeroU32) -> Result<(), Duration> {
        spend_one(self.0.load(Ordering::Relaxed), rate, now()).map(drop)
    }

    /// Spends `count`, even if fewer are left.
    pub fn spend(&self, count: usize, rate: NonZeroU32) {
        self.spend_at(count, rate, now());
    }

    fn take_at(&self, rate: NonZeroU32, now: u64) -> Result<(), Duration> {
        self.0
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |until| {
                spend_one(until, rate, now).ok()
            })
            .map(drop)
            .map_err(|until| spend_one(until, rate, now).err().unwrap_or_default())
    }

    fn spend_at(&self, count: usize, rate: NonZeroU32, now: u64) {
        let cost = cost(rate).saturating_mul(count as u64);
        let spend = |until: u64| Some(until.max(now).saturating_add(cost).min(u64::MAX / 2));
        let _ = self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, spend);
    }
}

/// Spends one more. Returns the new time up to which the rate is spent.
///
/// # Errors
/// None is left; the time until one is.
fn spend_one(until: u64, rate: NonZeroU32, now: u64) -> Result<u64, Duration> {
    let spent = until.max(now) + cost(rate);
    match spent.saturating_sub(now + BURST) {
        0 => Ok(spent),
        wait => Err(Duration::from_nanos(wait)),
    }
}

/// The time that one costs at a rate, in nanoseconds.
fn cost(rate: NonZeroU32) -> u64 {
    BURST / u64::from(rate.get())
}

/// The monotonic time, in nanoseconds.
fn now() -> u64 {
    static START: LazyLock<Instant> = LazyLock::new(Instant::now);
    START.elapsed().as_nanos() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    const RATE: NonZeroU32 = NonZeroU32::new(100).unwrap();

    /// The number that can be taken at a time.
    fn takes(limiter: &RateLimiter, now: u64) -> usize {
        (0..1_000).take_while(|_| limiter.take_at(RATE, now).is_ok()).count()
    }

    #[test]
    fn a_rate_has_a_burst_of_one_second_and_comes_back() {
        let (limiter, start) = (RateLimiter::default(), 7 * BURST);
        assert_eq!(takes(&limiter, start), 100);
        assert_eq!(limiter.take_at(RATE, start), Err(Duration::from_millis(10)));
        assert_eq!(takes(&limiter, start + BURST / 2), 50);
        assert_eq!(takes(&limiter, start + 60 * BURST), 100, "no more than one second is saved");
    }

    #[test]
    fn an_overspent_rate_recovers() {
        let (limiter, start) = (RateLimiter::default(), BURST);
        limiter.spend_at(300, RATE, start);
        assert_eq!(limiter.take_at(RATE, start), Err(Duration::from_millis(2_010)));
        assert_eq!(takes(&limiter, start + 2 * BURST), 0);
        assert_eq!(takes(&limiter, start + 3 * BURST), 100);
        limiter.spend_at(usize::MAX, RATE, start);
        assert!(limiter.take_at(RATE, start).is_err());
    }
}
