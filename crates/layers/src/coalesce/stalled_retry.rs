//! Retries of the look-ups of a stalled call, as when one server of several hangs. Each look-up is
//! retried by itself, so that those that do not need that server are answered immediately, and the
//! others once it is back.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use tokio::sync::Semaphore;
use tokio::time::{Instant, sleep, sleep_until};

use super::batch::{Answers, Batch, Group, call};
use polynym_directory::error::Error;
use polynym_directory::stores::LookUps;

/// The most concurrent retries: each may hold a connection until it times out.
const MAX_CONCURRENT_RETRIES: usize = 32;
/// The pause between two retries of a look-up.
const RETRY_DELAY: Duration = Duration::from_millis(100);
/// The time after which a look-up is given up.
const RETRY_TIMEOUT: Duration = Duration::from_secs(10);
/// A call is stalled after this many times the usual latency.
const STALL_FACTOR: u32 = 4;
const NO_ANSWER: &str = "a part of the store does not answer";

/// The retries of one queue.
pub struct StalledRetry {
    /// The store below, whose calls time out early.
    pub store: Arc<dyn LookUps>,
    permits: Semaphore,
}

impl StalledRetry {
    pub fn new(store: Arc<dyn LookUps>) -> Self {
        Self { store, permits: Semaphore::new(MAX_CONCURRENT_RETRIES) }
    }

    /// Retries the look-up of one caller until it is answered.
    pub async fn retry_until_answered<G: Group>(
        &self,
        group: &G,
        keys: &[G::Key],
    ) -> Answers<G::Found> {
        loop {
            if let Some(answers) = self.retry_once(group, keys).await {
                return answers;
            }
            sleep(RETRY_DELAY).await;
        }
    }

    async fn retry_once<G: Group>(&self, group: &G, keys: &[G::Key]) -> Option<Answers<G::Found>> {
        let _permit = self.permits.acquire().await.ok()?;
        call(group, &*self.store, keys).await.ok()
    }

    /// Retries the look-ups of a failed call until each is answered, or its caller has left.
    pub async fn retry_batch<G: Group>(&self, group: &G, mut batch: Batch<G>) {
        let (waiting, end) = (batch.waiting(), Instant::now() + RETRY_TIMEOUT);
        let mut retries: FuturesUnordered<_> = waiting
            .iter()
            .map(|(n, keys)| async move { (*n, self.retry_until_answered(group, keys).await) })
            .collect();
        while !batch.is_over() && Instant::now() < end {
            tokio::select! {
                Some((n, answers)) = retries.next() => batch.answer_one(n, answers),
                () = sleep_until(end.min(Instant::now() + RETRY_TIMEOUT / 10)) => {}
            }
        }
        batch.answer(Err(Error::Unavailable(NO_ANSWER.into())));
    }
}

/// The usual latency of calls.
#[derive(Default)]
pub struct UsualLatency(AtomicU64);

impl UsualLatency {
    /// Records the latency of a call that was answered, in a moving average with a weight of 1/8.
    pub fn learn<T>(&self, took: Duration, outcome: &Result<T, Error>) {
        if outcome.is_ok() {
            let (took, usual) = (took.as_micros() as u64, self.0.load(Relaxed));
            self.0.store(usual - usual / 8 + took / 8, Relaxed);
        }
    }

    /// The time after which a call is stalled: at least `least`.
    pub fn stall_timeout(&self, least: Duration) -> Duration {
        least.max(STALL_FACTOR * Duration::from_micros(self.0.load(Relaxed)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stall_timeout_follows_the_usual_latency() {
        let (usual, least) = (UsualLatency::default(), Duration::from_millis(100));
        assert_eq!(usual.stall_timeout(least), least);
        (0..100).for_each(|_| usual.learn(Duration::from_millis(80), &Ok(())));
        let timeout = usual.stall_timeout(least);
        assert!(
            (Duration::from_millis(300)..=Duration::from_millis(320)).contains(&timeout),
            "{timeout:?}"
        );
        (0..100).for_each(|_| usual.learn(Duration::from_millis(1), &Ok(())));
        assert_eq!(usual.stall_timeout(least), least);
    }
}
