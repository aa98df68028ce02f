//! The time. Every operation reads the directory's wall clock once and compares it with the store's
//! time, so that irreversible changes never depend on one clock.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use tokio::sync::watch;
use tokio::time::timeout;

use crate::timestamp::Timestamp;

/// The name and help text of the gauge of the difference between the clocks.
pub const CLOCK_AHEAD: (&str, &str) = (
    "polynym_clock_ahead_seconds",
    "Seconds by which the server's clock is ahead of the store's; negative: behind",
);

/// A wall clock and a monotonic one. Clones are the same clocks.
#[derive(Clone, Debug, Default)]
pub struct Clock {
    /// Milliseconds by which the wall clock is ahead of the machine's.
    ahead: Arc<AtomicI64>,
    /// The time by which the monotonic clock is ahead of the machine's.
    skipped: watch::Sender<Duration>,
}

impl Clock {
    /// The present time.
    pub fn now(&self) -> Timestamp {
        Timestamp::from_millis(Timestamp::now().as_millis() + self.ahead.load(Relaxed))
    }

    /// Sets the wall clock `millis` ahead of the machine's, or behind if negative. For tests.
    pub fn set_ahead(&self, millis: i64) {
        self.ahead.store(millis, Relaxed);
    }

    /// The present time of the monotonic clock.
    pub fn instant(&self) -> Instant {
        Instant::now() + *self.skipped.borrow()
    }

    /// Advances the monotonic clock. Tests use it instead of waiting.
    pub fn skip(&self, time: Duration) {
        self.skipped.send_modify(|skipped| *skipped += time);
    }

    /// Waits by the monotonic clock.
    pub async fn sleep(&self, duration: Duration) {
        let mut skips = self.skipped.subscribe();
        let end = self.instant() + duration;
        loop {
            let left = end.saturating_duration_since(self.instant());
            if left.is_zero() {
                return;
            }
            let _ = timeout(left, skips.changed()).await;
        }
    }
}

/// The present time of one operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Now {
    /// The wall clock's time. If the clocks differ, the later one, so that no deadline set from it
    /// comes too early.
    pub time: Timestamp,
    /// Whether the clocks differ, or the store has no time yet. Then nothing expires.
    pub clock_uncertain: bool,
    /// Milliseconds by which the wall clock is ahead of the store's, if that has a time.
    pub ahead: Option<i64>,
}

impl Now {
    /// The maximum difference between clocks that agree.
    pub const TOLERANCE: Duration = Duration::from_secs(60);

    /// A certain time.
    pub const fn certain(time: Timestamp) -> Self {
        Self { time, clock_uncertain: false, ahead: Some(0) }
    }

    /// Compares two clocks.
    pub fn compare(wall: Timestamp, store: Option<Timestamp>) -> Self {
        let Some(store) = store else {
            return Self { time: wall, clock_uncertain: true, ahead: None };
        };
        let ahead = wall.millis_after(store);
        let clock_uncertain = u128::from(ahead.unsigned_abs()) > Self::TOLERANCE.as_millis();
        let time = if clock_uncertain { wall.max(store) } else { wall };
        Self { time, clock_uncertain, ahead: Some(ahead) }
    }

    /// The earlier clock's time, if they differ. What has expired by it has expired by both.
    pub fn earliest(&self) -> Timestamp {
        let apart = self.ahead.filter(|_| self.clock_uncertain).unwrap_or_default();
        self.time.minus(Duration::from_millis(apart.unsigned_abs()))
    }

    /// Whether `deadline` has certainly passed.
    pub fn is_past(&self, deadline: Timestamp) -> bool {
        !self.clock_uncertain && deadline <= self.time
    }

    /// Whether `deadline` has passed by one clock only.
    pub fn may_be_past(&self, deadline: Timestamp) -> bool {
        self.clock_uncertain && deadline <= self.time
    }
}

impl From<Timestamp> for Now {
    fn from(time: Timestamp) -> Self {
        Self::certain(time)
    }
}

/// Logs when the clocks begin to differ, and when they agree again.
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
    fn an_uncertain_time_is_the_later_one() {
        assert_eq!(compare(-86_400_000).time, STORE);
        assert_eq!(compare(86_400_000).time.as_millis(), STORE.as_millis() + 86_400_000);
    }

    #[test]
    fn the_earliest_time_is_that_of_the_slower_clock() {
        assert_eq!(compare(86_400_000).earliest(), STORE);
        for ahead in [-86_400_000, -60_000, 0, 60_000] {
            assert_eq!(compare(ahead).earliest().as_millis(), STORE.as_millis() + ahead);
        }
        assert_eq!(Now::compare(STORE, None).earliest(), STORE);
    }

    #[test]
    fn no_deadline_passes_while_the_clock_is_uncertain() {
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
    fn clones_of_a_clock_share_its_settings() {
        let clock = Clock::default();
        clock.clone().set_ahead(86_400_000);
        assert!(clock.now().millis_after(Timestamp::now()).abs_diff(86_400_000) < 60_000);
    }
}
