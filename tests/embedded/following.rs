//! Users by their ids, while others are merged and come apart between the steps that lead from one
//! to the other: an answer is of one moment.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use conformance::StoreFactory;
use locality_uuid::{Generator, LocalityId, Mode};
use polynym::directory::{
    Claim, ConflictPolicy, Consistency, Directory, EncodedUser, Error, ExpiredUser, ItemResult,
    Limits, Mutation, NewUser, Outcome, Record, Resolved, Store, StoredRules, Tenant, TenantRecord,
    Timestamp, UserChange,
};
use polynym::identifier::IdentityKey;
use polynym::store::embedded::Options;

use super::Folder;
use super::support::users::{self, email, identity, mutation};

/// A store in which something happens before a read of users.
struct Meanwhile {
    inner: Arc<dyn Store>,
    /// What, by the number of the read.
    changes: Mutex<HashMap<usize, (usize, UserChange)>>,
    reads: AtomicUsize,
}

impl Meanwhile {
    /// Does what happens before the next read.
    async fn change(&self) -> Result<(), Error> {
        let read = self.reads.fetch_add(1, Relaxed);
        let change = self.changes.lock().unwrap().remove(&read);
        if let Some((user, change)) = change {
            self.inner.mutate(mutation(users::id(user), change)).await?;
        }
        Ok(())
    }
}

#[async_trait]
impl Store for Meanwhile {
    async fn rules(&self, consistency: Consistency) -> Result<StoredRules, Error> {
        self.inner.rules(consistency).await
    }

    async fn get(
        &self,
        tenant: &Tenant,
        ids: &[LocalityId],
    ) -> Result<Vec<ItemResult<EncodedUser>>, Error> {
        self.change().await?;
        self.inner.get(tenant, ids).await
    }

    async fn resolve(
        &self,
        keys: &[IdentityKey],
        consistency: Consistency,
    ) -> Result<Resolved, Error> {
        self.inner.resolve(keys, consistency).await
    }

    async fn get_snapshot(
        &self,
        tenant: &Tenant,
        ids: &[LocalityId],
    ) -> Result<Vec<ItemResult<EncodedUser>>, Error> {
        self.change().await?;
        self.inner.get_snapshot(tenant, ids).await
    }

    async fn claims(&self, keys: &[IdentityKey]) -> Result<Vec<Option<Claim>>, Error> {
        self.inner.claims(keys).await
    }

    async fn tenant(&self, name: &Tenant) -> Result<Option<TenantRecord>, Error> {
        self.inner.tenant(name).await
    }

    async fn tenants(
        &self,
        prefix: &str,
        after: &str,
        limit: usize,
    ) -> Result<Vec<TenantRecord>, Error> {
        self.inner.tenants(prefix, after, limit).await
    }

    async fn keys(&self, tenant: &Tenant, limit: usize) -> Result<Vec<IdentityKey>, Error> {
        self.inner.keys(tenant, limit).await
    }

    async fn scan(
        &self,
        tenant: &Tenant,
        after: Option<LocalityId>,
        limit: usize,
    ) -> Result<Vec<Record>, Error> {
        self.inner.scan(tenant, after, limit).await
    }

    async fn expired_users(
        &self,
        now: Timestamp,
        after: Option<(Timestamp, LocalityId)>,
        limit: usize,
    ) -> Result<Vec<ExpiredUser>, Error> {
        self.inner.expired_users(now, after, limit).await
    }

    async fn mutate(&self, mutation: Mutation) -> Result<Outcome, Error> {
        self.inner.mutate(mutation).await
    }

    fn time(&self, wall: Timestamp) -> Option<Timestamp> {
        self.inner.time(wall)
    }

    async fn check(&self) -> Result<(), Error> {
        self.inner.check().await
    }
}

fn merge(secondary: usize) -> UserChange {
    UserChange::Merge(users::id(secondary), ConflictPolicy::PrimaryWins)
}

/// Whom a user led to, and how many reads that took.
type Led = (LocalityId, usize);

/// Four users of whom 1 is part of 0; then user 1 is looked up, while something happens before one
/// of the reads, and afterwards users 3 and 1 together.
async fn look_up(change: Option<(usize, (usize, UserChange))>) -> [Led; 2] {
    let folder = Folder::new(Options::default());
    let inner = folder.open().await.unwrap();
    for n in 0..4 {
        let draft = NewUser { identities: vec![identity(email(n))], ..NewUser::default() };
        inner.mutate(mutation(users::id(n), UserChange::Create(draft))).await.unwrap();
    }
    inner.mutate(mutation(users::id(0), merge(1))).await.unwrap();
    let store = Arc::new(Meanwhile {
        inner,
        changes: Mutex::new(change.into_iter().collect()),
        reads: AtomicUsize::new(0),
    });
    let directory =
        Directory::new(store.clone(), Generator::new(Mode::Variable), Limits::default());
    let id = users::id(1);
    let got =
        directory.get(&users::context(Tenant::DEFAULT, "Get"), &id.to_string()).await.unwrap();
    let user = got.user.decode().unwrap();
    assert_eq!(got.merged_from, Some(id).filter(|id| user.id != *id));
    let lists = user.identities.iter().any(|identity| identity.identifier == email(1));
    assert!(lists, "user 1 leads to one who does not list its identities");
    let reads = store.reads.load(Relaxed);
    let ids = [3, 1].map(|n| users::id(n).to_string());
    let both = directory.batch_get(&users::context(Tenant::DEFAULT, "Get"), &ids).await.unwrap();
    let both: Vec<_> = both.into_iter().map(|got| got.unwrap().user.decode().unwrap().id).collect();
    assert_eq!(both[0], users::id(3));
    [(user.id, reads), (both[1], store.reads.load(Relaxed) - reads)]
}

#[tokio::test(flavor = "multi_thread")]
async fn a_merged_user_leads_to_the_one_who_has_its_identities_at_one_moment() {
    let [zero, one, two] = [0, 1, 2].map(users::id);
    assert_eq!(look_up(None).await, [(zero, 3), (zero, 3)]);
    // Comes apart before the primary is read, or before it is made sure that nothing has changed.
    for read in [1, 2] {
        let apart = Some((read, (0, UserChange::Unmerge(one))));
        assert_eq!(look_up(apart).await, [(one, 4), (one, 1)], "before read {read}");
    }
    // The primary becomes part of another, before it is read or after.
    assert_eq!(look_up(Some((1, (2, merge(0))))).await, [(two, 4), (two, 4)]);
    assert_eq!(look_up(Some((2, (2, merge(0))))).await, [(two, 7), (two, 4)]);
}
