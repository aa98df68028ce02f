//! The background tasks of bulk changes: one gives turns to those that are due, each in a task of
//! its own, and one removes those that ended long ago.

use std::collections::HashMap;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use tokio::task::{self, JoinError, JoinSet};

use super::queue::Queue;
use super::turn::BulkRunner;
use crate::error::Error;
use crate::model::bulk::change::BulkChange;
use crate::service::Directory;
use crate::stores::BulkChangeKey;

/// The pause between two searches for bulk changes to run.
const SEARCH_INTERVAL: Duration = Duration::from_secs(1);
/// Bulk changes that one search finds.
const DUE_LIMIT: usize = 4_096;
/// The pause between two searches for bulk changes to remove.
const REMOVAL_INTERVAL: Duration = Duration::from_secs(30);
/// Bulk changes that one search finds for removal.
const REMOVAL_LIMIT: usize = 1_000;

/// Whether the caller of a bulk change may still make it.
pub type MayChangeUsers = Arc<dyn Fn(&BulkChange) -> bool + Send + Sync>;

impl Directory {
    /// Runs the bulk changes of all tenants in tasks. Safe on several servers.
    pub async fn run_bulk_changes(self: &Arc<Self>, may_change: MayChangeUsers) -> Infallible {
        loop {
            let mut tasks = JoinSet::new();
            tasks.spawn(Scheduler::new(self.clone(), may_change.clone()).run());
            let directory = self.clone();
            tasks.spawn(async move { directory.remove_expired_bulk_changes().await });
            if let Some(Err(error)) = tasks.join_next().await {
                tracing::error!(%error, "a task of bulk changes failed; it is started again");
            }
            drop(tasks);
            self.clock.sleep(SEARCH_INTERVAL).await;
        }
    }

    /// Removes the bulk changes of all tenants that ended long ago, in a loop.
    async fn remove_expired_bulk_changes(&self) -> Infallible {
        loop {
            let now = self.now().earliest();
            match self.backend.bulk_changes.expired_bulk_changes(now, REMOVAL_LIMIT).await {
                Ok(expired) => {
                    for (tenant, id) in expired {
                        if let Err(error) = self.remove_bulk_change(&tenant, id.clone()).await {
                            let error = error.with_causes();
                            tracing::warn!(%tenant, bulk = id, %error, "a bulk change is kept");
                        }
                    }
                }
                Err(error) => {
                    let error = error.with_causes();
                    tracing::warn!(%error, "the search for old bulk changes failed");
                }
            }
            self.clock.sleep(REMOVAL_INTERVAL).await;
        }
    }
}

/// Gives turns to the bulk changes of all tenants.
struct Scheduler {
    runner: Arc<BulkRunner>,
    queue: Queue,
    /// The turns. Each returns whether it had an effect.
    turns: JoinSet<bool>,
    keys: HashMap<task::Id, BulkChangeKey>,
}

impl Scheduler {
    fn new(directory: Arc<Directory>, may_change: MayChangeUsers) -> Self {
        Self {
            runner: Arc::new(BulkRunner::new(directory, may_change)),
            queue: Queue::default(),
            turns: JoinSet::new(),
            keys: HashMap::new(),
        }
    }

    async fn run(mut self) -> Infallible {
        let directory = self.runner.directory.clone();
        loop {
            if self.queue.has_room(directory.clock.instant())
                && let Err(error) = self.find_due().await
            {
                let error = error.with_causes();
                tracing::warn!(%error, "the search for bulk changes failed; it is retried");
            }
            while let Some(key) = self.queue.begin_next(directory.clock.instant()) {
                let turn = self.runner.clone().run(key.clone());
                self.keys.insert(self.turns.spawn(turn).id(), key);
            }
            tokio::select! {
                Some(ended) = self.turns.join_next_with_id() => self.end_turn(ended),
                () = directory.bulk_started.notified() => {}
                () = directory.clock.sleep(SEARCH_INTERVAL) => {}
            }
        }
    }

    /// Finds the bulk changes that are due.
    async fn find_due(&mut self) -> Result<(), Error> {
        let Directory { backend, clock, .. } = &*self.runner.directory;
        let now = self.runner.directory.now().time;
        let due = backend.bulk_changes.due_bulk_changes(now, DUE_LIMIT).await?;
        self.queue.set_due(due, clock.instant());
        Ok(())
    }

    fn end_turn(&mut self, ended: Result<(task::Id, bool), JoinError>) {
        let (id, had_effect) = ended.unwrap_or_else(|error| (error.id(), false));
        let Some(key) = self.keys.remove(&id) else { return };
        if had_effect {
            self.queue.end(&key);
        } else {
            let until = self.runner.directory.clock.instant() + SEARCH_INTERVAL;
            self.queue.postpone(key, until);
        }
    }
}
