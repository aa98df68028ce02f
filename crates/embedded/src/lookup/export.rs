//! Snapshots for exports. While one is in use, the database reuses no page that was freed since: at
//! most as many as were written since. The store drops a snapshot that is too old or may keep too
//! many, and its export goes on with the current users. As pages that one snapshot keeps are kept
//! for all later ones, too, all exports together keep no more than the oldest one.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use arc_swap::ArcSwapOption;
use async_trait::async_trait;
use locality_uuid::LocalityId;
use metrics::counter;

use crate::error::Fault;
use crate::lookup::scan::{holds_in_parts, users_in_parts};
use crate::lookup::snapshot::{Published, Snapshot};
use polynym_directory::{
    Error, ExportSnapshot, ExportedUser, Hold, Pace, Scanned, Tenant, TenantRecord,
};
use polynym_identifier::IdentityKey;
use polynym_store_common::operations::{Operation, measure};

/// The counter of snapshots that were dropped during an export.
pub const DROPPED_SNAPSHOTS: (&str, &str) = (
    "polynym_export_snapshots_dropped_total",
    "Exports of the embedded store that went on without their snapshot: they took too long",
);

/// The age at which a snapshot is dropped. MongoDB keeps snapshots as long by default.
const MAX_AGE: Duration = Duration::from_secs(5 * 60);
/// The bytes that are written until it is dropped: a quarter of the file, within these bounds.
const MIN_WRITES: u64 = 256 << 20;
const MAX_WRITES: u64 = 4 << 30;

/// The snapshots that exports use.
#[derive(Default)]
pub struct ExportSnapshots {
    held: Mutex<Vec<Weak<HeldSnapshot>>>,
    /// The most bytes that are written meanwhile; none for a part of the file's size.
    max_writes: Option<u64>,
    /// The bytes that were written to the file up to the last commit.
    written: AtomicU64,
}

/// A snapshot, until it is dropped.
struct HeldSnapshot {
    snapshot: ArcSwapOption<Snapshot>,
    since: Instant,
    /// The bytes written to the file above which it is dropped.
    max_written: u64,
}

impl ExportSnapshots {
    /// No snapshots. With `max_writes`, they are dropped once so many bytes were written.
    pub fn new(max_writes: Option<u64>) -> Self {
        Self { max_writes, ..Self::default() }
    }

    /// Holds the published snapshot of a file of this size for an export; none of a closed store.
    pub fn hold(&self, published: &Published, file_bytes: u64) -> Option<SnapshotExport> {
        let writes = self.max_writes.unwrap_or((file_bytes / 4).clamp(MIN_WRITES, MAX_WRITES));
        let mut all = self.held();
        let held = Arc::new(HeldSnapshot {
            snapshot: ArcSwapOption::new(Some(published.load_full()?)),
            since: Instant::now(),
            max_written: self.written.load(Ordering::Relaxed) + writes,
        });
        all.retain(|former| former.strong_count() > 0);
        all.push(Arc::downgrade(&held));
        Some(SnapshotExport(held))
    }

    /// Drops the snapshots that are too old, or too costly once so many bytes were written.
    pub fn drop_costly(&self, now: Instant, written: u64) {
        self.written.store(written, Ordering::Relaxed);
        self.held().retain(|held| {
            let Some(held) = held.upgrade() else { return false };
            let age = now.saturating_duration_since(held.since);
            let is_costly = written > held.max_written || age >= MAX_AGE;
            if is_costly {
                held.give_up(age);
            }
            !is_costly
        });
    }

    /// Drops all snapshots: their file was opened again, and its pages may be written.
    pub fn drop_all(&self) {
        let mut all = self.held();
        self.written.store(0, Ordering::Relaxed);
        for held in all.drain(..).filter_map(|held| held.upgrade()) {
            held.give_up(held.since.elapsed());
        }
    }

    fn held(&self) -> MutexGuard<'_, Vec<Weak<HeldSnapshot>>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl HeldSnapshot {
    fn give_up(&self, age: Duration) {
        if self.snapshot.swap(None).is_some() {
            counter!(DROPPED_SNAPSHOTS.0).increment(1);
            tracing::info!(seconds = age.as_secs(), "an export goes on without its snapshot");
        }
    }
}

/// All users at one commit, until the store drops the snapshot.
pub struct SnapshotExport(Arc<HeldSnapshot>);

impl SnapshotExport {
    /// Reads from the snapshot; none once it is dropped. The database panics on an invalid page
    /// that it trusts.
    fn read<T>(
        &self,
        read: impl FnOnce(&Snapshot) -> Result<T, Fault>,
    ) -> Result<Option<T>, Fault> {
        let Some(snapshot) = self.0.snapshot.load_full() else { return Ok(None) };
        let read = catch_unwind(AssertUnwindSafe(|| read(&snapshot)));
        read.unwrap_or(Err(Fault::Panicked)).map(Some)
    }
}

#[async_trait]
impl ExportSnapshot for SnapshotExport {
    async fn tenant(&self, name: &Tenant) -> Result<Option<Option<TenantRecord>>, Error> {
        let tenant = async { Ok(self.read(|snapshot| snapshot.tenant(name))?) };
        measure(Operation::Tenant, tenant).await
    }

    async fn scan(
        &self,
        tenant: &Tenant,
        after: Option<LocalityId>,
        limit: usize,
    ) -> Result<Option<Scanned<ExportedUser>>, Error> {
        let read = |after, rest, pace: &Pace| {
            let scan =
                |snapshot: &Snapshot| snapshot.scan(tenant, after, rest, pace, Snapshot::export);
            Ok(self.read(scan)?)
        };
        measure(Operation::Scan, users_in_parts(after, limit, read)).await
    }

    async fn ownerless_holds(
        &self,
        tenant: &Tenant,
        after: Option<&IdentityKey>,
        limit: usize,
    ) -> Result<Option<Vec<Hold>>, Error> {
        let read = |after: Option<&IdentityKey>, rest, pace: &Pace| {
            Ok(self.read(|snapshot| snapshot.ownerless_holds(tenant, after, rest, pace))?)
        };
        measure(Operation::Scan, holds_in_parts(after, limit, read)).await
    }
}
