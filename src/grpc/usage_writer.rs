//! Writes the counts of calls to the store.

use std::collections::{BTreeMap, VecDeque};
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use locality_uuid::LocalityId;
use tokio::time::{sleep, timeout};

use polynym_access::Access;
use polynym_directory::{Directory, Error, Now, Resolution, Tenant, UsageBatch, UsageCount};

/// The interval between two writes. It divides a minute, so that the counts since the last write
/// belong to one minute.
const WRITE_INTERVAL: Duration = Duration::from_secs(10);
/// The timeout of writing a batch.
const WRITE_TIMEOUT: Duration = Duration::from_secs(5);
/// The timeout of writing the last counts when the server stops.
const FINISH_TIMEOUT: Duration = Duration::from_secs(5);
/// The delay before a retry when the server stops.
const RETRY_DELAY: Duration = Duration::from_millis(200);
/// The maximum number of unwritten counts. Beyond it the oldest are lost.
const MAX_UNWRITTEN: usize = 200_000;

/// Takes the counts of callers, and adds them to the counters in the store.
pub struct UsageWriter {
    access: Arc<Access>,
    directory: Arc<Directory>,
    server: LocalityId,
    /// The time at which counts were last taken.
    last_taken: Now,
    /// The number of the last batch.
    number: u64,
    /// Batches that the store has not confirmed. It may have the first one.
    unconfirmed: VecDeque<UsageBatch>,
    has_failed: bool,
}

impl UsageWriter {
    pub fn new(access: Arc<Access>, directory: Arc<Directory>, server: LocalityId) -> Self {
        Self {
            last_taken: directory.now(),
            access,
            directory,
            server,
            number: 0,
            unconfirmed: VecDeque::new(),
            has_failed: false,
        }
    }

    /// Writes in a loop.
    pub async fn run(&mut self) -> Infallible {
        loop {
            let interval = WRITE_INTERVAL.as_millis() as u64;
            let elapsed = self.directory.now().time.as_millis().unsigned_abs() % interval;
            self.directory.clock().sleep(Duration::from_millis(interval - elapsed)).await;
            self.write().await;
        }
    }

    /// Writes the last counts when the server stops.
    pub async fn finish(&mut self) {
        let write_all = async {
            loop {
                self.write().await;
                if self.unconfirmed.is_empty() {
                    return;
                }
                sleep(RETRY_DELAY).await;
            }
        };
        let _ = timeout(FINISH_TIMEOUT, write_all).await;
    }

    async fn write(&mut self) {
        self.take();
        while let Some(batch) = self.unconfirmed.front() {
            let added = timeout(WRITE_TIMEOUT, self.directory.add_usage(batch))
                .await
                .unwrap_or_else(|_| Err(Error::Unavailable("the store timed out".into())));
            if let Err(error) = added {
                if !std::mem::replace(&mut self.has_failed, true) {
                    tracing::warn!(error = %error.with_causes(), "cannot store usage: retrying");
                }
                return;
            }
            self.unconfirmed.pop_front();
            if self.directory.now().time.millis_after(self.last_taken.time)
                >= WRITE_INTERVAL.as_millis() as i64
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
        let mut counts = Vec::new();
        for (caller, tenants) in self.access.take_counts() {
            for (tenant, metrics) in tenants {
                let Ok(tenant) = Tenant::parse(&tenant) else { continue };
                counts.extend(metrics.into_iter().map(|(metric, count)| UsageCount {
                    tenant: tenant.clone(),
                    caller: caller.clone(),
                    metric: metric.to_string(),
                    count,
                }));
            }
        }
        let since = std::mem::replace(&mut self.last_taken, self.directory.now());
        let time = Resolution::Minute.floor(since.time);
        let clock_uncertain = since.clock_uncertain || self.last_taken.clock_uncertain;
        if counts.is_empty() {
            return;
        }
        // The store may have the first batch already: it must not change.
        let is_first = self.unconfirmed.len() == 1;
        match self.unconfirmed.back_mut() {
            Some(last) if last.time == time && !is_first => {
                last.clock_uncertain |= clock_uncertain;
                last.counts = added(std::mem::take(&mut last.counts), counts);
            }
            _ => {
                self.number += 1;
                let (server, number) = (self.server, self.number);
                self.unconfirmed.push_back(UsageBatch {
                    server,
                    number,
                    time,
                    clock_uncertain,
                    counts,
                });
            }
        }
        while self.unconfirmed.len() > 1 && self.unwritten_counts() > MAX_UNWRITTEN {
            let dropped = self.unconfirmed.pop_front().map_or(0, |batch| batch.counts.len());
            tracing::warn!(dropped, "usage is lost: the store has not taken it for too long");
        }
    }

    fn unwritten_counts(&self) -> usize {
        self.unconfirmed.iter().map(|batch| batch.counts.len()).sum()
    }
}

/// Adds up counts.
fn added(one: Vec<UsageCount>, other: Vec<UsageCount>) -> Vec<UsageCount> {
    let mut sums = BTreeMap::new();
    for UsageCount { tenant, caller, metric, count } in one.into_iter().chain(other) {
        *sums.entry((tenant, caller, metric)).or_insert(0) += count;
    }
    sums.into_iter()
        .map(|((tenant, caller, metric), count)| UsageCount { tenant, caller, metric, count })
        .collect()
}
