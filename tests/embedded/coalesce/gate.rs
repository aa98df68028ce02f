//! A store that holds look-ups at a gate and records them. It wraps a real store.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use locality_uuid::LocalityId;
use polynym_directory::{
    Backend, Consistency, EncodedUser, Error, Found, ItemResult, LookUps, Resolved, Tenant, View,
};
use polynym_identifier::{Identifier, IdentityKey, RawIdentifier};
use polynym_layers::coalesce::{Coalesced, Options};
use tempfile::TempDir;
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinHandle;

use super::support::users;

/// The time limit for every wait in these tests.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(60);

/// Options with which no call counts as stalled while the gate is closed.
pub const STEADY: Options = Options { calls: 8, keys: 1_024, stall_timeout: ANSWER_TIMEOUT };

/// One recorded look-up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Asked {
    Owners(Consistency, Vec<IdentityKey>),
    Users(Tenant, Vec<LocalityId>),
}

/// The failure injected into a look-up.
#[derive(Clone, Copy)]
pub enum Fault {
    Away,
    Damaged,
    Panics,
    AnswerMissing,
}

pub struct Gate {
    inner: Arc<dyn LookUps>,
    asked: watch::Sender<Vec<Asked>>,
    answered: watch::Sender<usize>,
    open: Semaphore,
    /// Keyed by the number of the look-up, from 0.
    faults: Mutex<HashMap<usize, Fault>>,
    /// A key whose every look-up fails.
    failing_key: Mutex<Option<(IdentityKey, Fault)>>,
}

impl Gate {
    /// Releases `count` look-ups.
    pub fn open(&self, count: usize) {
        self.open.add_permits(count);
    }

    pub fn spoil(&self, look_up: usize, fault: Fault) {
        self.faults.lock().unwrap().insert(look_up, fault);
    }

    /// Makes each look-up of a user's handle fail.
    pub fn curse(&self, user: usize, fault: Fault) {
        *self.failing_key.lock().unwrap() = Some((key(user), fault));
    }

    /// Removes the faults that have not occurred yet.
    pub fn mend(&self) {
        self.faults.lock().unwrap().clear();
    }

    pub fn asked(&self) -> Vec<Asked> {
        self.asked.borrow().clone()
    }

    /// Waits for `count` look-ups and returns all look-ups so far.
    pub async fn asked_for(&self, count: usize) -> Vec<Asked> {
        let mut asked = self.asked.subscribe();
        let asked =
            tokio::time::timeout(ANSWER_TIMEOUT, asked.wait_for(|asked| asked.len() >= count))
                .await;
        asked
            .unwrap_or_else(|_| panic!("the inner store received fewer than {count} look-ups"))
            .unwrap()
            .clone()
    }

    /// Waits until `count` look-ups have been answered.
    pub async fn answered(&self, count: usize) {
        let mut answered = self.answered.subscribe();
        let answered =
            tokio::time::timeout(ANSWER_TIMEOUT, answered.wait_for(|answered| *answered >= count))
                .await;
        drop(
            answered
                .unwrap_or_else(|_| panic!("fewer than {count} look-ups were answered"))
                .unwrap(),
        );
    }

    async fn pass(&self, asked: Asked) -> Result<Option<Fault>, Error> {
        let is_in =
            |key: &IdentityKey| matches!(&asked, Asked::Owners(_, keys) if keys.contains(key));
        let failing_key = self
            .failing_key
            .lock()
            .unwrap()
            .clone()
            .filter(|(key, _)| is_in(key))
            .map(|(_, fault)| fault);
        let mut number = 0;
        self.asked.send_modify(|all| {
            number = all.len();
            all.push(asked);
        });
        self.open.acquire().await.unwrap().forget();
        let fault = self.faults.lock().unwrap().remove(&number).or(failing_key);

        match fault {
            Some(Fault::Away) => Err(Error::Unavailable(format!("look-up {number} failed").into())),
            Some(Fault::Damaged) => Err(Error::Internal(format!("look-up {number} failed").into())),
            Some(Fault::Panics) => panic!("look-up {number} is meant to panic"),
            Some(Fault::AnswerMissing) | None => Ok(fault),
        }
    }
}

#[async_trait]
impl LookUps for Gate {
    async fn resolve(
        &self,
        keys: &[IdentityKey],
        consistency: Consistency,
        view: View,
        max_staleness: Duration,
    ) -> Result<Resolved, Error> {
        let fault = self.pass(Asked::Owners(consistency, keys.to_vec())).await?;
        let mut resolved = self.inner.resolve(keys, consistency, view, max_staleness).await?;
        if fault.is_some() {
            resolved.found.pop();
        }
        self.answered.send_modify(|answered| *answered += 1);
        Ok(resolved)
    }

    async fn get(
        &self,
        tenant: &Tenant,
        ids: &[LocalityId],
        view: View,
    ) -> Result<Vec<ItemResult<EncodedUser>>, Error> {
        self.pass(Asked::Users(tenant.clone(), ids.to_vec())).await?;
        let found = self.inner.get(tenant, ids, view).await?;
        self.answered.send_modify(|answered| *answered += 1);
        Ok(found)
    }
}

/// A coalescing store with some users, over a gate that is closed at first.
pub struct Scene {
    pub gate: Arc<Gate>,
    pub store: Arc<dyn LookUps>,
    /// The store below the gate.
    pub backend: Backend,
    _folder: TempDir,
}

impl Scene {
    /// Returns a scene with users 0 to 15.
    pub async fn new(options: Options) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let backend = Arc::new(super::embedded(folder.path())).backend();
        for n in 0..16 {
            backend.mutations.mutate(users::creation(n)).await.unwrap();
        }
        let (asked, answered) = (watch::Sender::new(Vec::new()), watch::Sender::new(0));
        let (open, faults, failing_key) = (Semaphore::new(0), Mutex::default(), Mutex::default());
        let inner = backend.lookups.clone();
        let gate = Arc::new(Gate { inner, asked, answered, open, faults, failing_key });
        let store = Arc::new(Coalesced::new(gate.clone(), options));
        Self { gate, store, backend, _folder: folder }
    }

    /// Starts a look-up of the handles of users.
    pub fn resolve(
        &self,
        users: &[usize],
        consistency: Consistency,
    ) -> Caller<Result<Resolved, Error>> {
        let (store, keys) = (self.store.clone(), keys(users));
        tokio::spawn(
            async move { store.resolve(&keys, consistency, View::Full, Duration::ZERO).await },
        )
    }

    /// Starts a look-up with the default consistency.
    pub fn latest(&self, users: &[usize]) -> Caller<Result<Resolved, Error>> {
        self.resolve(users, Consistency::Latest)
    }

    /// Starts a look-up of users by their ids.
    pub fn get(
        &self,
        tenant: &Tenant,
        users: &[usize],
    ) -> Caller<Result<Vec<ItemResult<EncodedUser>>, Error>> {
        let (store, tenant) = (self.store.clone(), tenant.clone());
        let ids: Vec<_> = users.iter().copied().map(users::id).collect();
        tokio::spawn(async move { store.get(&tenant, &ids, View::Full).await })
    }

    /// Brings `calls` calls in flight, all for user 0, and returns their callers. A further call
    /// needs as many waiting look-ups as calls are in flight.
    pub async fn busy(&self, calls: usize) -> Vec<Caller<Result<Resolved, Error>>> {
        let mut callers = Vec::new();
        for n in 0..calls {
            callers.extend((0..callers.len().max(1)).map(|_| self.latest(&[0])));
            self.gate.asked_for(n + 1).await;
        }
        callers
    }
}

pub type Caller<T> = JoinHandle<T>;

/// Returns the answer of a caller, or panics after [`ANSWER_TIMEOUT`].
pub async fn answer<T>(caller: Caller<T>) -> T {
    tokio::time::timeout(ANSWER_TIMEOUT, caller).await.expect("a caller without an answer").unwrap()
}

/// Yields until every task of a single-threaded runtime is blocked.
pub async fn settle() {
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
}

pub fn key(n: usize) -> IdentityKey {
    let handle = format!("user{n}");
    IdentityKey::new("default", &Identifier::parse(RawIdentifier::Handle(&handle)).unwrap())
}

pub fn keys(users: &[usize]) -> Vec<IdentityKey> {
    users.iter().copied().map(key).collect()
}

pub fn latest(users: &[usize]) -> Asked {
    Asked::Owners(Consistency::Latest, keys(users))
}

/// Asserts that these users were found, in this order; numbers above 15 are absent.
pub fn are(resolved: &Resolved, wanted: &[usize]) {
    let user = |found: &ItemResult<Found>| {
        found.as_ref().unwrap().as_ref().map(|found| found.user.clone())
    };
    assert_eq!(resolved.found.iter().map(user).collect::<Vec<_>>(), wire(wanted));
}

/// Returns the encoded form of users 0 to 15, and none for other numbers.
pub fn wire(users: &[usize]) -> Vec<Option<EncodedUser>> {
    users.iter().map(|n| (*n < 16).then(|| EncodedUser::from_user(&users::user(*n)))).collect()
}
