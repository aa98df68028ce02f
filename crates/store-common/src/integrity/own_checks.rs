//! The passes over what a store compares itself: the index of searches, the contents of notices,
//! and bulk changes.

use futures_util::TryStreamExt;
use futures_util::future::BoxFuture;
use futures_util::stream::BoxStream;

use super::checkable::CheckableStore;
use super::finding::{Finding, RepairState};
use super::limits::BATCH_ROWS;
use super::passes::Run;
use polynym_directory::Error;

/// The repair of faults of one kind in a store.
type Repair<A, F> = for<'f> fn(&'f A, &'f [F]) -> BoxFuture<'f, Result<(), Error>>;

/// A pass over items, each with its fault if there is one.
struct Pass<'s, A, F> {
    walk: &'static str,
    /// The approximate number of items, if it is known.
    of: Option<u64>,
    faults: BoxStream<'s, Result<Option<F>, Error>>,
    repair: Repair<A, F>,
    finding: fn(&F, RepairState) -> Finding,
}

impl<A: CheckableStore> Run<'_, A> {
    pub(super) async fn walk_index(&mut self) -> Result<(), Error> {
        let pass = Pass {
            walk: "index",
            of: Some(self.totals.0),
            faults: self.store.index_faults(&self.scope),
            repair: |store: &A, faults| store.repair_index(faults),
            finding: Finding::of_index,
        };
        self.pass(pass).await
    }

    pub(super) async fn walk_contents(&mut self) -> Result<(), Error> {
        let pass = Pass {
            walk: "notices",
            of: None,
            faults: self.store.notice_faults(),
            repair: |store: &A, faults| store.repair_notices(faults),
            finding: Finding::of_notice,
        };
        self.pass(pass).await
    }

    pub(super) async fn walk_bulk_changes(&mut self) -> Result<(), Error> {
        let pass = Pass {
            walk: "bulk changes",
            of: None,
            faults: self.store.bulk_faults(),
            repair: |store: &A, faults| store.repair_bulk_changes(faults),
            finding: Finding::of_bulk,
        };
        self.pass(pass).await
    }

    async fn pass<F>(&mut self, pass: Pass<'_, A, F>) -> Result<(), Error> {
        let Pass { walk, of, faults, repair, finding } = pass;
        let mut batches = faults.try_chunks(BATCH_ROWS);
        let mut done = 0;
        while let Some(batch) = batches.try_next().await.map_err(|error| error.1)? {
            done += batch.len() as u64;
            let faults: Vec<_> = batch.into_iter().flatten().collect();
            if self.repairs && !faults.is_empty() {
                repair(self.store, &faults).await?;
            }
            for fault in &faults {
                let mut found = finding(fault, self.repair_state());
                if !found.fault.is_repairable() {
                    found.repair = RepairState::Impossible;
                }
                self.report(&found);
            }
            self.observer.at(walk, done, of.unwrap_or(done));
        }
        Ok(())
    }

    /// The state of a fault that can be repaired, after its batch.
    const fn repair_state(&self) -> RepairState {
        if self.repairs { RepairState::Done } else { RepairState::Pending }
    }
}
