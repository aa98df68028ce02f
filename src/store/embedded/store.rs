//! The embedded store: one folder on one machine, no server to install. Reads run on the caller's
//! thread, on the last durable snapshot; one thread writes, and one sync covers all mutations that
//! waited for it.

mod attributes;
mod backup;
mod degraded;
mod error;
mod feed;
mod file;
mod header;
mod history;
mod inbox;
mod inbox_store;
mod index_check;
mod index_key;
mod integrity;
mod journal;
mod last_seen;
mod lock;
mod measure;
mod names;
mod open;
mod options;
mod queue;
mod read;
mod requests;
mod restore;
mod schema;
mod search;
mod shorten;
mod status;
mod stored_event;
mod sweep;
#[cfg(test)]
mod tests;
mod transaction;
mod upgrade;
mod usage;
mod version;
mod view;
mod write;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{self, Sender};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use arc_swap::ArcSwapOption;
use async_trait::async_trait;
use tokio::sync::{Semaphore, oneshot, watch};

pub use error::OpenError;
pub use integrity::IntegritySession;
pub use measure::{SYNC_MUTATIONS, SYNC_SECONDS, WRITE_QUEUE};
pub use options::Options;
pub use restore::restore;
pub use status::{Status, confirm_clock, status};
pub use upgrade::{upgrade, upgrade_to};

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
    ANSWER_BYTES, Consistency, ExpiredUser, History, ItemResult, Resolved, Store, View,
};
use crate::directory::stored_rules::StoredRules;
use crate::directory::user_scan::UserScan;
use crate::identifier::{IdentityKey, RULES_VERSION};
use crate::store::measured::set_versions;
use crate::store::owner_hints::OwnerHints;
use crate::wire::encoded_user::{EncodedUser, Found};
use error::{DegradedReason, Fault, chain};
use last_seen::LastSeen;
use locality_uuid::LocalityId;
use open::{Opener, versions};
use queue::QUEUE_BYTES;
use read::{Snapshot, own};
use write::{Job, Writer};

/// The snapshot that reads use, while the database is open.
type Published = ArcSwapOption<Snapshot>;

/// Why mutations are refused, while they are.
type DegradedState = ArcSwapOption<DegradedReason>;

/// Look-ups of a batch before other calls get the thread.
const YIELD_EVERY: usize = 64;

/// The time after which the writer counts as stuck: far longer than a working disk needs for a
/// group.
const CHECK_TIMEOUT: Duration = Duration::from_secs(10);
/// A store in a folder of this machine. Dropping it finishes the mutations under way and closes the
/// folder.
pub struct Embedded {
    folder: PathBuf,
    published: Arc<Published>,
    trouble: Arc<DegradedState>,
    last_seen: Arc<LastSeen>,
    jobs: Option<Sender<Job>>,
    /// The bytes that mutations may still take while they wait for the writer.
    queue: Arc<Semaphore>,
    writer: Option<JoinHandle<()>>,
    /// Changes with each commit.
    commits: watch::Receiver<()>,
    /// Closed once the writer has ended.
    alive: watch::Receiver<()>,
    /// The rules do not change while the store is open.
    rules: StoredRules,
    hints: Arc<OwnerHints>,
    /// The turns of large batches: many at once would keep single look-ups waiting for a thread.
    turns: Semaphore,
}

impl Embedded {
    /// Opens the store in `folder`, or makes it where `options` permit. Blocks on the disk.
    ///
    /// # Errors
    /// [`OpenError`]; what was in the folder is then as it was.
    pub fn open(folder: &Path, options: Options) -> Result<Self, OpenError> {
        Self::open_supporting(folder, options, RULES_VERSION)
    }

    /// Opens it as a program does that supports later rules of normalisation. Blocks on the disk.
    ///
    /// # Errors
    /// [`OpenError`]; what was in the folder is then as it was.
    pub fn open_supporting(folder: &Path, options: Options, rules: u32) -> Result<Self, OpenError> {
        let mut opener = Opener::new(folder, options.cache_bytes)
            .with_hints(OwnerHints::new(options.hint_bytes))
            .supporting(rules);
        let open = if options.create { opener.open_or_make() } else { opener.open_existing() }?;
        let versions = versions(&open.database).map_err(|error| opener.damaged(error))?;
        let rules = versions.map_or(StoredRules::new(RULES_VERSION), |versions| versions.rules);
        set_versions(version::VERSION as f64, rules.version);
        let snapshot = Snapshot::new(&open.database, opener.caches());
        let snapshot = snapshot.map_err(|fault| opener.damaged(chain(&fault)))?;
        let last_seen =
            last_seen::read(&open.database).map_err(|fault| opener.damaged(chain(&fault)))?;
        let hints = opener.caches().hints.clone();
        let last_seen = Arc::new(LastSeen::new(last_seen, Instant::now()));
        let (published, trouble) =
            (Arc::new(Published::from_pointee(snapshot)), Arc::new(DegradedState::empty()));
        let group_limit = options.group_limit.max(1);
        let shared = (published.clone(), trouble.clone(), last_seen.clone());
        let (committed, commits) = watch::channel(());
        let writer = Writer::new(opener, open, shared, (group_limit, committed));
        let (jobs, receiver) = mpsc::channel();
        let thread = std::thread::Builder::new().name("polynym-writer".to_owned());
        let (is_alive, alive) = watch::channel(());
        let thread = thread.spawn(move || {
            // Dropped in reverse order: once it is known that the writer has ended, nothing can be
            // sent to it.
            let (_is_alive, receiver) = (is_alive, receiver);
            writer.run(&receiver);
        });
        let thread = thread.map_err(|error| OpenError::io(folder, error))?;
        let queue = Arc::new(Semaphore::new(QUEUE_BYTES));
        Ok(Self {
            folder: folder.to_owned(),
            published,
            trouble,
            last_seen,
            jobs: Some(jobs),
            queue,
            writer: Some(thread),
            commits,
            alive,
            rules,
            hints,
            turns: Semaphore::new(std::thread::available_parallelism().map_or(1, usize::from)),
        })
    }

    /// The guesses of keys' owners.
    pub fn hints(&self) -> Arc<OwnerHints> {
        self.hints.clone()
    }

    /// Returns once the writer has ended, as it does before the store is closed only by a fault of
    /// this program. The store takes no mutations then.
    pub async fn writer_ended(&self) {
        let mut alive = self.alive.clone();
        while alive.changed().await.is_ok() {}
    }

    /// Looks each of `wanted` up in what is on disk now, until what is found is too much for an
    /// answer.
    async fn read<K, T>(
        &self,
        wanted: &[K],
        look_up: impl Fn(&Snapshot, &K) -> Result<Option<T>, Fault>,
        size: impl Fn(&T) -> usize,
    ) -> Result<Vec<ItemResult<T>>, Error> {
        let is_large = wanted.len() > YIELD_EVERY;
        let _turn = if is_large { self.turns.acquire().await.ok() } else { None };
        let snapshot = self.published.load();
        let snapshot = snapshot.as_ref().ok_or_else(|| self.closed())?;
        let (mut found, mut bytes) = (Vec::with_capacity(wanted.len()), 0);
        for turn in wanted.chunks(YIELD_EVERY) {
            if !found.is_empty() {
                tokio::task::yield_now().await;
            }
            for item in turn {
                let item = self.guarded(snapshot, || own(look_up(snapshot, item)))?;
                bytes += item.as_ref().ok().and_then(Option::as_ref).map_or(0, &size);
                found.push(item);
                if bytes > ANSWER_BYTES {
                    return Ok(found);
                }
            }
        }
        Ok(found)
    }

    fn on_snapshot<T>(&self, look: impl FnOnce(&Snapshot) -> Result<T, Fault>) -> Result<T, Error> {
        let snapshot = self.published.load();
        let snapshot = snapshot.as_ref().ok_or_else(|| self.closed())?;
        self.guarded(snapshot, || look(snapshot))
    }

    /// Runs a look-up, and replaces the snapshot if its error concerns the whole file.
    fn guarded<T>(
        &self,
        snapshot: &Arc<Snapshot>,
        look_up: impl FnOnce() -> Result<T, Fault>,
    ) -> Result<T, Error> {
        // The database panics where a page that it trusts makes no sense.
        let outcome = catch_unwind(AssertUnwindSafe(look_up)).unwrap_or(Err(Fault::Panicked));
        if let Err(fault) = &outcome
            && let Some(trouble) = fault.trouble()
        {
            self.give_up(snapshot, trouble, fault);
        }
        Ok(outcome?)
    }

    fn send(&self, job: Job) -> Result<(), Fault> {
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
impl Store for Embedded {
    async fn rules(&self, _: Consistency) -> Result<StoredRules, Error> {
        Ok(self.rules)
    }

    async fn resolve(
        &self,
        keys: &[IdentityKey],
        _: Consistency,
        view: View,
    ) -> Result<Resolved, Error> {
        let size = |found: &Found| found.user.as_bytes().len();
        let found = self.read(keys, |snapshot, key| snapshot.resolve(key, view), size).await?;
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
        self.read(ids, |snapshot, id| snapshot.get(tenant, *id, view), size).await
    }

    async fn get_snapshot(
        &self,
        tenant: &Tenant,
        ids: &[LocalityId],
        view: View,
    ) -> Result<Vec<ItemResult<EncodedUser>>, Error> {
        self.get(tenant, ids, view).await
    }

    async fn claims(&self, keys: &[IdentityKey]) -> Result<Vec<Option<Claim>>, Error> {
        let claims = self.read(keys, |snapshot, key| snapshot.claim(key), |_| 0).await?;
        claims.into_iter().map(|claim| Ok(claim?)).collect()
    }

    async fn tenant(&self, name: &Tenant) -> Result<Option<TenantRecord>, Error> {
        self.on_snapshot(|snapshot| snapshot.tenant(name))
    }

    async fn tenants(
        &self,
        prefix: &str,
        after: &str,
        limit: usize,
    ) -> Result<Vec<TenantRecord>, Error> {
        self.on_snapshot(|snapshot| snapshot.tenants(prefix, after, limit))
    }

    async fn keys(&self, tenant: &Tenant, limit: usize) -> Result<Vec<IdentityKey>, Error> {
        self.on_snapshot(|snapshot| snapshot.keys(tenant, limit))
    }

    async fn ownerless_holds(
        &self,
        tenant: &Tenant,
        after: Option<&IdentityKey>,
        limit: usize,
    ) -> Result<Vec<Hold>, Error> {
        self.on_snapshot(|snapshot| snapshot.ownerless_holds(tenant, after, limit))
    }

    async fn history(
        &self,
        tenant: &Tenant,
        user: LocalityId,
        place: Option<u64>,
        limit: usize,
    ) -> Result<Option<History>, Error> {
        self.on_snapshot(|snapshot| snapshot.history(tenant, user, place, limit))
    }

    async fn tenant_history(
        &self,
        tenant: &Tenant,
        before: Option<u64>,
        limit: usize,
    ) -> Result<Vec<TenantEvent>, Error> {
        self.on_snapshot(|snapshot| snapshot.tenant_history(tenant, before, limit))
    }

    async fn ended_ownerships(&self, keys: &[IdentityKey]) -> Result<Vec<EndedOwnerships>, Error> {
        self.on_snapshot(|snapshot| keys.iter().map(|key| snapshot.ended(key)).collect())
    }

    async fn shorten_history(
        &self,
        tenant: &Tenant,
        by: Shortening,
        place: Option<Vec<u8>>,
    ) -> Result<Shortened, Error> {
        self.shorten(tenant, by, place).await
    }

    async fn scan(
        &self,
        tenant: &Tenant,
        after: Option<LocalityId>,
        limit: usize,
    ) -> Result<Vec<Record>, Error> {
        let (mut users, mut after) = (Vec::new(), after);
        loop {
            let scanned = self.on_snapshot(|snapshot| {
                snapshot.scan(tenant, after, YIELD_EVERY, Snapshot::decode)
            })?;
            users.extend(scanned.users);
            after = scanned.last;
            if after.is_none() || users.len() >= limit {
                users.truncate(limit);
                return Ok(users);
            }
            tokio::task::yield_now().await;
        }
    }

    async fn search(
        &self,
        tenant: &Tenant,
        lead: &Lead,
        after: Option<&Position>,
        limit: usize,
        view: View,
    ) -> Result<Vec<SearchedUser>, Error> {
        self.find(tenant, lead, after, limit, view).await
    }

    async fn view(&self) -> Result<Option<Box<dyn UserScan>>, Error> {
        let snapshot = self.published.load_full().ok_or_else(|| self.closed())?;
        Ok(Some(Box::new(view::View(snapshot))))
    }

    async fn probe(&self, tenant: &Tenant, lead: &Lead, limit: usize) -> Result<usize, Error> {
        self.count_entries(tenant, lead, limit)
    }

    async fn attribute_names(
        &self,
        tenant: &Tenant,
        after: &str,
        limit: usize,
    ) -> Result<Vec<String>, Error> {
        let names = self.on_snapshot(|snapshot| snapshot.all_names(tenant.as_str()))?;
        Ok(names.page(after, limit))
    }

    async fn expired_users(
        &self,
        now: Timestamp,
        after: Option<(Timestamp, LocalityId)>,
        limit: usize,
    ) -> Result<Vec<ExpiredUser>, Error> {
        self.on_snapshot(|snapshot| snapshot.expired_users(now, after, limit))
    }

    async fn mutate(&self, mutation: Mutation) -> Result<Outcome, Error> {
        self.queue(mutation).await
    }

    async fn mutate_all(&self, mutations: Vec<Mutation>) -> Vec<Result<Outcome, Error>> {
        self.queue_all(mutations).await
    }

    fn time(&self, wall: Timestamp) -> Option<Timestamp> {
        let (time, is_to_be_kept) = self.last_seen.look(wall, Instant::now());
        if is_to_be_kept {
            // A failed write is in the log already.
            let _ = self.send(Job::KeepTime);
        }
        Some(time)
    }

    #[cfg(feature = "test-entity")]
    async fn counter(&self, name: &str) -> Result<u64, Error> {
        self.on_snapshot(|snapshot| snapshot.counter(name))
    }

    async fn check(&self) -> Result<(), Error> {
        let (answer, checked) = oneshot::channel();
        self.send(Job::Check(answer))?;
        match tokio::time::timeout(CHECK_TIMEOUT, checked).await {
            Ok(Ok(checked)) => Ok(checked?),
            Ok(Err(_)) => Err(Fault::Closed.into()),
            Err(_) => Err(Fault::Stuck.into()),
        }
    }
}
