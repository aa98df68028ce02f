//! Stores that wrap another store and change its look-ups.

use std::time::Duration;

use async_trait::async_trait;
use locality_uuid::LocalityId;

use crate::directory::error::Error;
use crate::directory::model::claim::Claim;
use crate::directory::model::ownership::EndedOwnerships;
use crate::directory::model::record::{Hold, Record};
use crate::directory::model::shortening::{Shortened, Shortening};
use crate::directory::model::tenant::Tenant;
use crate::directory::model::tenant_event::TenantEvent;
use crate::directory::model::tenant_record::TenantRecord;
use crate::directory::model::timestamp::Timestamp;
use crate::directory::mutation::Mutation;
use crate::directory::read_set::Outcome;
use crate::directory::search::{Lead, Position, SearchedUser};
use crate::directory::store::{
    Consistency, ExpiredUser, History, ItemResult, Resolved, Store, View,
};
use crate::directory::stored_rules::StoredRules;
use crate::directory::user_scan::UserScan;
use crate::identifier::IdentityKey;
use crate::wire::encoded_user::EncodedUser;

/// Look-ups in front of another store. A layer is itself a [`Store`]: it passes on every operation
/// that it does not implement.
#[async_trait]
pub trait LookUpLayer: Send + Sync + 'static {
    /// The wrapped store.
    fn inner(&self) -> &dyn Store;

    /// See [`Store::resolve`].
    async fn resolve(
        &self,
        keys: &[IdentityKey],
        consistency: Consistency,
        view: View,
    ) -> Result<Resolved, Error> {
        self.inner().resolve(keys, consistency, view).await
    }

    /// See [`Store::resolve_within`]. A layer that does not implement it hides a cache below it.
    async fn resolve_within(
        &self,
        keys: &[IdentityKey],
        consistency: Consistency,
        view: View,
        _max_staleness: Duration,
    ) -> Result<Resolved, Error> {
        LookUpLayer::resolve(self, keys, consistency, view).await
    }

    /// See [`Store::get`].
    async fn get(
        &self,
        tenant: &Tenant,
        ids: &[LocalityId],
        view: View,
    ) -> Result<Vec<ItemResult<EncodedUser>>, Error> {
        self.inner().get(tenant, ids, view).await
    }

    /// See [`Store::get_snapshot`].
    async fn get_snapshot(
        &self,
        tenant: &Tenant,
        ids: &[LocalityId],
        view: View,
    ) -> Result<Vec<ItemResult<EncodedUser>>, Error> {
        self.inner().get_snapshot(tenant, ids, view).await
    }
}

#[async_trait]
impl<L: LookUpLayer> Store for L {
    async fn rules(&self, consistency: Consistency) -> Result<StoredRules, Error> {
        self.inner().rules(consistency).await
    }

    async fn resolve(
        &self,
        keys: &[IdentityKey],
        consistency: Consistency,
        view: View,
    ) -> Result<Resolved, Error> {
        LookUpLayer::resolve(self, keys, consistency, view).await
    }

    async fn resolve_within(
        &self,
        keys: &[IdentityKey],
        consistency: Consistency,
        view: View,
        max_staleness: Duration,
    ) -> Result<Resolved, Error> {
        LookUpLayer::resolve_within(self, keys, consistency, view, max_staleness).await
    }

    async fn get(
        &self,
        tenant: &Tenant,
        ids: &[LocalityId],
        view: View,
    ) -> Result<Vec<ItemResult<EncodedUser>>, Error> {
        LookUpLayer::get(self, tenant, ids, view).await
    }

    async fn get_snapshot(
        &self,
        tenant: &Tenant,
        ids: &[LocalityId],
        view: View,
    ) -> Result<Vec<ItemResult<EncodedUser>>, Error> {
        LookUpLayer::get_snapshot(self, tenant, ids, view).await
    }

    async fn claims(&self, keys: &[IdentityKey]) -> Result<Vec<Option<Claim>>, Error> {
        self.inner().claims(keys).await
    }

    async fn tenant(&self, name: &Tenant) -> Result<Option<TenantRecord>, Error> {
        self.inner().tenant(name).await
    }

    async fn tenants(
        &self,
        prefix: &str,
        after: &str,
        limit: usize,
    ) -> Result<Vec<TenantRecord>, Error> {
        self.inner().tenants(prefix, after, limit).await
    }

    async fn keys(&self, tenant: &Tenant, limit: usize) -> Result<Vec<IdentityKey>, Error> {
        self.inner().keys(tenant, limit).await
    }

    async fn ownerless_holds(
        &self,
        tenant: &Tenant,
        after: Option<&IdentityKey>,
        limit: usize,
    ) -> Result<Vec<Hold>, Error> {
        self.inner().ownerless_holds(tenant, after, limit).await
    }

    async fn history(
        &self,
        tenant: &Tenant,
        user: LocalityId,
        place: Option<u64>,
        limit: usize,
    ) -> Result<Option<History>, Error> {
        self.inner().history(tenant, user, place, limit).await
    }

    async fn tenant_history(
        &self,
        tenant: &Tenant,
        before: Option<u64>,
        limit: usize,
    ) -> Result<Vec<TenantEvent>, Error> {
        self.inner().tenant_history(tenant, before, limit).await
    }

    async fn ended_ownerships(&self, keys: &[IdentityKey]) -> Result<Vec<EndedOwnerships>, Error> {
        self.inner().ended_ownerships(keys).await
    }

    async fn shorten_history(
        &self,
        tenant: &Tenant,
        by: Shortening,
        place: Option<Vec<u8>>,
    ) -> Result<Shortened, Error> {
        self.inner().shorten_history(tenant, by, place).await
    }

    async fn scan(
        &self,
        tenant: &Tenant,
        after: Option<LocalityId>,
        limit: usize,
    ) -> Result<Vec<Record>, Error> {
        self.inner().scan(tenant, after, limit).await
    }

    async fn view(&self) -> Result<Option<Box<dyn UserScan>>, Error> {
        self.inner().view().await
    }

    async fn search(
        &self,
        tenant: &Tenant,
        lead: &Lead,
        after: Option<&Position>,
        limit: usize,
        view: View,
    ) -> Result<Vec<SearchedUser>, Error> {
        self.inner().search(tenant, lead, after, limit, view).await
    }

    async fn probe(&self, tenant: &Tenant, lead: &Lead, limit: usize) -> Result<usize, Error> {
        self.inner().probe(tenant, lead, limit).await
    }

    async fn attribute_names(
        &self,
        tenant: &Tenant,
        after: &str,
        limit: usize,
    ) -> Result<Vec<String>, Error> {
        self.inner().attribute_names(tenant, after, limit).await
    }

    async fn expired_users(
        &self,
        now: Timestamp,
        after: Option<(Timestamp, LocalityId)>,
        limit: usize,
    ) -> Result<Vec<ExpiredUser>, Error> {
        self.inner().expired_users(now, after, limit).await
    }

    async fn mutate(&self, mutation: Mutation) -> Result<Outcome, Error> {
        self.inner().mutate(mutation).await
    }

    async fn mutate_all(&self, mutations: Vec<Mutation>) -> Vec<Result<Outcome, Error>> {
        self.inner().mutate_all(mutations).await
    }

    fn time(&self, wall: Timestamp) -> Option<Timestamp> {
        self.inner().time(wall)
    }

    async fn check(&self) -> Result<(), Error> {
        self.inner().check().await
    }

    #[cfg(feature = "test-entity")]
    async fn counter(&self, name: &str) -> Result<u64, Error> {
        self.inner().counter(name).await
    }
}
