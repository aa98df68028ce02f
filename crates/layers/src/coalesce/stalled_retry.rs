//! Retries of the look-ups of a stalled call, as when one server of several hangs. Each look-up is
//! retried by itself, so that those that do not need that server are answered immediately, and the
//! others once it is back.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use tokio::sync::Semaphore;
use tokio::time::{Instant, sleep, sleep_until};

use super::batch::{Answered, Answers, Batch, Group, call, is_unavailable};
use polynym_directory::{Error, ItemResult, LookUps};

/// The most concurrent retries: each may hold a connection until it times out.
const MAX_CONCURRENT_RETRIES: usize = 32;
/// The pause between two retries of a look-up.
const RETRY_DELAY: Duration = Duration::from_millis(100);
/// The time after which a look-up is given up: less than callers usually have, so that they learn
/// that it can be repeated.
const RETRY_TIMEOUT: Duration = Duration::from_secs(5);
const NO_ANSWER: &str = "a part of the store does not answer";

/// The retries of one queue.
pub struct StalledRetry {
    /// The store below, whose calls time out early.
    store: Arc<dyn LookUps>,
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
        let answers = call(group, &*self.store, keys).await.ok()?;
        (!is_away(&answers.found)).then_some(answers)
    }

    /// Retries the look-ups of a call that began at `start` and did not answer them, until each is
    /// answered, or its caller has left.
    pub async fn retry_batch<G: Group>(&self, group: &G, mut batch: Batch<G>, start: Instant) {
        let (waiting, end) = (batch.waiting(), start + RETRY_TIMEOUT);
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

/// Whether a call that began at `start` has not answered a look-up, and time for retries is left.
pub fn may_retry<F>(outcome: &Answered<F>, start: Instant) -> bool {
    let has_no_answer = match outcome {
        Ok(answers) => is_away(&answers.found),
        Err(error) => matches!(error, Error::Unavailable(_)),
    };
    has_no_answer && start.elapsed() < RETRY_TIMEOUT
}

/// Whether no part of the store kept a call waiting in vain.
pub fn is_complete<F>(outcome: &Answered<F>) -> bool {
    outcome.as_ref().is_ok_and(|answers| !answers.found.iter().any(is_unavailable))
}

/// Whether the part of the store that has these items does not answer.
fn is_away<F>(found: &[ItemResult<F>]) -> bool {
    found.iter().all(is_unavailable)
}

/// The look-ups of a call that began at `start` without any answer, unless it is too late to retry
/// them. The other callers stay in the batch.
pub fn take_unanswered<G: Group>(
    batch: &mut Batch<G>,
    outcome: &Answered<G::Found>,
    start: Instant,
) -> Option<Batch<G>> {
    match outcome {
        Ok(answers) => batch.split_unanswered(&answers.found),
        Err(_) if may_retry(outcome, start) => {
            Some(std::mem::replace(batch, Batch::new(Vec::new())))
        }
        Err(_) => None,
    }
}
