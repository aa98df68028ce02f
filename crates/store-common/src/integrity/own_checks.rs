//! The passes over what a store compares itself: the index of searches and the contents of notices.

use futures_util::TryStreamExt;

use super::checkable::CheckableStore;
use super::finding::{Finding, RepairState};
use super::passes::{BATCH_ROWS, Run};
use polynym_directory::error::Error;

impl<A: CheckableStore> Run<'_, A> {
    pub(super) async fn walk_index(&mut self) -> Result<(), Error> {
        let store = self.store;
        let mut batches = store.index_faults().try_chunks(BATCH_ROWS);
        let mut done = 0;
        while let Some(batch) = batches.try_next().await.map_err(|error| error.1)? {
            done += batch.len() as u64;
            let faults: Vec<_> = batch.into_iter().flatten().collect();
            if self.repairs && !faults.is_empty() {
                store.repair_index(&faults).await?;
            }
            for fault in &faults {
                self.report(&Finding::of_index(fault, self.repair_state()));
            }
            self.observer.at("index", done, self.totals.0);
        }

        Ok(())
    }

    pub(super) async fn walk_contents(&mut self) -> Result<(), Error> {
        let store = self.store;
        let mut batches = store.content_faults().try_chunks(BATCH_ROWS);
        let mut done = 0;
        while let Some(batch) = batches.try_next().await.map_err(|error| error.1)? {
            done += batch.len() as u64;
            let faults: Vec<_> = batch.into_iter().flatten().collect();
            if self.repairs && !faults.is_empty() {
                store.repair_contents(&faults).await?;
            }
            for fault in &faults {
                self.report(&Finding::of_content(fault, self.repair_state()));
            }
            self.observer.at("notices", done, done);
        }

        Ok(())
    }

    /// The state of a fault that can be repaired, after its batch.
    const fn repair_state(&self) -> RepairState {
        if self.repairs { RepairState::Done } else { RepairState::Pending }
    }
}
