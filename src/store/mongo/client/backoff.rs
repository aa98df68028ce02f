//! Backoff between attempts: exponential, with jitter, up to a deadline.

use std::time::Duration;

use backon::{BackoffBuilder, ExponentialBackoff, ExponentialBuilder};
use tokio::time::{Instant, sleep};

use crate::store::mongo::client::error::Fault;

pub struct Backoff {
    delays: ExponentialBackoff,
    deadline: Instant,
}

impl Backoff {
    /// A backoff whose delays grow from `min` to `max`.
    pub fn new(min: Duration, max: Duration, deadline: Instant) -> Self {
        // Jitter adds up to one more delay.
        let delays = ExponentialBuilder::new()
            .with_min_delay(min / 2)
            .with_max_delay(max / 2)
            .with_jitter()
            .without_max_times()
            .build();
        Self { delays, deadline }
    }

    /// The backoff between attempts at one transaction.
    pub fn for_transaction(deadline: Instant) -> Self {
        Self::new(Duration::from_millis(2), Duration::from_millis(200), deadline)
    }

    /// Repeats `attempt` until it succeeds, fails with an error that is not retryable, or no time
    /// is left for another attempt.
    pub async fn retry<T, E, F>(
        mut self,
        attempt: impl Fn() -> F,
        is_retryable: impl Fn(&E) -> bool,
    ) -> Result<T, E>
    where
        F: Future<Output = Result<T, E>>,
    {
        loop {
            match attempt().await {
                Err(error) if is_retryable(&error) && self.wait().await => {}
                outcome => return outcome,
            }
        }
    }

    /// Waits before the next attempt. Returns false at once if no time is left for one.
    pub async fn wait(&mut self) -> bool {
        let Some(delay) = self.delays.next() else { return false };
        if Instant::now() + delay >= self.deadline {
            return false;
        }
        sleep(delay).await;
        true
    }
}

/// Repeats a transaction while it conflicts with others, or the primary changes.
pub async fn retry_transient<T, F>(deadline: Instant, attempt: impl Fn() -> F) -> Result<T, Fault>
where
    F: Future<Output = Result<T, Fault>>,
{
    Backoff::for_transaction(deadline).retry(attempt, Fault::is_transient).await
}
