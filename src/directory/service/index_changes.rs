//! Changes of indexes: once a tenant defines an attribute as indexed or not, the servers store the
//! users that have it again.

use std::convert::Infallible;
use std::time::{Duration, Instant};

use futures_util::{StreamExt, TryStreamExt, stream};
use tokio::time::sleep;

use super::Directory;
use super::tenant_cache::KnownTenant;
use super::tenants::each_tenant;
use crate::directory::error::Error;
use crate::directory::model::policies::Policies;
use crate::directory::model::record::Record;
use crate::directory::model::tenant::Tenant;
use crate::directory::model::tenant_record::TenantRecord;
use crate::directory::mutation::{Mutation, MutationKind, TenantChange, UserChange};

/// The pause between two searches for changes that other servers were told.
const SEARCH: Duration = Duration::from_secs(30);
/// The pause between two rounds over the tenants.
const PERIOD: Duration = Duration::from_secs(1);
/// Users that are read at once.
const PAGE: usize = 500;
/// Users that are stored concurrently.
const AT_ONCE: usize = 32;

impl Directory {
    /// Carries out changes of indexes in a loop. Safe on several servers, and begun again by any of
    /// them where one stops: to store a user twice changes nothing.
    pub async fn change_indexes(&self) -> Infallible {
        let mut searched: Option<Instant> = None;
        loop {
            if searched.is_none_or(|searched| searched.elapsed() >= SEARCH) {
                searched = Some(Instant::now());
                if let Err(error) = self.find_index_changes().await {
                    let error = error.with_causes();
                    tracing::warn!(%error, "the search for changes of indexes failed and is \
                        tried again");
                }
            }
            for tenant in self.index_changes.ready() {
                if let Err(error) = self.change_index(&tenant).await {
                    let error = error.with_causes();
                    tracing::warn!(%tenant, %error, "the change of an index failed and is tried \
                        again");
                    self.index_changes.postpone(&tenant);
                }
            }
            sleep(PERIOD).await;
        }
    }

    async fn find_index_changes(&self) -> Result<(), Error> {
        each_tenant(&*self.store, |tenant| self.note_index_change(&tenant)).await
    }

    /// Remembers the change of an index that a tenant was told.
    pub(super) fn note_index_change(&self, tenant: &TenantRecord) {
        if let Some(since) = tenant.policies.index_change() {
            self.index_changes.add(&tenant.name, since);
        }
    }

    /// Stores the users of a tenant again that have an attribute whose index changes, and marks
    /// the change as made unless the tenant was told another meanwhile.
    async fn change_index(&self, name: &Tenant) -> Result<(), Error> {
        let began = Instant::now();
        let tenant = self.store.tenant(name).await?.filter(|tenant| tenant.deletion.is_none());
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
            let page = self.store.scan(name, after, PAGE).await?;
            let Some(last) = page.last() else { break };
            after = Some(last.id());
            stored += self.reindex(&known, page).await?;
        }

        let finish = TenantChange::FinishIndexChanges(since);
        let finish = Mutation::new(name.clone(), self.now().time, MutationKind::Tenant(finish));
        let began = Instant::now();
        self.store.mutate(finish).await?;
        let changed = self.store.tenant(name).await?;
        self.tenants.learn_change(name, changed.as_ref().map(KnownTenant::from), began);
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
            let mutation = Mutation::new(record.user.tenant, self.now().time, kind);
            self.store.mutate(Mutation {
                tenant_since: known.since,
                policies: policies.clone(),
                limits: self.limits,
                ..mutation
            })
        });
        let stores = stream::iter(stores.collect::<Vec<_>>()).buffer_unordered(AT_ONCE);
        stores.try_fold(0, |stored, _| async move { Ok(stored + 1) }).await
    }
}

fn has_changing(record: &Record, policies: &Policies) -> bool {
    record.user.attributes.keys().any(|name| policies.is_index_changing(name))
}
