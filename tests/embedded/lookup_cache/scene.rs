//! A store that records its look-ups, and can hold their answers or fail, below a cache.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use locality_uuid::LocalityId;
use polynym_directory::{
    Backend, Consistency, EncodedUser, Error, ItemResult, LookUps, Mutation, Resolved, Tenant, View,
};
use polynym_embedded::{self as embedded, Embedded};
use polynym_identifier::IdentityKey;
use polynym_layers::lookup_cache::{Cached, LookupCache};
use tempfile::TempDir;
use tokio::sync::{Semaphore, watch};

use crate::support::users;

/// The users that a scene begins with.
pub const USERS: usize = 8;

/// The store below the cache.
pub struct Recorder {
    inner: Arc<dyn LookUps>,
    asked: watch::Sender<Vec<(Consistency, Vec<IdentityKey>)>>,
    /// The answers that may leave while `is_holding`.
    open: Semaphore,
    is_holding: AtomicBool,
    is_failing: AtomicBool,
}

impl Recorder {
    /// Holds answers from now on. They are read before they are held.
    pub fn hold(&self) {
        self.is_holding.store(true, Ordering::SeqCst);
    }

    /// Releases all answers, and holds no further ones.
    pub fn release(&self) {
        self.is_holding.store(false, Ordering::SeqCst);
        self.open.add_permits(1_000);
    }

    /// Makes look-ups fail, or succeed again.
    pub fn fail(&self, is_failing: bool) {
        self.is_failing.store(is_failing, Ordering::SeqCst);
    }

    /// Waits until `count` look-ups have been read.
    pub async fn asked_for(&self, count: usize) {
        let mut asked = self.asked.subscribe();
        let wait = asked.wait_for(|asked| asked.len() >= count);
        drop(tokio::time::timeout(Duration::from_secs(60), wait).await.unwrap().unwrap());
    }

    /// The look-ups so far.
    pub fn asked(&self) -> Vec<(Consistency, Vec<IdentityKey>)> {
        self.asked.borrow().clone()
    }
}

#[async_trait]
impl LookUps for Recorder {
    async fn resolve(
        &self,
        keys: &[IdentityKey],
        consistency: Consistency,
        view: View,
        max_staleness: Duration,
    ) -> Result<Resolved, Error> {
        let resolved = self.inner.resolve(keys, consistency, view, max_staleness).await;
        self.asked.send_modify(|asked| asked.push((consistency, keys.to_vec())));
        if self.is_holding.load(Ordering::SeqCst) {
            self.open.acquire().await.unwrap().forget();
        }
        match self.is_failing.load(Ordering::SeqCst) {
            true => Err(Error::Unavailable("meant to fail".into())),
            false => resolved,
        }
    }

    async fn get(
        &self,
        tenant: &Tenant,
        ids: &[LocalityId],
        view: View,
    ) -> Result<Vec<ItemResult<EncodedUser>>, Error> {
        self.inner.get(tenant, ids, view).await
    }
}

/// A cache over a recorder over an embedded store.
pub struct Scene {
    backend: Backend,
    pub below: Arc<Recorder>,
    pub cache: Arc<LookupCache>,
    pub store: Arc<Cached>,
    _folder: TempDir,
}

impl Scene {
    /// A scene with users 0 to 7.
    pub async fn new() -> Self {
        Self::with(|below| below).await
    }

    /// The same, with a layer between the cache and the recorder.
    pub async fn with(layer: impl Fn(Arc<dyn LookUps>) -> Arc<dyn LookUps>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let inner = Embedded::open(folder.path(), embedded::Options::default()).unwrap();
        let backend = Arc::new(inner).backend();
        let below = Arc::new(Recorder {
            inner: backend.lookups.clone(),
            asked: watch::Sender::new(Vec::new()),
            open: Semaphore::new(0),
            is_holding: AtomicBool::new(false),
            is_failing: AtomicBool::new(false),
        });
        for n in 0..USERS {
            backend.mutations.mutate(users::creation(n)).await.unwrap();
        }
        let cache = LookupCache::new(1 << 20);
        let store =
            Arc::new(Cached::new(layer(below.clone()), backend.rules.clone(), cache.clone()));
        Self { backend, below, cache, store, _folder: folder }
    }

    /// Applies a mutation, and reports its writes to the cache like the store on MongoDB.
    pub async fn mutate(&self, n: usize, mutation: Mutation) {
        let pending = self.cache.pending_user(&users::user(n), Duration::ZERO);
        self.backend.mutations.mutate(mutation).await.unwrap();
        drop(pending);
    }

    /// Looks one key up for a caller who accepts answers of this age: the answer, and its reads.
    pub async fn resolve(&self, key: &IdentityKey, age: Duration) -> (Option<EncodedUser>, u32) {
        self.resolve_as(key, Consistency::Latest, age).await
    }

    /// The same, with a consistency.
    pub async fn resolve_as(
        &self,
        key: &IdentityKey,
        consistency: Consistency,
        age: Duration,
    ) -> (Option<EncodedUser>, u32) {
        let keys = std::slice::from_ref(key);
        let resolved = self.store.resolve(keys, consistency, View::Full, age);
        let mut resolved = resolved.await.unwrap();
        (resolved.found.remove(0).unwrap().map(|found| found.user), resolved.reads)
    }
}

/// User `n` as a look-up returns it.
pub fn encoded(n: usize) -> EncodedUser {
    EncodedUser::from_user(&users::user(n))
}
