//! Adds the counts of a server to the counters in the store, from time to time.

use std::collections::{BTreeMap, VecDeque};
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use locality_uuid::LocalityId;
use tokio::time::{sleep, timeout};

use crate::clock::Now;
use crate::error::Error;
use crate::service::Directory;
use crate::stores::{Resolution, UsageBatch, UsageCount};
use crate::timestamp::Timestamp;

/// The interval between two flushes. It divides a minute, so that the counts since the last flush
/// belong to one minute.
const FLUSH_INTERVAL: Duration = Duration::from_secs(10);
/// The timeout of storing a batch.
const STORE_TIMEOUT: Duration = Duration::from_secs(5);
/// The timeout of storing the last counts when the server stops.
const FINISH_TIMEOUT: Duration = Duration::from_secs(5);
/// The delay before a retry when the server stops.
const RETRY_DELAY: Duration = Duration::from_millis(200);
/// The maximum number of unconfirmed counts. Beyond it the oldest are lost.
const MAX_UNCONFIRMED: usize = 200_000;

/// Takes the counts of callers, and adds them to the counters in the store, each once.
pub struct UsageFlusher<T> {
    directory: Arc<Directory>,
    /// Returns the counts since it was last called.
    take_counts: T,
    /// The time at which counts were last taken.
    last_taken: Now,
    unconfirmed: UnconfirmedBatches,
    has_failed: bool,
}

impl<T: Fn() -> Vec<UsageCount>> UsageFlusher<T> {
    /// Flushes what `take_counts` returns: the counts of this run of a server since it was last
    /// called.
    pub fn new(directory: Arc<Directory>, server: LocalityId, take_counts: T) -> Self {
        Self {
            last_taken: directory.now(),
            directory,
            take_counts,
            unconfirmed: UnconfirmedBatches::new(server),
            has_failed: false,
        }
    }

    /// Flushes in a loop.
    pub async fn run(&mut self) -> Infallible {
        loop {
            let interval = FLUSH_INTERVAL.as_millis() as u64;
            let elapsed = self.directory.now().time.as_millis().unsigned_abs() % interval;
            self.directory.clock().sleep(Duration::from_millis(interval - elapsed)).await;
            self.flush().await;
        }
    }

    /// Flushes the last counts when the server stops.
    pub async fn finish(&mut self) {
        let flush_all = async {
            loop {
                self.flush().await;
                if self.unconfirmed.batches.is_empty() {
                    return;
                }
                sleep(RETRY_DELAY).await;
            }
        };
        let _ = timeout(FINISH_TIMEOUT, flush_all).await;
    }

    async fn flush(&mut self) {
        self.take();
        while let Some(batch) = self.unconfirmed.batches.front() {
            let added = timeout(STORE_TIMEOUT, self.directory.add_usage(batch))
                .await
                .unwrap_or_else(|_| Err(Error::Unavailable("the store timed out".into())));
            if let Err(error) = added {
                if !std::mem::replace(&mut self.has_failed, true) {
                    tracing::warn!(error = %error.with_causes(), "cannot store usage: retrying");
                }
                return;
            }
            self.unconfirmed.batches.pop_front();
            if self.directory.now().time.millis_after(self.last_taken.time)
                >= FLUSH_INTERVAL.as_millis() as i64
            {
                self.take();
            }
            if std::mem::take(&mut self.has_failed) {
                tracing::info!("storing usage again");
            }
        }
    }

    /// Takes the counts of the callers.
    fn take(&mut self) {
        let counts = (self.take_counts)();
        let since = std::mem::replace(&mut self.last_taken, self.directory.now());
        let minute = Resolution::Minute.floor(since.time);
        let clock_uncertain = since.clock_uncertain || self.last_taken.clock_uncertain;
        if !counts.is_empty() {
            self.unconfirmed.push(minute, clock_uncertain, counts);
        }
    }
}

/// The batches that the store has not confirmed, the oldest first. It may have the first one
/// already, which therefore does not change.
struct UnconfirmedBatches {
    server: LocalityId,
    /// The number of the last batch.
    number: u64,
    batches: VecDeque<UsageBatch>,
}

impl UnconfirmedBatches {
    const fn new(server: LocalityId) -> Self {
        Self { server, number: 0, batches: VecDeque::new() }
    }

    /// Adds counts of a minute, to its batch if that may change.
    fn push(&mut self, time: Timestamp, clock_uncertain: bool, counts: Vec<UsageCount>) {
        let is_first = self.batches.len() == 1;
        match self.batches.back_mut() {
            Some(last) if last.time == time && !is_first => {
                last.clock_uncertain |= clock_uncertain;
                last.counts = sum(std::mem::take(&mut last.counts), counts);
            }
            _ => {
                self.number += 1;
                let (server, number) = (self.server, self.number);
                let batch = UsageBatch { server, number, time, clock_uncertain, counts };
                self.batches.push_back(batch);
            }
        }
        self.drop_oldest();
    }

    /// Drops the oldest batches if there are too many counts.
    fn drop_oldest(&mut self) {
        while self.batches.len() > 1 && self.counts() > MAX_UNCONFIRMED {
            let dropped = self.batches.pop_front().map_or(0, |batch| batch.counts.len());
            tracing::warn!(dropped, "usage is lost: the store has not taken it for too long");
        }
    }

    fn counts(&self) -> usize {
        self.batches.iter().map(|batch| batch.counts.len()).sum()
    }
}

/// Adds up counts.
fn sum(one: Vec<UsageCount>, other: Vec<UsageCount>) -> Vec<UsageCount> {
    let mut sums = BTreeMap::new();
    for UsageCount { tenant, caller, metric, count } in one.into_iter().chain(other) {
        *sums.entry((tenant, caller, metric)).or_insert(0) += count;
    }
    sums.into_iter()
        .map(|((tenant, caller, metric), count)| UsageCount { tenant, caller, metric, count })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::tenant::Tenant;

    fn count(count: u64) -> Vec<UsageCount> {
        let (caller, metric) = ("web".to_owned(), "resolves.email.found".to_owned());
        vec![UsageCount { tenant: Tenant::DEFAULT, caller, metric, count }]
    }

    #[test]
    fn the_first_batch_does_not_change() {
        let minute = |n: i64| Timestamp::from_millis(n * 60_000);
        let mut unconfirmed = UnconfirmedBatches::new(LocalityId::from([1; 16]));
        for (time, amount) in [(minute(0), 1), (minute(0), 2), (minute(0), 4), (minute(1), 8)] {
            unconfirmed.push(time, false, count(amount));
        }
        let batches = unconfirmed.batches.iter();
        let batches = batches.map(|batch| (batch.number, batch.time, batch.counts[0].count));
        assert_eq!(
            batches.collect::<Vec<_>>(),
            [(1, minute(0), 1), (2, minute(0), 6), (3, minute(1), 8)]
        );
    }
}
