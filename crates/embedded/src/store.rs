//! The store, and its calls as a [`Backend`].

use std::fs;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use locality_uuid::LocalityId;
use tokio::sync::{Semaphore, oneshot, watch};

use crate::disk_space::DiskSpace;
use crate::error::{DegradedState, Fault};
use crate::file::opener::FILE;
use crate::job::Job;
use crate::last_seen::LastSeen;
use crate::lookup::export::ExportSnapshots;
use crate::lookup::scan::holds_in_parts;
use crate::lookup::snapshot::{Published, Snapshot};
use crate::recent_events::RecentEvents;
use crate::sender_order::SenderOrder;
use polynym_directory::{
    AccessPath, Backend, Claim, Consistency, CurrentRules, EncodedUser, EndedOwnerships, Error,
    EventPosition, EventsPart, ExpiredUser, ExportSnapshot, Found, Histories, History, Hold,
    ItemResult, LookUps, Mutation, Mutations, OrderedReads, Outcome, Pace, PageLimit, Position,
    Reads, Record, Resolved, Scanned, Search, SearchedUser, Shortened, Shortening, StoreClock,
    StoredRules, Tenant, TenantEvent, TenantRecord, Tenants, Timestamp, TokenKey, View,
};
use polynym_identifier::IdentityKey;
use polynym_store_common::operations::{Operation, measure};
use polynym_store_common::owner_hints::OwnerHints;

/// The time after which the writer counts as stuck: far longer than a sound disk needs for a group.
const CHECK_TIMEOUT: Duration = Duration::from_secs(10);

/// A store in a folder of this machine. Dropping it finishes the pending mutations and closes the
/// folder.
pub struct Embedded {
    pub(super) folder: PathBuf,
    pub(super) disk: DiskSpace,
    /// The snapshots of exports.
    pub(super) exports: Arc<ExportSnapshots>,
    /// The order of the senders of notices.
    pub(super) deliveries: SenderOrder,
    pub(super) published: Arc<Published>,
    pub(super) degraded: Arc<DegradedState>,
    pub(super) last_seen: Arc<LastSeen>,
    pub(super) jobs: Option<Sender<Job>>,
    /// The free bytes of the queue of mutations.
    pub(super) queue: Arc<Semaphore>,
    pub(super) writer: Option<JoinHandle<()>>,
    /// Wakes watchers.
    pub(super) recent: Arc<RecentEvents>,
    /// Closed once the writer has ended.
    pub(super) alive: watch::Receiver<()>,
    /// The rules do not change while the store is open.
    pub(super) rules: StoredRules,
    pub(super) hints: Arc<OwnerHints>,
    pub(super) token_key: TokenKey,
    /// Permits of large batches: too many at once would delay single look-ups.
    pub(super) batch_permits: Semaphore,
}

impl Embedded {
    /// The capabilities of the store.
    pub fn backend(self: &Arc<Self>) -> Backend {
        let backend = Backend::new(self.clone(), self.clone(), self.token_key.clone());
        Backend { file: Some(self.clone()), ..backend }
    }

    /// The owner hints.
    pub fn hints(&self) -> Arc<OwnerHints> {
        self.hints.clone()
    }

    /// Returns once the writer has ended, which before the store is closed is a bug. The store
    /// rejects mutations from then on.
    pub async fn writer_ended(&self) {
        let mut alive = self.alive.clone();
        while alive.changed().await.is_ok() {}
    }

    pub(super) fn send(&self, job: Job) -> Result<(), Fault> {
        self.jobs.as_ref().and_then(|jobs| jobs.send(job).ok()).ok_or(Fault::Closed)
    }
}

impl Drop for Embedded {
    fn drop(&mut self) {
        drop(self.jobs.take());
        if let Some(writer) = self.writer.take() {
            let _ = writer.join();
        }
    }
}

#[async_trait]
impl LookUps for Embedded {
    async fn resolve(
        &self,
        keys: &[IdentityKey],
        _: Consistency,
        view: View,
        _: Duration,
    ) -> Result<Resolved, Error> {
        let size = |found: &Found| found.user.as_bytes().len();
        let look_up = |snapshot: &Snapshot, key: &IdentityKey| snapshot.resolve(key, view);
        let found = self.read(Operation::Resolve, keys, look_up, size).await?;
        let reads = found.len() + found.iter().flatten().flatten().count();
        Ok(Resolved { found, reads: reads as u32 })
    }

    async fn get(
        &self,
        tenant: &Tenant,
        ids: &[LocalityId],
        view: View,
    ) -> Result<Vec<ItemResult<EncodedUser>>, Error> {
        let size = |user: &EncodedUser| user.as_bytes().len();
        let look_up = |snapshot: &Snapshot, id: &LocalityId| snapshot.get(tenant, *id, view);
        self.read(Operation::Get, ids, look_up, size).await
    }
}

#[async_trait]
impl Reads for Embedded {
    async fn get_snapshot(
        &self,
        tenant: &Tenant,
        ids: &[LocalityId],
        view: View,
    ) -> Result<Vec<ItemResult<EncodedUser>>, Error> {
        self.get(tenant, ids, view).await
    }

    async fn claims(&self, keys: &[IdentityKey]) -> Result<Vec<Option<Claim>>, Error> {
        let look_up = async {
            let claims = self.items(keys, |snapshot, key| snapshot.claim(key), |_| 0).await?;
            claims.into_iter().map(|claim| Ok(claim?)).collect()
        };
        measure(Operation::Claims, look_up).await
    }

    async fn in_order(&self) -> Result<Box<dyn OrderedReads + '_>, Error> {
        Ok(Box::new(self))
    }

    async fn check(&self) -> Result<(), Error> {
        let check = async {
            let (answer, checked) = oneshot::channel();
            self.send(Job::Check(answer))?;
            match tokio::time::timeout(CHECK_TIMEOUT, checked).await {
                Ok(Ok(checked)) => Ok(checked?),
                Ok(Err(_)) => Err(Fault::Closed.into()),
                Err(_) => Err(Fault::Stuck.into()),
            }
        };
        measure(Operation::Check, check).await
    }
}

/// Every read sees all commits before it.
#[async_trait]
impl OrderedReads for &Embedded {
    async fn claims(&mut self, keys: &[IdentityKey]) -> Result<Vec<Option<Claim>>, Error> {
        Reads::claims(*self, keys).await
    }

    async fn ended_ownerships(
        &mut self,
        keys: &[IdentityKey],
    ) -> Result<Vec<EndedOwnerships>, Error> {
        Histories::ended_ownerships(*self, keys).await
    }

    async fn get(
        &mut self,
        tenant: &Tenant,
        ids: &[LocalityId],
        view: View,
    ) -> Result<Vec<ItemResult<EncodedUser>>, Error> {
        LookUps::get(*self, tenant, ids, view).await
    }

    async fn history(
        &mut self,
        tenant: &Tenant,
        user: LocalityId,
        cursor: Option<u64>,
        limit: PageLimit,
    ) -> Result<Option<History>, Error> {
        Histories::history(*self, tenant, user, cursor, limit).await
    }
}

#[async_trait]
impl CurrentRules for Embedded {
    async fn rules(&self, _: Consistency) -> Result<StoredRules, Error> {
        Ok(self.rules)
    }
}

impl StoreClock for Embedded {
    fn time(&self, wall: Timestamp) -> Option<Timestamp> {
        let (time, is_to_be_kept) = self.last_seen.look(wall, Instant::now());
        if is_to_be_kept {
            // A failed write is in the log already.
            let _ = self.send(Job::KeepTime);
        }
        Some(time)
    }
}

#[async_trait]
impl Mutations for Embedded {
    async fn mutate(&self, mutation: Mutation) -> Result<Outcome, Error> {
        self.queue(mutation).await
    }

    async fn mutate_all(&self, mutations: Vec<Mutation>) -> Vec<Result<Outcome, Error>> {
        self.queue_all(mutations).await
    }

    #[cfg(feature = "test-entity")]
    async fn counter(&self, name: &str) -> Result<u64, Error> {
        self.on_snapshot(Operation::Get, |snapshot| snapshot.counter(name))
    }
}

#[async_trait]
impl Tenants for Embedded {
    async fn tenant(&self, name: &Tenant) -> Result<Option<TenantRecord>, Error> {
        self.on_snapshot(Operation::Tenant, |snapshot| snapshot.tenant(name))
    }

    async fn tenants(
        &self,
        prefix: &str,
        after: &str,
        limit: usize,
    ) -> Result<Vec<TenantRecord>, Error> {
        self.on_snapshot(Operation::Tenant, |snapshot| snapshot.tenants(prefix, after, limit))
    }

    async fn keys(&self, tenant: &Tenant, limit: usize) -> Result<Vec<IdentityKey>, Error> {
        self.on_snapshot(Operation::Scan, |snapshot| snapshot.keys(tenant, limit))
    }

    async fn ownerless_holds(
        &self,
        tenant: &Tenant,
        after: Option<&IdentityKey>,
        limit: usize,
    ) -> Result<Vec<Hold>, Error> {
        let read = |after: Option<&IdentityKey>, rest, pace: &Pace| {
            let scan = |snapshot: &Snapshot| snapshot.ownerless_holds(tenant, after, rest, pace);
            self.read_step(scan).map(Some)
        };
        let holds = holds_in_parts(after, limit, read);
        measure(Operation::Scan, async { Ok(holds.await?.unwrap_or_default()) }).await
    }

    async fn attribute_names(
        &self,
        tenant: &Tenant,
        after: &str,
        limit: usize,
    ) -> Result<Vec<String>, Error> {
        let names =
            self.on_snapshot(Operation::Search, |snapshot| snapshot.all_names(tenant.as_str()))?;
        Ok(names.page(after, limit))
    }
}

#[async_trait]
impl Search for Embedded {
    async fn search(
        &self,
        tenant: &Tenant,
        path: &AccessPath,
        after: Option<&Position>,
        limit: usize,
        view: View,
    ) -> Result<Scanned<SearchedUser, Position>, Error> {
        measure(Operation::Search, self.find(tenant, path, after, limit, view)).await
    }

    async fn probe(
        &self,
        tenant: &Tenant,
        path: &AccessPath,
        limit: usize,
    ) -> Result<usize, Error> {
        measure(Operation::Search, self.count_entries(tenant, path, limit)).await
    }

    async fn known_words(&self, tenant: &Tenant, words: &[String]) -> Result<Vec<String>, Error> {
        measure(Operation::Search, self.words_of_names(tenant, words)).await
    }

    async fn scan(
        &self,
        tenant: &Tenant,
        after: Option<LocalityId>,
        limit: usize,
    ) -> Result<Scanned<Record>, Error> {
        measure(Operation::Scan, self.scan_users(tenant, after, limit)).await
    }

    async fn snapshot(&self) -> Result<Option<Box<dyn ExportSnapshot>>, Error> {
        let file_bytes = fs::metadata(self.folder.join(FILE)).map_or(0, |file| file.len());
        let hold = async {
            let export = self.exports.hold(&self.published, file_bytes);
            Ok(Some(Box::new(export.ok_or_else(|| self.closed())?) as _))
        };
        measure(Operation::Scan, hold).await
    }
}

#[async_trait]
impl Histories for Embedded {
    async fn history(
        &self,
        tenant: &Tenant,
        user: LocalityId,
        cursor: Option<u64>,
        limit: PageLimit,
    ) -> Result<Option<History>, Error> {
        self.on_snapshot(Operation::Scan, |snapshot| snapshot.history(tenant, user, cursor, limit))
    }

    async fn newest_events(
        &self,
        tenant: &Tenant,
        times: Range<Timestamp>,
        before: Option<EventPosition>,
        limit: PageLimit,
    ) -> Result<EventsPart, Error> {
        let read = |snapshot: &Snapshot| snapshot.newest_events(tenant, &times, before, limit);
        self.on_snapshot(Operation::Scan, read)
    }

    async fn tenant_history(
        &self,
        tenant: &Tenant,
        before: Option<u64>,
        limit: usize,
    ) -> Result<Vec<TenantEvent>, Error> {
        self.on_snapshot(Operation::Scan, |snapshot| snapshot.tenant_history(tenant, before, limit))
    }

    async fn ended_ownerships(&self, keys: &[IdentityKey]) -> Result<Vec<EndedOwnerships>, Error> {
        let read = |snapshot: &Snapshot| keys.iter().map(|key| snapshot.ended(key)).collect();
        self.on_snapshot(Operation::Scan, read)
    }

    async fn shorten_history(
        &self,
        tenant: &Tenant,
        by: Shortening,
        cursor: Option<Vec<u8>>,
    ) -> Result<Shortened, Error> {
        self.shorten(tenant, by, cursor).await
    }

    async fn remove_strays(&self, after: Option<u64>) -> Result<Option<u64>, Error> {
        measure(Operation::Scan, self.remove_stray_events(after)).await
    }

    /// The store has one server.
    fn has_expiry_turn(&self) -> bool {
        true
    }

    async fn expired_users(
        &self,
        now: Timestamp,
        after: Option<(Timestamp, LocalityId)>,
        limit: usize,
    ) -> Result<Vec<ExpiredUser>, Error> {
        self.on_snapshot(Operation::ExpiredUsers, |snapshot| {
            snapshot.expired_users(now, after, limit)
        })
    }
}
