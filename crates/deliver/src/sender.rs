//! The deliveries of a server: it takes those that no other server has, and delivers each in a task
//! of its own.

use std::collections::{BTreeMap, HashMap};
use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use metrics::gauge;
use polynym_directory::{DeliveryKey, Error, Tenant};
use tokio::task::{self, JoinError, JoinSet};

use crate::deliverer::Deliverer;
use crate::metrics::RUNNING;
use crate::turn;

/// The pause between two searches for deliveries.
const SEARCH_INTERVAL: Duration = Duration::from_secs(1);
/// The deliveries that one search finds, and those that a server has at once.
const DUE_LIMIT: usize = 4_096;
const MAX_RUNNING: usize = 256;
/// The pause after a turn that failed.
const FAILURE_PAUSE: Duration = Duration::from_secs(15);

/// The turns of a server.
#[derive(Default)]
struct Turns {
    tasks: JoinSet<Result<(), Error>>,
    running: HashMap<task::Id, DeliveryKey>,
    /// When deliveries whose turn failed may have another one.
    postponed: HashMap<DeliveryKey, Instant>,
}

impl Deliverer {
    /// Delivers events until the future is dropped. Safe on several servers.
    pub async fn run(self: Arc<Self>) -> Infallible {
        let mut turns = Turns::default();
        loop {
            match self.directory.due_deliveries(DUE_LIMIT).await {
                Ok(_) if self.is_stopping() => {}
                Ok(due) => turns.begin(&self, due),
                Err(error) => {
                    let error = error.with_causes();
                    tracing::warn!(%error, "the search for deliveries failed; it is retried");
                }
            }
            turns.count(&self);
            let pause = self.directory.wait_for_deliveries(SEARCH_INTERVAL);
            tokio::pin!(pause);
            loop {
                tokio::select! {
                    Some(ended) = turns.tasks.join_next_with_id() => {
                        turns.end(ended);
                        turns.count(&self);
                    }
                    () = &mut pause => break,
                }
            }
        }
    }
}

impl Turns {
    /// Begins the turns of deliveries that are due: those of tenants with few of them come first.
    fn begin(&mut self, deliverer: &Arc<Deliverer>, due: Vec<DeliveryKey>) {
        let now = Instant::now();
        self.postponed.retain(|_, until| *until > now);
        let mut of_tenants = BTreeMap::<Tenant, usize>::new();
        for (tenant, _) in self.running.values() {
            *of_tenants.entry(tenant.clone()).or_default() += 1;
        }
        let is_running = |key: &DeliveryKey| self.running.values().any(|other| other == key);
        let is_waiting = |key: &DeliveryKey| !is_running(key) && !self.postponed.contains_key(key);
        let mut waiting: Vec<_> = due.into_iter().filter(is_waiting).collect();
        while self.running.len() < MAX_RUNNING {
            let share = |key: &DeliveryKey| of_tenants.get(&key.0).copied().unwrap_or_default();
            let next = (0..waiting.len()).min_by_key(|n| waiting.get(*n).map(share));
            let Some(next) = next else { break };
            let key = waiting.remove(next);
            *of_tenants.entry(key.0.clone()).or_default() += 1;
            let turn = turn::run(deliverer.clone(), key.clone());
            self.running.insert(self.tasks.spawn(turn).id(), key);
        }
        deliverer.is_crowded.store(!waiting.is_empty(), Ordering::Relaxed);
    }

    /// Publishes the number of turns.
    fn count(&self, deliverer: &Deliverer) {
        gauge!(RUNNING.0).set(self.running.len() as f64);
        deliverer.running.send_replace(self.running.len());
    }

    /// Notes the end of a turn.
    fn end(&mut self, ended: Result<(task::Id, Result<(), Error>), JoinError>) {
        let (id, outcome) = match ended {
            Ok((id, outcome)) => (id, outcome.map_err(|error| error.with_causes())),
            Err(error) => (error.id(), Err(error.to_string())),
        };
        let Some(key) = self.running.remove(&id) else { return };
        if let Err(error) = outcome {
            let (tenant, delivery) = &key;
            tracing::warn!(%tenant, delivery, error, "a delivery waits; it is retried");
            self.postponed.insert(key, Instant::now() + FAILURE_PAUSE);
        }
    }
}
