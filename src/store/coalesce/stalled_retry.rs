//! Look-ups of a call that is late, as it is where a server of several hangs. Each is tried on its
//! own, again and again, so that those are answered at once that do not need that server, and the
//! others as soon as it is back.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use tokio::sync::Semaphore;
use tokio::time::{Instant, sleep, sleep_until};

use super::batch::{Answers, Batch, Group, ask};
use crate::directory::error::Error;
use crate::directory::store::Store;

/// Look-ups that are tried alone concurrently: each may take a connection for the time of an early
/// retry.
const TRIES: usize = 32;
/// The time between two tries.
const PAUSE: Duration = Duration::from_millis(100);
/// The time for which a look-up is tried.
const LONGEST: Duration = Duration::from_secs(10);
/// A call is late once it has taken so many times the usual time.
const LATE: u32 = 4;
const AWAY: &str = "a part of the store does not answer";

/// The handling of late calls of one queue.
pub struct Late {
    /// The store below, by calls that give up early.
    pub hasty: Arc<dyn Store>,
    tries: Semaphore,
}

impl Late {
    pub fn new(hasty: Arc<dyn Store>) -> Self {
        Self { hasty, tries: Semaphore::new(TRIES) }
    }

    /// Looks up what one caller asked for. Goes on until there is an answer.
    pub async fn insist<G: Group>(&self, group: &G, keys: &[G::Key]) -> Answers<G::Found> {
        loop {
            if let Some(answers) = self.try_once(group, keys).await {
                return answers;
            }
            sleep(PAUSE).await;
        }
    }

    async fn try_once<G: Group>(&self, group: &G, keys: &[G::Key]) -> Option<Answers<G::Found>> {
        let _place = self.tries.acquire().await.ok()?;
        ask(group, &*self.hasty, keys).await.ok()
    }

    /// Looks up what those asked for whose call has failed, until all are answered or have left.
    pub async fn insist_for_all<G: Group>(&self, group: &G, mut batch: Batch<G>) {
        let (each, end) = (batch.of_each(), Instant::now() + LONGEST);
        let tries =
            each.iter().map(|(n, keys)| async move { (*n, self.insist(group, keys).await) });
        let mut tries: FuturesUnordered<_> = tries.collect();
        while !batch.is_over() && Instant::now() < end {
            tokio::select! {
                Some((n, answers)) = tries.next() => batch.answer_one(n, answers),
                () = sleep_until(end.min(Instant::now() + LONGEST / 10)) => {}
            }
        }
        batch.answer(Err(Error::Unavailable(AWAY.into())));
    }
}

/// The time that calls usually take.
#[derive(Default)]
pub struct Usual(AtomicU64);

impl Usual {
    /// Takes note of a call that was answered: an eighth of the difference counts.
    pub fn learn<T>(&self, took: Duration, outcome: &Result<T, Error>) {
        if outcome.is_ok() {
            let (took, usual) = (took.as_micros() as u64, self.0.load(Relaxed));
            self.0.store(usual - usual / 8 + took / 8, Relaxed);
        }
    }

    /// After so long a call is late, if not sooner than after `least`.
    pub fn late(&self, least: Duration) -> Duration {
        least.max(LATE * Duration::from_micros(self.0.load(Relaxed)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_late_follows_what_is_usual() {
        let (usual, least) = (Usual::default(), Duration::from_millis(100));
        assert_eq!(usual.late(least), least);
        (0..100).for_each(|_| usual.learn(Duration::from_millis(80), &Ok(())));
        let late = usual.late(least);
        assert!(
            (Duration::from_millis(300)..=Duration::from_millis(320)).contains(&late),
            "{late:?}"
        );
        (0..100).for_each(|_| usual.learn(Duration::from_millis(1), &Ok(())));
        assert_eq!(usual.late(least), least);
    }
}
