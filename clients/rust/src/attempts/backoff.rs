//! The delays between attempts to reach a server.

use std::time::Duration;

/// Delays that double, each with jitter.
#[derive(Clone, Copy, Debug)]
pub struct Backoff {
    /// The delay after the first failure.
    pub first: Duration,
    /// The highest delay.
    pub longest: Duration,
}

impl Default for Backoff {
    fn default() -> Self {
        Self { first: Duration::from_millis(50), longest: Duration::from_secs(1) }
    }
}

impl Backoff {
    /// The delay after so many failures in a row.
    pub fn delay(&self, failures: u32) -> Duration {
        let doubled = self.first.saturating_mul(1 << failures.saturating_sub(1).min(20));
        doubled.min(self.longest).mul_f64(0.5 + fastrand::f64() / 2.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_double_up_to_the_longest() {
        let backoff = Backoff::default();
        for (failures, highest) in [(1, 50), (2, 100), (3, 200), (6, 1_000), (40, 1_000)] {
            let highest = Duration::from_millis(highest);
            assert!((highest / 2..=highest).contains(&backoff.delay(failures)), "{failures}");
        }
    }
}
