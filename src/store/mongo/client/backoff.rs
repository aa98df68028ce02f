//! Backoff between attempts: exponential, with jitter, up to a deadline.

use std::time::Duration;

use backon::{ExponentialBackoff, ExponentialBuilder};
use tokio::time::{Instant, sleep};

use crate::store::mongo::client::error::Fault;

pub struct Backoff {
    pauses: ExponentialBackoff,
    deadline: Instant,
}

impl Backoff {
    /// A backoff whose pauses grow from `first` to `longest`.
    pub fn new(first: Duration, longest: Duration, deadline: Instant) -> Self {
        // Jitter adds up to the whole of a pause.
        let pauses = ExponentialBuilder::new()
            .with_min_delay(first / 2)
            .with_max_delay(longest / 2)
            .with_jitter()
            .without_max_times()
            .build();
        Self { pauses, deadline }
    }

    /// The backoff between attempts at one transaction.
    pub fn of_transaction(deadline: Instant) -> Self {
        Self::new(Duration::from_millis(2), Duration::from_millis(200), deadline)
    }

    /// Makes attempts until one succeeds, one fails with an error that does not pass, or no time is
    /// left for another.
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

    /// Waits for the next attempt. Returns false at once if no time is left for one.
    pub async fn wait(&mut self) -> bool {
        let Some(pause) = self.pauses.next() else { return false };
        if Instant::now() + pause >= self.deadline {
            return false;
        }
        sleep(pause).await;
        true
    }
}

/// Repeats a transaction while it conflicts with others, or the primary changes.
pub async fn while_transient<T, F>(deadline: Instant, attempt: impl Fn() -> F) -> Result<T, Fault>
where
    F: Future<Output = Result<T, Fault>>,
{
    Backoff::of_transaction(deadline).between(attempt, Fault::is_transient).await
}
