//! Keeps the log readable while calls fail by the thousand: a line a second, with how many calls it
//! leaves out.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The least time between two lines.
const PERIOD: Duration = Duration::from_secs(1);

/// When a line was last logged, and the number of times it happened since.
pub struct LogThrottle(Mutex<(Option<Instant>, u64)>);

impl LogThrottle {
    pub const fn new() -> Self {
        Self(Mutex::new((None, 0)))
    }

    /// Counts one more occurrence. If it is to be logged: how many were suppressed since the last
    /// line.
    pub fn step(&self) -> Option<u64> {
        let (logged, suppressed) = &mut *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if logged.is_some_and(|logged| logged.elapsed() < PERIOD) {
            *suppressed += 1;
            return None;
        }
        *logged = Some(Instant::now());
        Some(std::mem::take(suppressed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_is_told_and_then_one_a_period_with_a_count_of_the_others() {
        let pace = LogThrottle::new();
        let start = Instant::now();
        let mut logged = Vec::new();
        let mut steps = 0;
        while logged.len() < 3 {
            logged.extend(pace.step());
            steps += 1;
            std::thread::sleep(Duration::from_millis(5));
        }
        assert!(start.elapsed() >= PERIOD * 2, "{logged:?} within {:?}", start.elapsed());
        assert_eq!((logged[0], logged.iter().sum::<u64>() + 3), (0, steps), "{logged:?}");
    }
}
