//! A store that is slow as a whole, while its look-ups are also tried with a short time limit, as
//! on a cluster of which one server may hang.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

use async_trait::async_trait;
use locality_uuid::LocalityId;
use polynym_directory::{
    Consistency, EncodedUser, Error, ItemError, ItemResult, LookUps, Resolved, Tenant, View,
};
use polynym_identifier::IdentityKey;
use polynym_layers::coalesce::{Coalesced, Options};
use tempfile::TempDir;
use tokio::task::JoinSet;

use super::gate::{self, answer, are, keys};
use super::support::users;

const CALLERS: usize = 100;
/// The time of a find of a slow store.
const SLOW: Duration = Duration::from_millis(600);
/// The time limit of a try.
const SHORT: Duration = Duration::from_millis(500);

/// The time of a late call.
const LATE: Duration = Duration::from_millis(150);
/// The user on the part of the store that may be away.
const AWAY: usize = 3;

/// A store whose finds take a time, and a part of which may be away.
struct Slow {
    inner: Arc<dyn LookUps>,
    millis: AtomicU64,
    is_away: AtomicBool,
}

/// The same store with a short time limit.
struct Short {
    slow: Arc<Slow>,
    tries: AtomicUsize,
}

#[async_trait]
impl LookUps for Slow {
    async fn resolve(
        &self,
        keys: &[IdentityKey],
        consistency: Consistency,
        view: View,
        max_staleness: Duration,
    ) -> Result<Resolved, Error> {
        tokio::time::sleep(Duration::from_millis(self.millis.load(Relaxed))).await;
        let mut resolved = self.inner.resolve(keys, consistency, view, max_staleness).await?;
        for (key, found) in keys.iter().zip(&mut resolved.found) {
            if *key == gate::key(AWAY) && self.is_away.load(Relaxed) {
                *found = Err(Error::Unavailable("away".into()).into());
            }
        }
        Ok(resolved)
    }

    async fn get(
        &self,
        tenant: &Tenant,
        ids: &[LocalityId],
        view: View,
    ) -> Result<Vec<ItemResult<EncodedUser>>, Error> {
        tokio::time::sleep(Duration::from_millis(self.millis.load(Relaxed))).await;
        self.inner.get(tenant, ids, view).await
    }
}

impl Short {
    async fn limit<T>(&self, find: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
        self.tries.fetch_add(1, Relaxed);
        let found = tokio::time::timeout(SHORT, find).await;
        found.unwrap_or_else(|_| Err(Error::Unavailable("late".into())))
    }
}

#[async_trait]
impl LookUps for Short {
    async fn resolve(
        &self,
        keys: &[IdentityKey],
        consistency: Consistency,
        view: View,
        max_staleness: Duration,
    ) -> Result<Resolved, Error> {
        self.limit(self.slow.resolve(keys, consistency, view, max_staleness)).await
    }

    async fn get(
        &self,
        tenant: &Tenant,
        ids: &[LocalityId],
        view: View,
    ) -> Result<Vec<ItemResult<EncodedUser>>, Error> {
        self.limit(self.slow.get(tenant, ids, view)).await
    }
}

struct SlowScene {
    slow: Arc<Slow>,
    short: Arc<Short>,
    store: Arc<dyn LookUps>,
    _folder: TempDir,
}

impl SlowScene {
    /// A fast store at first, with users 0 to 15.
    async fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let backend = Arc::new(super::embedded(folder.path())).backend();
        for n in 0..16 {
            backend.mutations.mutate(users::creation(n)).await.unwrap();
        }
        let (millis, is_away) = (AtomicU64::new(0), AtomicBool::new(false));
        let slow = Arc::new(Slow { inner: backend.lookups, millis, is_away });
        let short = Arc::new(Short { slow: slow.clone(), tries: AtomicUsize::new(0) });
        let store = Coalesced::new(slow.clone(), Options::default());
        let store = Arc::new(store.with_short_timeout(Some(short.clone())));
        Self { slow, short, store, _folder: folder }
    }

    fn take(&self, time: Duration) {
        self.slow.millis.store(time.as_millis() as u64, Relaxed);
    }

    /// Many callers look up at once, by identifiers and by ids, and each gets its answer. Returns
    /// the tries with a short time limit meanwhile.
    async fn crowd(&self) -> usize {
        let before = self.short.tries.load(Relaxed);
        let mut callers = JoinSet::new();
        for n in 0..CALLERS {
            let store = self.store.clone();
            callers.spawn(async move {
                let (user, key) = (n % 16, keys(&[n % 16]));
                if n % 4 == 0 {
                    let found = store.get(&Tenant::DEFAULT, &[users::id(user)], View::Full).await;
                    assert!(users::all(found.unwrap())[0].is_some());
                    return;
                }
                let found = store.resolve(&key, Consistency::Latest, View::Full, Duration::ZERO);
                are(&found.await.unwrap(), &[user]);
            });
        }
        callers.join_all().await;
        self.short.tries.load(Relaxed) - before
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn callers_wait_for_a_slow_store() {
    let scene = SlowScene::new().await;
    scene.crowd().await;
    scene.take(SLOW);
    scene.crowd().await;
    // By now the store is known to be slow, and tries would only add to its load.
    for _ in 0..3 {
        assert_eq!(scene.crowd().await, 0);
    }

    // Once it is fast again, a call that is late is unusual again.
    scene.take(Duration::ZERO);
    for _ in 0..40 {
        scene.crowd().await;
    }
    scene.take(SLOW);
    assert!(scene.crowd().await > 0, "a late call is tried in parts");
}

/// Nobody has called the store before: its usual time is not known.
#[tokio::test(flavor = "multi_thread")]
async fn the_first_callers_wait_for_a_slow_store_too() {
    let scene = SlowScene::new().await;
    scene.take(SLOW);
    scene.crowd().await;
}

/// The part may be back soon, and nothing else of the call is answered. A batch is answered without
/// it.
#[tokio::test(flavor = "multi_thread")]
async fn a_caller_without_any_answer_waits_for_its_part() {
    for callers in [&[0, 1, 2, 3, 4][..], &[3]] {
        let scene = SlowScene::new().await;
        let look_up = |users: Vec<usize>| {
            let store = scene.store.clone();
            tokio::spawn(async move {
                let keys = keys(&users);
                store.resolve(&keys, Consistency::Latest, View::Full, Duration::ZERO).await
            })
        };
        // After a look-up on its own, the next one makes its call itself.
        are(&answer(look_up(vec![0])).await.unwrap(), &[0]);
        scene.take(LATE);
        scene.slow.is_away.store(true, Relaxed);
        let mut waiting: Vec<_> = callers.iter().map(|n| (*n, look_up(vec![*n]))).collect();
        let away = waiting.remove(callers.iter().position(|n| *n == AWAY).unwrap()).1;
        for (n, caller) in waiting {
            are(&answer(caller).await.unwrap(), &[n]);
        }
        let batch = answer(look_up(vec![1, AWAY, 5])).await.unwrap().found;
        assert!(matches!(batch[..], [Ok(Some(_)), Err(ItemError::Unavailable(_)), Ok(Some(_))]));
        assert!(!away.is_finished());
        scene.slow.is_away.store(false, Relaxed);
        are(&answer(away).await.unwrap(), &[AWAY]);
    }
}
