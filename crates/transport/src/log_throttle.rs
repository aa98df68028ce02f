//! Throttles log lines while calls fail by the thousand: one line a second, with the number of
//! suppressed ones.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The minimum interval between two lines.
const INTERVAL: Duration = Duration::from_secs(1);

/// The time of the last line, and the number of occurrences since.
#[derive(Default)]
pub struct LogThrottle(Mutex<(Option<Instant>, u64)>);

impl LogThrottle {
    /// A throttle that has let nothing pass yet.
    pub const fn new() -> Self {
        Self(Mutex::new((None, 0)))
    }

    /// Counts an occurrence. If it should be logged, returns the number of those suppressed since
    /// the last line.
    pub fn step(&self) -> Option<u64> {
        let (last_logged, suppressed) = &mut *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if last_logged.is_some_and(|last_logged| last_logged.elapsed() < INTERVAL) {
            *suppressed += 1;
            return None;
        }
        *last_logged = Some(Instant::now());
        Some(std::mem::take(suppressed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_occurrence_is_logged_then_one_per_interval() {
        let throttle = LogThrottle::new();
        let start = Instant::now();
        let mut logged = Vec::new();
        let mut steps = 0;
        while logged.len() < 3 {
            logged.extend(throttle.step());
            steps += 1;
            std::thread::sleep(Duration::from_millis(5));
        }
        assert!(start.elapsed() >= INTERVAL * 2, "{logged:?} within {:?}", start.elapsed());
        assert_eq!((logged[0], logged.iter().sum::<u64>() + 3), (0, steps), "{logged:?}");
    }
}
