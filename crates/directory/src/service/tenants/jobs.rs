//! The background jobs of a server for marked tenants.

use std::convert::Infallible;
use std::time::{Duration, Instant};

use futures_util::{StreamExt, TryStreamExt, stream};
use locality_uuid::LocalityId;
use tokio::time::sleep;

use crate::error::Error;
use crate::model::tenant::Tenant;
use crate::model::tenant_record::TenantRecord;
use crate::mutation::read_set::MutationReport;
use crate::mutation::{Mutation, MutationKind, TenantChange, UserChange};
use crate::service::Directory;
use crate::service::tenants::each_tenant::each_tenant;
use crate::tenant_cache::KnownTenant;
use crate::tenant_queue::{RETRY_DELAY, TenantJob};
use crate::timestamp::Timestamp;

/// The pause between two searches for tenants that other servers have marked.
const SEARCH_PERIOD: Duration = Duration::from_secs(30);
/// The pause between two rounds over marked tenants.
const ROUND_INTERVAL: Duration = Duration::from_secs(1);
/// The pause between two parts of the search for events without users, and after the last.
const STRAYS_PERIOD: Duration = Duration::from_secs(2);
const STRAYS_PAUSE: Duration = Duration::from_secs(24 * 60 * 60);
/// Users that are stored concurrently.
const CONCURRENT_STORES: usize = 32;

impl Directory {
    /// Runs the jobs of all tenants in loops. Safe on several servers.
    pub async fn run_tenant_jobs(&self) -> Infallible {
        let [deletion, index_change, history_change] = TenantJob::ALL;
        tokio::select! {
            never = self.find_marked_tenants() => never,
            never = self.run_jobs(deletion) => never,
            never = self.run_jobs(index_change) => never,
            never = self.run_jobs(history_change) => never,
            never = self.remove_stray_events() => never,
        }
    }

    /// Queues the jobs of a tenant.
    pub(crate) fn queue_jobs(&self, tenant: &TenantRecord) {
        for job in TenantJob::ALL {
            if let Some(marked_at) = job.marked_at(tenant) {
                self.jobs.add(job, &tenant.name, marked_at);
            }
        }
    }

    async fn find_marked_tenants(&self) -> Infallible {
        loop {
            let search = each_tenant(&*self.backend.tenants, |tenant| self.queue_jobs(&tenant));
            if let Err(error) = search.await {
                let error = error.with_causes();
                tracing::warn!(%error, "the search for marked tenants failed; it is retried");
            }
            sleep(SEARCH_PERIOD).await;
        }
    }

    /// Removes events whose users are gone, part by part.
    async fn remove_stray_events(&self) -> Infallible {
        let mut position = None;
        loop {
            position = match self.backend.histories.remove_strays(position).await {
                Ok(next) => next,
                Err(error) => {
                    let error = error.with_causes();
                    tracing::warn!(%error, "the search for events without users failed");
                    position
                }
            };
            sleep(if position.is_some() { STRAYS_PERIOD } else { STRAYS_PAUSE }).await;
        }
    }

    async fn run_jobs(&self, job: TenantJob) -> Infallible {
        loop {
            for tenant in self.jobs.due(job) {
                let outcome = match job {
                    TenantJob::Deletion => self.delete_marked_tenant(&tenant).await,
                    TenantJob::IndexChange => self.change_index(&tenant).await,
                    TenantJob::HistoryChange => self.shorten_history(&tenant).await,
                };
                if let Err(error) = outcome {
                    let error = error.with_causes();
                    let message = "a job of a tenant failed; it is retried";
                    tracing::warn!(%tenant, ?job, %error, pause = ?RETRY_DELAY, message);
                    self.jobs.postpone(job, &tenant);
                }
            }
            sleep(ROUND_INTERVAL).await;
        }
    }

    /// A tenant whose policies are marked for a job, and the time of the mark. None if the job is
    /// done, or has to wait because the mark is new.
    pub(crate) async fn marked_tenant(
        &self,
        job: TenantJob,
        name: &Tenant,
    ) -> Result<Option<(KnownTenant, Timestamp)>, Error> {
        let began = Instant::now();
        let record = self.backend.tenants.tenant(name).await?;
        let marked = record
            .filter(|tenant| tenant.deletion.is_none())
            .and_then(|tenant| Some((job.marked_at(&tenant)?, KnownTenant::from(&tenant))));
        let Some((time, known)) = marked else {
            self.jobs.remove(job, name);
            return Ok(None);
        };
        if self.jobs.add(job, name, time) {
            return Ok(None);
        }

        self.tenants.learn_change(name, Some(known.clone()), began);
        Ok(Some((known, time)))
    }

    /// Removes the mark of a job.
    pub(crate) async fn finish_job(
        &self,
        name: &Tenant,
        known: KnownTenant,
        change: TenantChange,
    ) -> Result<(), Error> {
        let finish = self.own_mutation(name, known, MutationKind::Tenant(change));
        let began = Instant::now();
        if let MutationReport::Tenant(changed) = self.backend.mutations.mutate(finish).await?.report
        {
            self.tenants.learn_change(name, Some(KnownTenant::from(&*changed)), began);
        }
        Ok(())
    }

    /// Stores users again, unchanged. Returns their number.
    pub(crate) async fn store_again(
        &self,
        name: &Tenant,
        known: &KnownTenant,
        users: impl Iterator<Item = LocalityId>,
    ) -> Result<usize, Error> {
        let stores: Vec<_> = users
            .map(|id| MutationKind::User(id, UserChange::Reindex))
            .map(|kind| self.own_mutation(name, known.clone(), kind))
            .map(|mutation| self.backend.mutations.mutate(mutation))
            .collect();
        let stored = stream::iter(stores).buffer_unordered(CONCURRENT_STORES);
        stored.try_fold(0, |count, _| async move { Ok(count + 1) }).await
    }

    /// A mutation of the server itself, without a caller.
    pub(crate) fn own_mutation(
        &self,
        name: &Tenant,
        tenant: KnownTenant,
        kind: MutationKind,
    ) -> Mutation {
        Mutation {
            tenant_since: tenant.since,
            limits: self.limits,
            policies: tenant.policies,
            ..Mutation::new(name.clone(), self.now(), kind)
        }
    }
}
