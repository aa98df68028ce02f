//! The time. Every operation takes it once from the directory's wall clock and holds it against the
//! store's time: what cannot be undone does not rest on one clock alone.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use crate::timestamp::Timestamp;

/// The gauge of the difference between the two clocks: its name, and its meaning.
pub const CLOCK_AHEAD: (&str, &str) = (
    "polynym_clock_ahead_seconds",
    "Seconds by which the server's clock is ahead of the store's; negative: behind",
);

/// A wall clock and a monotonic one. Clones are the same clocks.
#[derive(Clone, Debug, Default)]
pub struct Clock {
    /// Milliseconds by which the wall clock is ahead of the machine's.
    ahead: Arc<AtomicI64>,
    /// Milliseconds by which the monotonic clock is ahead of the machine's.
    skipped: Arc<AtomicU64>,
}

impl Clock {
    /// The present time.
    pub fn now(&self) -> Timestamp {
        Timestamp::from_millis(Timestamp::now().as_millis() + self.ahead.load(Relaxed))
    }

    /// Sets the clock so many milliseconds ahead of the machine's; a negative number sets it
    /// behind. Tests use it.
    pub fn set_ahead(&self, millis: i64) {
        self.ahead.store(millis, Relaxed);
    }

    /// The present time of the monotonic clock.
    pub fn instant(&self) -> Instant {
        Instant::now() + Duration::from_millis(self.skipped.load(Relaxed))
    }

    /// Moves the monotonic clock ahead. Tests use it instead of waiting.
    pub fn skip(&self, millis: u64) {
        self.skipped.fetch_add(millis, Relaxed);
    }
}

/// The present time as one operation takes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Now {
    /// The wall clock's time; in doubt, the later one of both clocks, so that no deadline that is
    /// set from it comes too early.
    pub time: Timestamp,
    /// Whether the clocks differ, or the store does not know the time yet. Then nothing counts as
    /// over.
    pub clock_uncertain: bool,
    /// Milliseconds by which the wall clock is ahead of the store's; none where the store has no
    /// time.
    pub ahead: Option<i64>,
}

impl Now {
    /// The largest difference between two clocks that agree.
    pub const TOLERANCE: Duration = Duration::from_secs(60);

    /// A time that is certain.
    pub const fn certain(time: Timestamp) -> Self {
        Self { time, clock_uncertain: false, ahead: Some(0) }
    }

    /// The time by two clocks.
    pub fn compare(wall: Timestamp, store: Option<Timestamp>) -> Self {
        let Some(store) = store else {
            return Self { time: wall, clock_uncertain: true, ahead: None };
        };
        let ahead = wall.millis_after(store);
        let clock_uncertain = u128::from(ahead.unsigned_abs()) > Self::TOLERANCE.as_millis();
        let time = if clock_uncertain { wall.max(store) } else { wall };
        Self { time, clock_uncertain, ahead: Some(ahead) }
    }

    /// The time by the earlier one of both clocks, if they differ: what is over age by this is so
    /// by both.
    pub fn earliest(&self) -> Timestamp {
        let apart = self.ahead.filter(|_| self.clock_uncertain).unwrap_or_default();
        self.time.minus(Duration::from_millis(apart.unsigned_abs()))
    }

    /// Whether `deadline` is over for certain.
    pub fn is_past(&self, deadline: Timestamp) -> bool {
        !self.clock_uncertain && deadline <= self.time
    }

    /// Whether `deadline` is over by one clock, and not for certain.
    pub fn may_be_past(&self, deadline: Timestamp) -> bool {
        self.clock_uncertain && deadline <= self.time
    }
}

/// Logs the beginning and the end of each time in which the clocks differ.
#[derive(Debug, Default)]
pub struct ClockLog {
    differs: AtomicBool,
}

impl ClockLog {
    /// Logs if the clocks begin to differ, or agree again.
    pub fn note(&self, now: &Now) {
        let Some(ahead) = now.ahead else { return };
        if self.differs.swap(now.clock_uncertain, Relaxed) == now.clock_uncertain {
            return;
        }

        let ahead_seconds = ahead / 1_000;
        if now.clock_uncertain {
            tracing::warn!(
                ahead_seconds,
                "the clock differs from the store's time: nothing is purged and no hold ends until \
                 they agree"
            );
        } else {
            tracing::info!(ahead_seconds, "the clock agrees with the store's time again");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STORE: Timestamp = Timestamp::from_millis(1_000_000_000);

    fn compare(ahead: i64) -> Now {
        Now::compare(Timestamp::from_millis(STORE.as_millis() + ahead), Some(STORE))
    }

    #[test]
    fn clocks_agree_up_to_a_minute() {
        for ahead in [-60_000, -1, 0, 1, 60_000] {
            let now = compare(ahead);
            assert_eq!(
                (now.clock_uncertain, now.time.as_millis()),
                (false, STORE.as_millis() + ahead)
            );
        }
        for ahead in [i64::MIN / 2, -86_400_000, -60_001, 60_001, 86_400_000] {
            assert!(compare(ahead).clock_uncertain, "{ahead}");
        }
    }

    #[test]
    fn a_time_in_doubt_is_the_later_one() {
        assert_eq!(compare(-86_400_000).time, STORE);
        assert_eq!(compare(86_400_000).time.as_millis(), STORE.as_millis() + 86_400_000);
    }

    #[test]
    fn the_earliest_time_is_that_of_the_clock_that_is_behind() {
        assert_eq!(compare(86_400_000).earliest(), STORE);
        for ahead in [-86_400_000, -60_000, 0, 60_000] {
            assert_eq!(compare(ahead).earliest().as_millis(), STORE.as_millis() + ahead);
        }
        assert_eq!(Now::compare(STORE, None).earliest(), STORE);
    }

    #[test]
    fn nothing_is_past_in_doubt() {
        let (past, future) = (Timestamp::from_millis(1), Timestamp::MAX);
        for now in [compare(86_400_000), compare(-86_400_000), Now::compare(STORE, None)] {
            assert!(!now.is_past(past) && now.may_be_past(past), "{now:?}");
            assert!(!now.is_past(future) && !now.may_be_past(future), "{now:?}");
        }
        assert!(
            compare(0).is_past(STORE) && compare(0).is_past(past) && !compare(0).may_be_past(past)
        );
    }

    #[test]
    fn a_clock_and_its_clones_are_set_together() {
        let clock = Clock::default();
        clock.clone().set_ahead(86_400_000);
        assert!(clock.now().millis_after(Timestamp::now()).abs_diff(86_400_000) < 60_000);
    }
}
