//! Shorter retentions of history: what they do not keep is hidden at once, and the servers have it
//! removed.

use std::time::Instant;

use futures_util::{StreamExt, TryStreamExt, stream};
use locality_uuid::LocalityId;

use crate::error::Error;
use crate::model::shortening::Shortening;
use crate::model::tenant::Tenant;
use crate::mutation::read_set::MutationReport;
use crate::mutation::{MutationKind, TenantChange, UserChange};
use crate::service::Directory;
use crate::service::tenant_cache::KnownTenant;

/// Users that are stored concurrently.
const AT_ONCE: usize = 32;

impl Directory {
    /// Shortens the history of a tenant. Safe on several servers, and begun again by any of them
    /// where one stops: what has its date already keeps it.
    pub(crate) async fn shorten_marked_history(&self, tenant: &Tenant) {
        if let Err(error) = self.shorten_history(tenant).await {
            let error = error.with_causes();
            tracing::warn!(%tenant, %error, "older history was not removed: it is tried again");
            self.history_changes.postpone(tenant);
        }
    }

    async fn shorten_history(&self, name: &Tenant) -> Result<(), Error> {
        let began = Instant::now();
        let tenant =
            self.backend.tenants.tenant(name).await?.filter(|tenant| tenant.deletion.is_none());
        let change = tenant.as_ref().and_then(|tenant| tenant.policies.history_change);
        let (Some(tenant), Some(since)) = (tenant, change) else {
            self.history_changes.remove(name);
            return Ok(());
        };
        if self.history_changes.add(name, since) {
            return Ok(());
        }
        let now = self.gauged_now();
        if now.clock_uncertain {
            return Err(Error::ClockInDoubt);
        }

        let known = KnownTenant::from(&tenant);
        self.tenants.learn_change(name, Some(known.clone()), began);
        let by = Shortening { retention: tenant.policies.history_retention, now: now.time };
        let mut place = None;
        loop {
            let part = self.backend.histories.shorten_history(name, by, place).await?;
            self.store_again(&known, name, part.users).await?;
            place = part.next;
            if place.is_none() {
                break;
            }
        }

        let finish = MutationKind::Tenant(TenantChange::FinishHistoryChange(since));
        let began = Instant::now();
        let finish = self.own_mutation(name, known, finish);
        if let MutationReport::Tenant(changed) = self.backend.mutations.mutate(finish).await?.report
        {
            self.tenants.learn_change(name, Some(KnownTenant::from(&*changed)), began);
        }
        tracing::info!(tenant = %name, "older history is removed");
        Ok(())
    }

    /// Stores users as they are, without the events that are over age.
    async fn store_again(
        &self,
        known: &KnownTenant,
        tenant: &Tenant,
        users: Vec<LocalityId>,
    ) -> Result<(), Error> {
        let stores = users.into_iter().map(|id| {
            let kind = MutationKind::User(id, UserChange::Reindex);
            self.backend.mutations.mutate(self.own_mutation(tenant, known.clone(), kind))
        });
        let stores = stream::iter(stores.collect::<Vec<_>>()).buffer_unordered(AT_ONCE);
        stores.try_for_each(|_| async { Ok(()) }).await
    }
}
