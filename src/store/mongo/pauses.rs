//! Pauses between attempts at the same: each up to twice as long as the one before, while there is
//! time.

use std::hash::{BuildHasher, RandomState};
use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::error::Fault;

pub struct Pauses {
    next: Duration,
    longest: Duration,
    deadline: Instant,
}

impl Pauses {
    pub const fn new(first: Duration, longest: Duration, deadline: Instant) -> Self {
        Self { next: first, longest, deadline }
    }

    /// Those between attempts at one transaction.
    pub const fn of_transaction(deadline: Instant) -> Self {
        Self::new(Duration::from_millis(2), Duration::from_millis(200), deadline)
    }

    /// Makes attempts until one succeeds, fails with what does not pass, or there is no time for
    /// another.
    pub async fn between<T, E, F>(
        mut self,
        attempt: impl Fn() -> F,
        passes: impl Fn(&E) -> bool,
    ) -> Result<T, E>
    where
        F: Future<Output = Result<T, E>>,
    {
        loop {
            match attempt().await {
                Err(error) if passes(&error) && self.wait().await => {}
                outcome => return outcome,
            }
        }
    }

    /// Waits for the next attempt; says at once where there is no time for one.
    pub async fn wait(&mut self) -> bool {
        if Instant::now() + self.next >= self.deadline {
            return false;
        }
        sleep(jittered(self.next)).await;
        self.next = self.longest.min(self.next * 2);
        true
    }
}

/// Begins a transaction again while it meets others, or servers that change.
pub async fn while_transient<T, F>(deadline: Instant, attempt: impl Fn() -> F) -> Result<T, Fault>
where
    F: Future<Output = Result<T, Fault>>,
{
    Pauses::of_transaction(deadline).between(attempt, Fault::is_transient).await
}

/// A pause between half and all of `pause`, so that those who met once do not meet again.
fn jittered(pause: Duration) -> Duration {
    let random = RandomState::new().hash_one(0) >> 40;
    pause.mul_f64(0.5 + random as f64 / (1_u64 << 25) as f64)
}
