//! The background task that runs bulk changes. A server runs one for a turn, and then others; it
//! records its progress after each batch, so that another server can go on.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::{StreamExt, stream};
use locality_uuid::LocalityId;
use tokio::time::{sleep, timeout};

use crate::error::Error;
use crate::model::bulk::change::{BulkAction, BulkChange, BulkState};
use crate::model::bulk::progress::BulkBatch;
use crate::model::tenant::Tenant;
use crate::mutation::MutationKind;
use crate::mutation::bulk::{BulkProgress, BulkStep};
use crate::mutation::read_set::MutationReport;
use crate::search::{AccessPath, Field, Filter, Order};
use crate::service::Directory;
use crate::service::tenant_cache::KnownTenant;

/// The method in the events of bulk changes.
pub(super) const METHOD: &str = "StartBulkChange";
/// The pause between two searches for bulk changes to run.
const SEARCH_INTERVAL: Duration = Duration::from_secs(1);
/// Bulk changes that one search finds.
const DUE_LIMIT: usize = 16;
/// Bulk changes that run at once. One that hangs must not stop all others.
const MAX_CONCURRENT: usize = 4;
/// How long one runs before others get a turn.
const RUN_TIME: Duration = Duration::from_secs(1);
/// The longest pause between two batches.
const MAX_BATCH_PAUSE: Duration = Duration::from_millis(200);

/// What the directory asks the program: the rights of callers, and the reasons of errors.
pub trait BulkHost: Send + Sync {
    /// Whether the caller may still change users of the tenant.
    fn may_change_users(&self, caller: &str, tenant: &Tenant) -> bool;

    /// The reason of an error, as programs rely on it.
    fn error_reason(&self, error: &Error) -> &'static str;
}

/// The task of one server.
pub(super) struct BulkRunner<'d> {
    pub directory: &'d Directory,
    pub host: &'d dyn BulkHost,
    /// The random id of this server.
    server: LocalityId,
}

impl Directory {
    /// Runs the bulk changes of all tenants in a loop. Safe on several servers.
    pub async fn run_bulk_changes(&self, host: &dyn BulkHost) -> Infallible {
        let runner = BulkRunner { directory: self, host, server: self.ids.next_id() };
        loop {
            match runner.run_due().await {
                // Others may be due.
                Ok(true) => continue,
                Ok(false) => {}
                Err(error) => {
                    let error = error.with_causes();
                    tracing::warn!(%error, "the search for bulk changes failed; it is retried");
                }
            }
            let _ = timeout(SEARCH_INTERVAL, self.bulk_started.notified()).await;
        }
    }
}

impl BulkRunner<'_> {
    /// Runs the bulk changes that are due, each for a turn. Returns whether one ran.
    async fn run_due(&self) -> Result<bool, Error> {
        let now = self.directory.now().earliest();
        let due = self.directory.backend.bulk_changes.due_bulk_changes(now, DUE_LIMIT).await?;
        let turns: Vec<_> =
            due.into_iter().map(|(tenant, id)| self.run_logged(tenant, id)).collect();
        let ran = stream::iter(turns).buffer_unordered(MAX_CONCURRENT);
        Ok(ran.fold(false, |any, ran| async move { any | ran }).await)
    }

    /// Runs one for a turn. Returns whether it ran.
    async fn run_logged(&self, tenant: Tenant, id: String) -> bool {
        match self.run(&tenant, &id).await {
            Ok(has_run) => has_run,
            Err(error) => {
                let error = error.with_causes();
                tracing::warn!(%tenant, bulk = id, %error, "a bulk change waits; it is retried");
                false
            }
        }
    }

    async fn run(&self, tenant: &Tenant, id: &str) -> Result<bool, Error> {
        let Directory { backend, .. } = self.directory;
        match backend.bulk_changes.bulk_change(tenant, id).await? {
            None => return Ok(false),
            Some(ended) if !ended.is_running() => {
                if self.directory.now().is_past(ended.due_time()) {
                    self.directory.remove_bulk_change(tenant, ended.id).await?;
                }
                return Ok(false);
            }
            Some(_) => {}
        }
        let Some(mut change) = self.step(tenant, id, BulkStep::Take(self.server)).await? else {
            return Ok(false);
        };
        let began = Instant::now();
        while change.is_running() && change.lease.is_some() {
            let batch_began = Instant::now();
            let Some(after) = self.run_batch(&change, began.elapsed() >= RUN_TIME).await? else {
                break;
            };
            change = after;
            sleep((batch_began.elapsed() / 2).min(MAX_BATCH_PAUSE)).await;
        }
        if !change.is_running() {
            let (tenant, counts) = (tenant.as_str(), &change.counts);
            let failed: u64 = counts.failed.values().sum();
            tracing::info!(tenant, bulk = id, state = ?change.state, changed = counts.changed,
                failed, reason = change.end_reason, "a bulk change ended");
        }
        Ok(true)
    }

    /// Changes the users of the present batch, finds the next one, and records both. Returns none
    /// if another server has taken over.
    async fn run_batch(
        &self,
        change: &BulkChange,
        releases_lease: bool,
    ) -> Result<Option<BulkChange>, Error> {
        let (tenant, id) = (&change.tenant, &*change.id);
        let end = |state, reason: &str| BulkStep::End(self.server, state, reason.to_owned());
        if !self.host.may_change_users(&change.caller, tenant) {
            return self.step(tenant, id, end(BulkState::Stopped, "ROLE_DENIED")).await;
        }
        match self.progress(change, releases_lease).await {
            Ok(progress) => {
                self.step(tenant, id, BulkStep::Save(self.server, Box::new(progress))).await
            }
            Err(error) if is_retryable(&error) => Err(error),
            Err(error) => {
                tracing::warn!(%tenant, bulk = id, error = error.with_causes(), "a bulk change \
                    failed");
                let reason = self.host.error_reason(&error);
                self.step(tenant, id, end(BulkState::Failed, reason)).await
            }
        }
    }

    async fn progress(
        &self,
        change: &BulkChange,
        releases_lease: bool,
    ) -> Result<BulkProgress, Error> {
        let filter = Arc::new(self.directory.parse_filter(&change.filter).await?);
        let results = self.change_batch(change, &filter).await?;
        let next = self.next_batch(change, &filter).await?;
        Ok(BulkProgress { results, next, releases_lease })
    }

    /// The users after the present batch.
    async fn next_batch(&self, change: &BulkChange, filter: &Filter) -> Result<BulkBatch, Error> {
        let BulkBatch { cursor, is_last, .. } = &change.batch;
        if *is_last {
            return Ok(BulkBatch { users: Vec::new(), cursor: cursor.clone(), is_last: true });
        }
        let directory = self.directory;
        let context = directory.context(change.tenant.clone(), &change.caller, METHOD, "");
        directory.matching_users(&context, filter, |path| keeps_order(path, change), cursor).await
    }

    /// Takes a step. Returns the bulk change after it; none if another server has taken over.
    async fn step(
        &self,
        tenant: &Tenant,
        id: &str,
        step: BulkStep,
    ) -> Result<Option<BulkChange>, Error> {
        let kind = MutationKind::Bulk(id.to_owned(), step);
        let mutation = self.directory.own_mutation(tenant, KnownTenant::default(), kind);
        match self.directory.backend.mutations.mutate(mutation).await?.report {
            MutationReport::BulkChange(change) => Ok(Some(*change)),
            _ => Ok(None),
        }
    }
}

/// Whether the same may succeed later.
pub(super) const fn is_retryable(error: &Error) -> bool {
    match error {
        Error::Internal(_) => false,
        Error::DiskFull | Error::IndexChanging | Error::NotSearchable => true,
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
