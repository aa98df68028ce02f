//! The events of a tenant's users, while other calls wait.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::thread::sleep;
use std::time::Duration;

use async_trait::async_trait;
use locality_uuid::{Generator, LocalityId, Mode};
use polynym_directory::{
    Backend, Directory, EndedOwnerships, Error, EventPosition, EventsPart, EventsRequest,
    ExpiredUser, Histories, History, Limits, Mutation, Mutations, PageLimit, Shortened, Shortening,
    Tenant, TenantEvent, Timestamp,
};
use polynym_identifier::IdentityKey;

use super::{open, users};

const USERS: usize = 10;

/// Histories whose reads block for longer than a computation may without a pause, and return one
/// event each.
struct Slow(Arc<dyn Histories>);

#[async_trait]
impl Histories for Slow {
    async fn history(
        &self,
        tenant: &Tenant,
        user: LocalityId,
        cursor: Option<u64>,
        limit: PageLimit,
    ) -> Result<Option<History>, Error> {
        self.0.history(tenant, user, cursor, limit).await
    }

    async fn newest_events(
        &self,
        tenant: &Tenant,
        times: Range<Timestamp>,
        before: Option<EventPosition>,
        limit: PageLimit,
    ) -> Result<EventsPart, Error> {
        sleep(Duration::from_millis(1));
        self.0.newest_events(tenant, times, before, PageLimit::new(1, limit.items())).await
    }

    async fn tenant_history(
        &self,
        tenant: &Tenant,
        before: Option<u64>,
        limit: usize,
    ) -> Result<Vec<TenantEvent>, Error> {
        self.0.tenant_history(tenant, before, limit).await
    }

    async fn ended_ownerships(&self, keys: &[IdentityKey]) -> Result<Vec<EndedOwnerships>, Error> {
        self.0.ended_ownerships(keys).await
    }

    async fn shorten_history(
        &self,
        tenant: &Tenant,
        by: Shortening,
        cursor: Option<Vec<u8>>,
    ) -> Result<Shortened, Error> {
        self.0.shorten_history(tenant, by, cursor).await
    }

    fn has_expiry_turn(&self) -> bool {
        self.0.has_expiry_turn()
    }

    async fn expired_users(
        &self,
        now: Timestamp,
        after: Option<(Timestamp, LocalityId)>,
        limit: usize,
    ) -> Result<Vec<ExpiredUser>, Error> {
        self.0.expired_users(now, after, limit).await
    }

    async fn remove_strays(&self, after: Option<u64>) -> Result<Option<u64>, Error> {
        self.0.remove_strays(after).await
    }
}

#[tokio::test]
async fn a_list_of_events_lets_others_work_between_two_reads() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path()).unwrap();
    for n in 0..USERS {
        let creation = Mutation { now: Timestamp::now().into(), ..users::creation(n) };
        store.mutate(creation).await.unwrap();
    }
    let backend = Arc::new(store).backend();
    let backend = Backend { histories: Arc::new(Slow(backend.histories.clone())), ..backend };
    let directory = Directory::new(backend, Generator::new(Mode::Variable), Limits::default());
    let turns = Arc::new(AtomicUsize::new(0));
    let counted = turns.clone();
    // The runtime has one thread.
    let other = tokio::spawn(async move {
        loop {
            counted.fetch_add(1, Relaxed);
            tokio::task::yield_now().await;
        }
    });

    let context = users::context(Tenant::DEFAULT, "ListEvents");
    let before = turns.load(Relaxed);
    let page = directory.events(&context, EventsRequest::default()).await.unwrap();
    let turns = turns.load(Relaxed) - before;
    assert_eq!(page.events.len(), USERS);
    assert!(turns >= USERS - 1, "others had {turns} turns");
    other.abort();
}
