//! The look-up cache: the contract of a store with a cache, and servers that share a replica set.

mod clocks;
mod servers;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use conformance::{Failure, StoreFactory};
use locality_uuid::LocalityId;
use polynym_directory::{
    Backend, Consistency, EncodedUser, Error, ItemResult, LookUps, Resolved, Tenant, View,
};
use polynym_identifier::IdentityKey;
use polynym_layers::lookup_cache::Cached;
use polynym_mongodb::{Mongo, Options};

use crate::servers::{Databases, InDatabase, one_member};
use crate::{LOOKING_UP, support};

/// The time limit of an operation on a busy machine.
const TIMEOUT: Duration = Duration::from_secs(60);
const DAY: Duration = Duration::from_secs(24 * 60 * 60);
/// Random runs compared with the model.
const RUNS: u32 = 8;

/// A store whose callers accept answers of the last day. It makes all mutations itself, so each
/// answer must still be the latest.
struct Accepting(Cached);

#[async_trait]
impl LookUps for Accepting {
    async fn resolve(
        &self,
        keys: &[IdentityKey],
        consistency: Consistency,
        view: View,
        _: Duration,
    ) -> Result<Resolved, Error> {
        self.0.resolve(keys, consistency, view, DAY).await
    }

    async fn get(
        &self,
        tenant: &Tenant,
        ids: &[LocalityId],
        view: View,
    ) -> Result<Vec<ItemResult<EncodedUser>>, Error> {
        self.0.get(tenant, ids, view).await
    }
}

struct CachedFactory(InDatabase);

#[async_trait]
impl StoreFactory for CachedFactory {
    async fn open(&self) -> Result<Backend, Failure> {
        let options = Options { timeout: TIMEOUT, cache_bytes: 1 << 20, ..Options::default() };
        let store = Arc::new(Mongo::open(&self.0.uri().await, options).await?);
        let cache = store.cache().ok_or("the store has no cache")?;
        let backend = store.backend();
        let rules = backend.rules.clone();
        Ok(backend.layered(|inner| Accepting(Cached::new(inner, rules, cache))))
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn conformance_of_cached_answers() {
    let databases = Databases::of_set(one_member().await, "");
    let factory = || -> Arc<dyn StoreFactory> { Arc::new(CachedFactory(databases.factory())) };
    support::conformance_of(&LOOKING_UP, factory).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes minutes"]
async fn long_conformance_of_cached_answers() {
    let databases = Databases::of_set(one_member().await, "");
    support::conformance(|| Arc::new(CachedFactory(databases.factory()))).await;
}

#[test]
fn cached_answers_agree_with_the_model() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let databases = Databases::of_set(runtime.block_on(one_member()), "");
    support::steps::against_the_model(RUNS, || CachedFactory(databases.factory()));
}
