//! Jobs of a server in the background for tenants that are marked: their deletion, and changes of
//! their indexes and of the retention of their history.

use std::convert::Infallible;
use std::time::Duration;

use tokio::time::sleep;

use crate::model::tenant::Tenant;
use crate::model::tenant_record::TenantRecord;
use crate::mutation::{Mutation, MutationKind};
use crate::service::Directory;
use crate::service::tenant_cache::KnownTenant;
use crate::service::tenants::each_tenant::each_tenant;

/// The pause between two searches for tenants that other servers have marked.
const SEARCH: Duration = Duration::from_secs(30);
/// The pause between two rounds over marked tenants.
const PERIOD: Duration = Duration::from_secs(1);

impl Directory {
    /// Carries out the jobs of all tenants in loops. Safe on several servers.
    pub async fn run_tenant_jobs(&self) -> Infallible {
        tokio::select! {
            never = self.find_marked_tenants() => never,
            never = self.delete_marked_tenants() => never,
            never = self.change_indexes() => never,
            never = self.shorten_histories() => never,
        }
    }

    /// Queues the jobs of a tenant.
    pub(crate) fn queue_jobs(&self, tenant: &TenantRecord) {
        if let Some(deletion) = tenant.deletion {
            self.deletions.add(&tenant.name, deletion.time);
        }
        if let Some(since) = tenant.policies.index_change() {
            self.index_changes.add(&tenant.name, since);
        }
        if let Some(since) = tenant.policies.history_change {
            self.history_changes.add(&tenant.name, since);
        }
    }

    async fn find_marked_tenants(&self) -> Infallible {
        loop {
            let search = each_tenant(&*self.backend.tenants, |tenant| self.queue_jobs(&tenant));
            if let Err(error) = search.await {
                let error = error.with_causes();
                tracing::warn!(%error, "the search for marked tenants failed and is tried again");
            }
            sleep(SEARCH).await;
        }
    }

    async fn delete_marked_tenants(&self) -> Infallible {
        loop {
            for tenant in self.deletions.ready() {
                self.delete_marked_tenant(&tenant).await;
            }
            sleep(PERIOD).await;
        }
    }

    async fn change_indexes(&self) -> Infallible {
        loop {
            for tenant in self.index_changes.ready() {
                self.change_marked_index(&tenant).await;
            }
            sleep(PERIOD).await;
        }
    }

    async fn shorten_histories(&self) -> Infallible {
        loop {
            for tenant in self.history_changes.ready() {
                self.shorten_marked_history(&tenant).await;
            }
            sleep(PERIOD).await;
        }
    }

    /// A mutation of the server itself, without a caller.
    pub(crate) fn own_mutation(
        &self,
        name: &Tenant,
        tenant: KnownTenant,
        kind: MutationKind,
    ) -> Mutation {
        let now = self.now();
        Mutation {
            tenant_since: tenant.since,
            clock_uncertain: now.clock_uncertain,
            limits: self.limits,
            policies: tenant.policies,
            ..Mutation::new(name.clone(), now.time, kind)
        }
    }
}
