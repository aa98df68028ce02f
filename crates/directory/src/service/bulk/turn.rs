//! The turn of one bulk change on one server. The server records its progress after each batch, so
//! that another one can go on.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use locality_uuid::LocalityId;

use super::run::MayChangeUsers;
use crate::error::Error;
use crate::model::bulk::change::{BulkAction, BulkChange, BulkList, BulkState};
use crate::model::bulk::progress::BulkBatch;
use crate::mutation::MutationKind;
use crate::mutation::bulk::{BulkProgress, BulkStep, RunStep};
use crate::mutation::read_set::MutationReport;
use crate::search::{AccessPath, Field, Filter, Order};
use crate::service::Directory;
use crate::stores::BulkChangeKey;
use crate::tenant_cache::KnownTenant;

/// The method in the events of bulk changes.
pub(super) const METHOD: &str = "StartBulkChange";
/// How long one runs before the others.
const RUN_TIME: Duration = Duration::from_secs(1);
/// The longest pause between two batches.
const MAX_BATCH_PAUSE: Duration = Duration::from_millis(200);
/// The interval at which the lease is renewed during a batch.
const RENEW_INTERVAL: Duration = Duration::from_secs(2);

/// Runs bulk changes on one server.
pub(super) struct BulkRunner {
    pub directory: Arc<Directory>,
    may_change: MayChangeUsers,
    /// The random id of this server.
    pub(super) server: LocalityId,
}

impl BulkRunner {
    /// The runner of this server.
    pub fn new(directory: Arc<Directory>, may_change: MayChangeUsers) -> Self {
        let server = directory.ids.next_id();
        Self { directory, may_change, server }
    }

    /// Runs a bulk change for a turn. Returns whether the turn had an effect.
    pub async fn run(self: Arc<Self>, key: BulkChangeKey) -> bool {
        let ran = AssertUnwindSafe(self.run_batches(&key)).catch_unwind().await;
        let ran = match ran {
            Ok(ran) => ran,
            Err(_) => {
                let (tenant, bulk) = &key;
                tracing::error!(%tenant, bulk, "a bulk change panicked; it fails");
                self.step(&key, self.end(BulkState::Failed, "INTERNAL")).await
            }
        };
        match ran {
            Ok(change) => change.is_some(),
            Err(error) => {
                let ((tenant, bulk), error) = (&key, error.with_causes());
                tracing::warn!(%tenant, bulk, %error, "a bulk change waits; it is retried");
                false
            }
        }
    }

    /// Runs batches until the time is over. Returns the bulk change afterwards; none if another
    /// server runs it.
    async fn run_batches(&self, key: &BulkChangeKey) -> Result<Option<BulkChange>, Error> {
        let Some(mut change) = self.step(key, BulkStep::Take(self.server)).await? else {
            return Ok(None);
        };
        let clock = &self.directory.clock;
        let began = clock.instant();
        while change.is_running() && change.lease.is_some() {
            let batch_began = clock.instant();
            let releases_lease = batch_began - began >= RUN_TIME;
            let Some(after) = self.run_batch(key, &change, releases_lease).await? else {
                return Ok(None);
            };
            change = after;
            if change.wait.is_some() {
                break;
            }
            clock.sleep(((clock.instant() - batch_began) / 2).min(MAX_BATCH_PAUSE)).await;
        }
        if !change.is_running() {
            let (tenant, counts) = (change.tenant.as_str(), &change.counts);
            let failed: u64 = counts.failed.values().sum();
            tracing::info!(tenant, bulk = change.id, state = ?change.state,
                changed = counts.changed, failed, reason = change.end_reason,
                "a bulk change ended");
        }
        Ok(Some(change))
    }

    /// Changes the users of the present batch, finds the next one, and records both. Returns none
    /// if another server has taken over.
    async fn run_batch(
        &self,
        key: &BulkChangeKey,
        change: &BulkChange,
        releases_lease: bool,
    ) -> Result<Option<BulkChange>, Error> {
        if !(self.may_change)(change) {
            return self.step(key, self.end(BulkState::Stopped, "ROLE_DENIED")).await;
        }
        let progress = tokio::select! {
            progress = self.progress(change, releases_lease) => progress,
            () = self.keep_lease(key, change) => return Ok(None),
        };
        let (tenant, bulk) = key;
        let step = match progress {
            Ok(progress) => BulkStep::Run(self.server, RunStep::Save(Box::new(progress))),
            Err(error) => {
                let reason = error.reason();
                let causes = error.with_causes();
                if is_retryable(&error) {
                    tracing::warn!(%tenant, bulk, error = causes, "users of a bulk change wait");
                    BulkStep::Run(self.server, RunStep::Wait(reason.to_owned()))
                } else {
                    tracing::warn!(%tenant, bulk, error = causes, "a bulk change failed");
                    self.end(BulkState::Failed, reason)
                }
            }
        };
        self.step(key, step).await
    }

    /// Renews the lease, and the right to undo a bulk change, until another server has taken over.
    async fn keep_lease(&self, key: &BulkChangeKey, change: &BulkChange) {
        loop {
            self.directory.clock.sleep(RENEW_INTERVAL).await;
            match self.step(key, BulkStep::Run(self.server, RunStep::Renew)).await {
                Ok(Some(_)) => {
                    if let Err(error) = self.begin_undoing(change).await {
                        let ((tenant, bulk), error) = (key, error.with_causes());
                        tracing::warn!(%tenant, bulk, %error, "an undoing may not go on");
                    }
                }
                Ok(None) => return,
                Err(error) => {
                    let ((tenant, bulk), error) = (key, error.with_causes());
                    tracing::warn!(%tenant, bulk, %error, "the lease of a bulk change was not \
                        renewed");
                }
            }
        }
    }

    async fn progress(
        &self,
        change: &BulkChange,
        releases_lease: bool,
    ) -> Result<BulkProgress, Error> {
        let mut undone = self.begin_undoing(change).await?;
        let filter = match (change.list, &undone) {
            (None, None) => Some(Arc::new(self.directory.parse_filter(&change.filter).await?)),
            _ => None,
        };
        let results = self.change_batch(change, filter.as_ref(), undone.as_mut()).await?;
        let Some(undone) = undone else {
            let next = self.next_batch(change, filter.as_deref()).await?;
            return Ok(BulkProgress { results, next, releases_lease, found: None });
        };
        let (next, found) = self.next_undone(change, &undone).await?;
        let is_end = next.users.is_empty() && next.is_last;
        self.note_undone(change, undone, is_end).await?;
        Ok(BulkProgress { results, next, releases_lease, found })
    }

    /// The users after the present batch.
    pub(super) async fn next_batch(
        &self,
        change: &BulkChange,
        filter: Option<&Filter>,
    ) -> Result<BulkBatch, Error> {
        let BulkBatch { cursor, is_last, .. } = &change.batch;
        if *is_last {
            return Ok(BulkBatch { users: Vec::new(), cursor: cursor.clone(), is_last: true });
        }
        let directory = &*self.directory;
        let Some(filter) = filter else { return self.next_listed(change).await };
        let context = directory.context(change.tenant.clone(), &change.caller, METHOD, "");
        directory.matching_users(&context, filter, |path| keeps_order(path, change), cursor).await
    }

    /// The users of the list after the present batch. The cursor is the number of their batch.
    async fn next_listed(&self, change: &BulkChange) -> Result<BulkBatch, Error> {
        let batch = next_row(&change.batch)?;
        let changes = &self.directory.backend.bulk_changes;
        let users = changes.listed_users(&change.tenant, &change.id, batch as u32).await?;
        if users.is_empty() {
            return Err(lost_list());
        }
        let next = batch + 1;
        let is_end = |list: BulkList| next >= list.batches() && !list.is_partial;
        let is_last = change.list.is_none_or(is_end);
        Ok(BulkBatch { users, cursor: (next as u32).to_be_bytes().to_vec(), is_last })
    }

    fn end(&self, state: BulkState, reason: &str) -> BulkStep {
        BulkStep::Run(self.server, RunStep::End(state, reason.to_owned()))
    }

    /// Takes a step. Returns the bulk change after it; none if another server has taken over.
    pub(super) async fn step(
        &self,
        (tenant, id): &BulkChangeKey,
        step: BulkStep,
    ) -> Result<Option<BulkChange>, Error> {
        let kind = MutationKind::Bulk(id.clone(), step);
        let mutation = self.directory.own_mutation(tenant, KnownTenant::default(), kind);
        match self.directory.backend.mutations.mutate(mutation).await?.report {
            MutationReport::BulkChange(change) => Ok(Some(*change)),
            _ => Ok(None),
        }
    }
}

/// The number of the next row of the list.
pub(super) fn next_row(batch: &BulkBatch) -> Result<u64, Error> {
    match &*batch.cursor {
        [] => Ok(0),
        bytes => Ok(u32::from_be_bytes(bytes.try_into().map_err(|_| lost_list())?).into()),
    }
}

pub(super) fn lost_list() -> Error {
    Error::Internal("a bulk change without a part of its list".into())
}

/// Whether the same may succeed later.
pub(super) const fn is_retryable(error: &Error) -> bool {
    match error {
        Error::Internal(_) => false,
        Error::IndexChanging => true,
        other => other.is_of_store(),
    }
}

/// Whether the change leaves users at their places in the order of a path, so that the search meets
/// each of them once.
fn keeps_order(path: &AccessPath, change: &BulkChange) -> bool {
    match (&change.action, path.order(), path.field()) {
        (BulkAction::Attributes(edits), Order::Value, Some(Field::Attribute(name))) => {
            !edits.contains_key(name)
        }
        _ => true,
    }
}
