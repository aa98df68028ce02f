//! Retries of the lines of an import.

use std::time::{Duration, Instant};

use crate::error::Error;

/// The first retry delay of a line, and the longest.
const RETRY_DELAYS: [Duration; 2] = [Duration::from_millis(20), Duration::from_secs(2)];
/// The time for which lines are retried while the store does not answer.
const RETRY_TIMEOUT: Duration = Duration::from_secs(30);

/// The retries of writes while the store does not answer.
pub(super) struct Retries {
    began: Instant,
    delay: Duration,
}

impl Retries {
    pub fn new() -> Self {
        Self { began: Instant::now(), delay: RETRY_DELAYS[0] }
    }

    /// Waits before the next attempt, unless the last one is over: then fails with its error.
    pub async fn wait(&mut self, error: Error) -> Result<(), Error> {
        if self.began.elapsed() > RETRY_TIMEOUT {
            return Err(error);
        }
        tokio::time::sleep(self.delay).await;
        self.delay = (self.delay * 2).min(RETRY_DELAYS[1]);
        Ok(())
    }
}
