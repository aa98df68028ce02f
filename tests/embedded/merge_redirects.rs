//! Reads of merged users by id while users are merged and unmerged between the steps of the read:
//! each answer is one snapshot.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use conformance::StoreFactory;
use locality_uuid::{Generator, LocalityId, Mode};
use polynym_directory::{
    Backend, Claim, ConflictPolicy, Consistency, Directory, EncodedUser, Error, ImportOptions,
    ItemResult, Limits, LookUps, Mutation, Mutations, NewUser, OrderedReads, Outcome, Reads,
    Resolved, Tenant, UserChange, View,
};
use polynym_embedded::Options;
use polynym_identifier::IdentityKey;

use super::Folder;
use super::support::users::{self, email, identity, mutation};

/// A store that executes a mutation before a given read.
struct InterleavedStore {
    inner: Backend,
    /// The user and its mutation, keyed by the number of the read.
    changes: Mutex<HashMap<usize, (usize, UserChange)>>,
    reads: AtomicUsize,
}

impl InterleavedStore {
    /// Executes the mutation planned before the next read, if any.
    async fn interleave(&self) -> Result<(), Error> {
        let read = self.reads.fetch_add(1, Relaxed);
        let change = self.changes.lock().unwrap().remove(&read);
        if let Some((user, change)) = change {
            self.inner.mutations.mutate(mutation(users::id(user), change)).await?;
        }
        Ok(())
    }
}

#[async_trait]
impl LookUps for InterleavedStore {
    async fn resolve(
        &self,
        keys: &[IdentityKey],
        consistency: Consistency,
        view: View,
        max_staleness: Duration,
    ) -> Result<Resolved, Error> {
        self.inner.lookups.resolve(keys, consistency, view, max_staleness).await
    }

    async fn get(
        &self,
        tenant: &Tenant,
        ids: &[LocalityId],
        view: View,
    ) -> Result<Vec<ItemResult<EncodedUser>>, Error> {
        self.interleave().await?;
        self.inner.lookups.get(tenant, ids, view).await
    }
}

#[async_trait]
impl Reads for InterleavedStore {
    async fn claims(&self, keys: &[IdentityKey]) -> Result<Vec<Option<Claim>>, Error> {
        self.inner.reads.claims(keys).await
    }

    async fn in_order(&self) -> Result<Box<dyn OrderedReads + '_>, Error> {
        self.inner.reads.in_order().await
    }

    async fn check(&self) -> Result<(), Error> {
        self.inner.reads.check().await
    }

    async fn get_snapshot(
        &self,
        tenant: &Tenant,
        ids: &[LocalityId],
        view: View,
    ) -> Result<Vec<ItemResult<EncodedUser>>, Error> {
        self.interleave().await?;
        self.inner.reads.get_snapshot(tenant, ids, view).await
    }
}

fn merge(secondary: usize) -> UserChange {
    UserChange::Merge(users::id(secondary), ConflictPolicy::PrimaryWins)
}

/// The id of the user found, and the number of reads.
type Resolution = (LocalityId, usize);

/// Creates four users and merges user 1 into user 0. Looks up user 1, with an optional mutation
/// before one of the reads, and then users 3 and 1 in one batch.
async fn look_up(change: Option<(usize, (usize, UserChange))>) -> [Resolution; 2] {
    let folder = Folder::new(Options::default());
    let inner = folder.open().await.unwrap();
    for n in 0..4 {
        let new_user = NewUser { identities: vec![identity(email(n))], ..NewUser::default() };
        inner.mutations.mutate(mutation(users::id(n), UserChange::Create(new_user))).await.unwrap();
    }

    inner.mutations.mutate(mutation(users::id(0), merge(1))).await.unwrap();
    let store = Arc::new(InterleavedStore {
        inner: inner.clone(),
        changes: Mutex::new(change.into_iter().collect()),
        reads: AtomicUsize::new(0),
    });
    let backend = Backend { lookups: store.clone(), reads: store.clone(), ..inner };
    let directory = Directory::new(backend, Generator::new(Mode::Variable), Limits::default());
    let id = users::id(1);
    let got = directory
        .get(&users::context(Tenant::DEFAULT, "Get"), &id.to_string(), View::Full)
        .await
        .unwrap();
    let user = got.user.decode().unwrap();
    assert_eq!(got.merged_from, Some(id).filter(|id| user.id != *id));

    let lists = user.identities.iter().any(|identity| identity.identifier == email(1));
    assert!(lists, "user 1 is redirected to a user without its identities");
    let reads = store.reads.load(Relaxed);
    let ids = [3, 1].map(|n| users::id(n).to_string());
    let both = directory
        .batch_get(&users::context(Tenant::DEFAULT, "Get"), &ids, View::Full)
        .await
        .unwrap();
    let both: Vec<_> = both.into_iter().map(|got| got.unwrap().user.decode().unwrap().id).collect();
    assert_eq!(both[0], users::id(3));

    [(user.id, reads), (both[1], store.reads.load(Relaxed) - reads)]
}

#[tokio::test(flavor = "multi_thread")]
async fn a_merge_redirect_is_resolved_on_one_snapshot() {
    let [zero, one, two] = [0, 1, 2].map(users::id);
    assert_eq!(look_up(None).await, [(zero, 3), (zero, 3)]);
    // Unmerged before the primary is read, or before the check for changes.
    for read in [1, 2] {
        let apart = Some((read, (0, UserChange::Unmerge(one))));
        assert_eq!(look_up(apart).await, [(one, 4), (one, 1)], "before read {read}");
    }
    // The primary is merged into another user, before it is read or after.
    assert_eq!(look_up(Some((1, (2, merge(0))))).await, [(two, 4), (two, 4)]);
    assert_eq!(look_up(Some((2, (2, merge(0))))).await, [(two, 7), (two, 4)]);
}

/// Mutations of which the first ones fail.
struct Failing {
    inner: Arc<dyn Mutations>,
    left: AtomicUsize,
}

#[async_trait]
impl Mutations for Failing {
    async fn mutate(&self, mutation: Mutation) -> Result<Outcome, Error> {
        self.inner.mutate(mutation).await
    }

    async fn mutate_all(&self, mutations: Vec<Mutation>) -> Vec<Result<Outcome, Error>> {
        let fails = self.left.fetch_update(Relaxed, Relaxed, |left| left.checked_sub(1)).is_ok();
        if fails {
            let away = |_| Err(Error::Unavailable("away".into()));
            return mutations.into_iter().map(away).collect();
        }
        self.inner.mutate_all(mutations).await
    }

    async fn counter(&self, name: &str) -> Result<u64, Error> {
        self.inner.counter(name).await
    }
}

#[tokio::test]
async fn the_end_of_an_import_waits_for_the_store() {
    let folder = Folder::new(Options::default());
    let store = folder.open().await.unwrap();
    for n in 1..=2 {
        store.mutations.mutate(users::creation(n)).await.unwrap();
    }
    store.mutations.mutate(mutation(users::id(1), merge(2))).await.unwrap();
    let failing = Failing { inner: store.mutations.clone(), left: AtomicUsize::new(2) };
    let backend = Backend { mutations: Arc::new(failing), ..store };
    let ids = Generator::new(Mode::Variable);
    let directory = Arc::new(Directory::new(backend, ids, Limits::default()));
    let import = directory.begin_import("", ImportOptions::default()).unwrap();
    let merged = [users::id(1), users::id(2), users::id(3)];
    let orphans = import.are_orphans(&Tenant::DEFAULT, &merged).await.unwrap();
    assert_eq!(orphans, [false; 3]);
}
