//! The pace of long computations: they yield to other calls by time, so that a few large users
//! delay others no longer than many small ones.

use std::time::{Duration, Instant};

/// The time of work between two yields.
const SLICE: Duration = Duration::from_micros(200);

/// The pace of a computation.
#[derive(Debug)]
pub struct Pace {
    since: Instant,
}

impl Default for Pace {
    fn default() -> Self {
        Self { since: Instant::now() }
    }
}

impl Pace {
    /// Whether the computation must yield.
    pub fn is_over(&self) -> bool {
        self.since.elapsed() >= SLICE
    }

    /// Yields to other calls if it is time to.
    pub async fn rest(&mut self) {
        if self.is_over() {
            tokio::task::yield_now().await;
            *self = Self::default();
        }
    }
}
