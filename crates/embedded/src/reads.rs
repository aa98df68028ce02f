//! Reads on the published snapshot. After an error that concerns the whole file, the writer opens
//! the file again.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use locality_uuid::LocalityId;

use crate::error::{DegradedReason, Fault, chain};
use crate::job::Job;
use crate::lookup::scan::users_in_parts;
use crate::lookup::snapshot::{Snapshot, item_result};
use crate::store::Embedded;
use polynym_directory::{ANSWER_BYTES, Error, ItemResult, Pace, Record, Scanned, Tenant};
use polynym_store_common::operations::{Operation, measure_items};

/// The look-ups of a batch beyond which it is large: it takes a permit, since it would delay single
/// look-ups.
const MAX_SMALL_BATCH: usize = 64;
/// The bytes of users beyond which a batch is large, however few they are.
const MAX_SMALL_BYTES: usize = 512 << 10;

impl Embedded {
    /// Looks up each of `wanted` as one operation, until the results exceed the size of an answer.
    pub(super) async fn read<K, T>(
        &self,
        operation: Operation,
        wanted: &[K],
        look_up: impl Fn(&Snapshot, &K) -> Result<Option<T>, Fault>,
        size: impl Fn(&T) -> usize,
    ) -> Result<Vec<ItemResult<T>>, Error> {
        measure_items(operation, self.items(wanted, look_up, size), |items| items).await
    }

    /// Looks up each of `wanted`, as a part of an operation.
    pub(super) async fn items<K, T>(
        &self,
        wanted: &[K],
        look_up: impl Fn(&Snapshot, &K) -> Result<Option<T>, Fault>,
        size: impl Fn(&T) -> usize,
    ) -> Result<Vec<ItemResult<T>>, Error> {
        if wanted.len() <= MAX_SMALL_BATCH {
            let (found, bytes) = self.read_up_to(MAX_SMALL_BYTES, wanted, &look_up, &size).await?;
            if bytes <= MAX_SMALL_BYTES {
                return Ok(found);
            }
        }
        // It begins again: a batch that waits holds neither users nor a snapshot.
        let _permit = self.batch_permits.acquire().await.ok();
        let (found, _) = self.read_up_to(ANSWER_BYTES, wanted, look_up, size).await?;
        Ok(found)
    }

    /// Looks up each of `wanted`, until the results exceed `limit` bytes. Also returns their
    /// size.
    async fn read_up_to<K, T>(
        &self,
        limit: usize,
        wanted: &[K],
        look_up: impl Fn(&Snapshot, &K) -> Result<Option<T>, Fault>,
        size: impl Fn(&T) -> usize,
    ) -> Result<(Vec<ItemResult<T>>, usize), Error> {
        let published = self.published.load();
        let snapshot = published.as_ref().ok_or_else(|| self.closed())?;
        let (mut found, mut bytes, mut pace) =
            (Vec::with_capacity(wanted.len()), 0, Pace::default());
        for key in wanted {
            pace.rest().await;
            let item = self.guarded(snapshot, || item_result(look_up(snapshot, key)))?;
            bytes += item.as_ref().ok().and_then(Option::as_ref).map_or(0, &size);
            found.push(item);
            if bytes > limit {
                break;
            }
        }
        Ok((found, bytes))
    }

    /// Reads from the published snapshot as one operation.
    pub(super) fn on_snapshot<T>(
        &self,
        operation: Operation,
        read: impl FnOnce(&Snapshot) -> Result<T, Fault>,
    ) -> Result<T, Error> {
        let begun = operation.begin();
        let outcome = self.read_step(read);
        begun.end(&outcome);
        outcome
    }

    /// Reads from the published snapshot, as a part of an operation.
    pub(super) fn read_step<T>(
        &self,
        read: impl FnOnce(&Snapshot) -> Result<T, Fault>,
    ) -> Result<T, Error> {
        let published = self.published.load();
        let snapshot = published.as_ref().ok_or_else(|| self.closed())?;
        self.guarded(snapshot, || read(snapshot))
    }

    /// Runs a read, and withdraws the snapshot if an error concerns the whole file.
    fn guarded<T>(
        &self,
        snapshot: &Arc<Snapshot>,
        read: impl FnOnce() -> Result<T, Fault>,
    ) -> Result<T, Error> {
        // The database panics on an invalid page that it trusts.
        let outcome = catch_unwind(AssertUnwindSafe(read)).unwrap_or(Err(Fault::Panicked));
        if let Err(fault) = &outcome
            && let Some(reason) = fault.degraded_by_read()
        {
            self.withdraw(snapshot, reason, fault);
        }
        Ok(outcome?)
    }

    /// Withdraws a snapshot, and has the writer recover. Of several failed reads only the first
    /// does so.
    fn withdraw(&self, snapshot: &Arc<Snapshot>, reason: DegradedReason, fault: &Fault) {
        let published = self.published.compare_and_swap(snapshot, None);
        if published.as_ref().is_some_and(|published| Arc::ptr_eq(published, snapshot)) {
            let _ = self.send(Job::Unreadable(reason, chain(fault)));
        }
    }

    /// The error of a read while no snapshot is published.
    pub(super) fn closed(&self) -> Fault {
        self.degraded.load().as_deref().map_or(Fault::Closed, |reason| Fault::Degraded(*reason))
    }

    /// See [`Search::scan`](polynym_directory::Search::scan).
    pub(crate) async fn scan_users(
        &self,
        tenant: &Tenant,
        after: Option<LocalityId>,
        limit: usize,
    ) -> Result<Scanned<Record>, Error> {
        let read = |after, rest, pace: &Pace| {
            let scan =
                |snapshot: &Snapshot| snapshot.scan(tenant, after, rest, pace, Snapshot::decode);
            self.read_step(scan).map(Some)
        };
        Ok(users_in_parts(after, limit, read).await?.unwrap_or_default())
    }
}
