//! The usual latency of calls, by which a late one is told.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// A call is late after this many times the usual latency.
const LATE_FACTOR: u32 = 4;

/// The usual latency of calls.
#[derive(Default)]
pub struct UsualLatency(AtomicU64);

impl UsualLatency {
    /// Records the latency of a call that was answered, in a moving average with a weight of 1/8.
    pub fn learn(&self, took: Duration) {
        let (took, usual) = (took.as_micros() as u64, self.0.load(Relaxed));
        self.0.store(usual - usual / 8 + took / 8, Relaxed);
    }

    /// The time after which a call is late: at least `least`.
    pub fn late_after(&self, least: Duration) -> Duration {
        least.max(LATE_FACTOR * Duration::from_micros(self.0.load(Relaxed)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_is_late_by_the_usual_latency() {
        let (usual, least) = (UsualLatency::default(), Duration::from_millis(100));
        assert_eq!(usual.late_after(least), least);
        (0..100).for_each(|_| usual.learn(Duration::from_millis(80)));
        let late = usual.late_after(least);
        assert!(
            (Duration::from_millis(300)..=Duration::from_millis(320)).contains(&late),
            "{late:?}"
        );
        (0..100).for_each(|_| usual.learn(Duration::from_millis(1)));
        assert_eq!(usual.late_after(least), least);
    }
}
