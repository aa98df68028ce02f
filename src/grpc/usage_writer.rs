//! The way of counters of calls from the callers into the store.

use std::collections::{BTreeMap, VecDeque};
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use locality_uuid::LocalityId;
use tokio::time::{sleep, timeout};

use crate::access::Access;
use crate::directory::clock::Now;
use crate::directory::error::Error;
use crate::directory::model::tenant::Tenant;
use crate::directory::service::Directory;
use crate::directory::stores::{Resolution, UsageBatch, UsageCount};

/// The time between two writes. Minutes begin at such times, so that all that was counted since the
/// last write is of one minute.
const PERIOD: Duration = Duration::from_secs(10);
/// The longest that one batch waits for the store.
const PATIENCE: Duration = Duration::from_secs(5);
/// The longest that a server that stops tries to write the last counts.
const PARTING: Duration = Duration::from_secs(5);
/// The pause before it tries again.
const PAUSE: Duration = Duration::from_millis(200);
/// The counts that may wait for the store. After that the oldest are lost.
const MOST_WAITING: usize = 200_000;

/// Takes the counts of a server's callers, and adds them to the counters in the store.
pub struct UsageWriter {
    access: Arc<Access>,
    directory: Arc<Directory>,
    server: LocalityId,
    /// Since when the callers' counts have been taken last.
    since: Now,
    /// The number of the last batch.
    number: u64,
    /// Batches that the store has not confirmed yet. It may have the first of them.
    waiting: VecDeque<UsageBatch>,
    has_failed: bool,
}

impl UsageWriter {
    pub fn new(access: Arc<Access>, directory: Arc<Directory>, server: LocalityId) -> Self {
        let since = directory.now();
        let (waiting, number, has_failed) = (VecDeque::new(), 0, false);
        Self { access, directory, server, since, number, waiting, has_failed }
    }

    /// Writes again and again.
    pub async fn run(&mut self) -> Infallible {
        loop {
            let period = PERIOD.as_millis() as u64;
            let into = self.directory.now().time.as_millis().unsigned_abs() % period;
            sleep(Duration::from_millis(period - into)).await;
            self.write().await;
        }
    }

    /// Writes the last counts when the server stops.
    pub async fn finish(&mut self) {
        let all = async {
            loop {
                self.write().await;
                if self.waiting.is_empty() {
                    return;
                }
                sleep(PAUSE).await;
            }
        };
        let _ = timeout(PARTING, all).await;
    }

    async fn write(&mut self) {
        self.take();
        while let Some(batch) = self.waiting.front() {
            let late = |_| Err(Error::Unavailable("it did not answer in time".into()));
            let added = timeout(PATIENCE, self.directory.add_usage(batch)).await;
            if let Err(error) = added.unwrap_or_else(late) {
                if !std::mem::replace(&mut self.has_failed, true) {
                    let error = error.with_causes();
                    tracing::warn!(%error, "usage cannot be stored: it is kept and tried again");
                }
                return;
            }
            self.waiting.pop_front();
            if self.directory.now().time.millis_after(self.since.time) >= PERIOD.as_millis() as i64
            {
                self.take();
            }
            if std::mem::take(&mut self.has_failed) {
                tracing::info!("usage is stored again");
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
        let Now { time, clock_uncertain, .. } =
            std::mem::replace(&mut self.since, self.directory.now());
        let (time, clock_uncertain) =
            (Resolution::Minute.floor(time), clock_uncertain || self.since.clock_uncertain);
        if counts.is_empty() {
            return;
        }
        // The first may be in the store already: nothing can be added to it.
        let is_first = self.waiting.len() == 1;
        match self.waiting.back_mut() {
            Some(last) if last.time == time && !is_first => {
                last.clock_uncertain |= clock_uncertain;
                last.counts = merged(std::mem::take(&mut last.counts), counts);
            }
            _ => {
                self.number += 1;
                let (server, number) = (self.server, self.number);
                self.waiting.push_back(UsageBatch {
                    server,
                    number,
                    time,
                    clock_uncertain,
                    counts,
                });
            }
        }
        while self.waiting.len() > 1 && self.counts_waiting() > MOST_WAITING {
            self.waiting.pop_front();
        }
    }

    fn counts_waiting(&self) -> usize {
        self.waiting.iter().map(|batch| batch.counts.len()).sum()
    }
}

/// The sums of counts.
fn merged(one: Vec<UsageCount>, other: Vec<UsageCount>) -> Vec<UsageCount> {
    let mut sums = BTreeMap::new();
    for UsageCount { tenant, caller, metric, count } in one.into_iter().chain(other) {
        *sums.entry((tenant, caller, metric)).or_insert(0) += count;
    }
    let count = |((tenant, caller, metric), count)| UsageCount { tenant, caller, metric, count };
    sums.into_iter().map(count).collect()
}
