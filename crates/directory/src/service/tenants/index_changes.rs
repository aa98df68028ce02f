//! Changes of indexes: after a tenant has defined an attribute as indexed or not indexed, the
//! servers store the users that have the attribute again.

use std::time::Instant;

use futures_util::{StreamExt, TryStreamExt, stream};

use crate::error::Error;
use crate::model::policies::Policies;
use crate::model::record::Record;
use crate::model::tenant::Tenant;
use crate::mutation::read_set::MutationReport;
use crate::mutation::{MutationKind, TenantChange, UserChange};
use crate::service::Directory;
use crate::service::tenant_cache::KnownTenant;

/// Users that are read at once.
const PAGE: usize = 500;
/// Users that are stored concurrently.
const AT_ONCE: usize = 32;

impl Directory {
    /// Carries out the change of a tenant's indexes. Safe on several servers, and begun again by
    /// any of them where one stops: to store a user twice changes nothing.
    pub(crate) async fn change_marked_index(&self, tenant: &Tenant) {
        if let Err(error) = self.change_index(tenant).await {
            let error = error.with_causes();
            tracing::warn!(%tenant, %error, "the change of an index failed and is tried again");
            self.index_changes.postpone(tenant);
        }
    }

    /// Stores the users of a tenant again that have an attribute whose index changes, and marks
    /// the change as made unless the tenant was given another meanwhile.
    async fn change_index(&self, name: &Tenant) -> Result<(), Error> {
        let began = Instant::now();
        let tenant =
            self.backend.tenants.tenant(name).await?.filter(|tenant| tenant.deletion.is_none());
        let change = tenant.as_ref().and_then(|tenant| tenant.policies.index_change());
        let (Some(tenant), Some(since)) = (tenant, change) else {
            self.index_changes.remove(name);
            return Ok(());
        };
        if self.index_changes.add(name, since) {
            return Ok(());
        }

        let known = KnownTenant::from(&tenant);
        self.tenants.learn_change(name, Some(known.clone()), began);
        let (mut after, mut stored) = (None, 0);
        loop {
            let page = self.backend.search.scan(name, after, PAGE).await?;
            let Some(last) = page.last() else { break };
            after = Some(last.id());
            stored += self.reindex(&known, page).await?;
        }

        let finish = MutationKind::Tenant(TenantChange::FinishIndexChanges(since));
        let finish = self.own_mutation(name, known, finish);
        let began = Instant::now();
        if let MutationReport::Tenant(changed) = self.backend.mutations.mutate(finish).await?.report
        {
            self.tenants.learn_change(name, Some(KnownTenant::from(&*changed)), began);
        }
        tracing::info!(tenant = %name, users = stored, "the index of attributes is changed");
        Ok(())
    }

    /// Stores those of the users again that have an attribute whose index changes. Returns their
    /// number.
    async fn reindex(&self, known: &KnownTenant, users: Vec<Record>) -> Result<usize, Error> {
        let policies = &known.policies;
        let changed = users.into_iter().filter(|record| has_changing(record, policies));
        let stores = changed.map(|record| {
            let kind = MutationKind::User(record.id(), UserChange::Reindex);
            self.backend.mutations.mutate(self.own_mutation(
                &record.user.tenant,
                known.clone(),
                kind,
            ))
        });
        let stores = stream::iter(stores.collect::<Vec<_>>()).buffer_unordered(AT_ONCE);
        stores.try_fold(0, |stored, _| async move { Ok(stored + 1) }).await
    }
}

fn has_changing(record: &Record, policies: &Policies) -> bool {
    record.user.attributes.keys().any(|name| policies.is_index_changing(name))
}
