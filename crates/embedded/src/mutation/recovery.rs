//! The recovery of a degraded store: it keeps reads going if it can, opens the file again, and
//! accepts mutations once a commit succeeds.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::disk_space;
use crate::error::{DegradedReason, Fault, chain};
use crate::file::opener::Open;
use crate::lookup::snapshot::Snapshot;
use crate::measure::set_file_bytes;
use crate::mutation::degraded::{Degraded, RETRY_DELAY};
use crate::mutation::writer::Writer;
use crate::recent_events::EventChanges;

/// The unit in which systems count the blocks of a file.
const BLOCK_BYTES: u64 = 512;

type Failure = Box<dyn std::error::Error>;

impl Writer {
    /// Degrades the store after a failed read, unless the file was opened again since.
    pub(super) fn read_failed(&mut self, reason: DegradedReason, cause: &str) {
        if self.shared.published.load().is_none() {
            self.enter_degraded(reason, cause);
        }
    }

    /// Rejects all later mutations, and stops writes to the open file.
    pub(super) fn enter_degraded(&mut self, reason: DegradedReason, cause: &str) {
        if let Some(open) = &self.open {
            open.gate.shut();
            self.damaged = (reason == DegradedReason::Damaged).then(|| open.gate.file_id());
        }

        let mut next_attempt = Instant::now() + RETRY_DELAY;
        if !reason.leaves_reads() {
            next_attempt = self.opened + RETRY_DELAY;
            let before = self.shared.published.swap(None);
            retire(before, self.open.take());
        }

        Degraded::log(reason, cause);
        self.shared.degraded.store(Some(Arc::new(reason)));
        self.degraded.get_or_insert_with(|| Degraded::begin(next_attempt));
    }

    /// Tries to recover.
    pub(super) fn recover(&mut self) {
        let attempt = self.try_recover();
        let Some(mut degraded) = self.degraded.take() else { return };
        match attempt {
            Ok(()) => {
                self.shared.degraded.store(None);
                degraded.end();
            }
            Err(error) => {
                degraded.retry_later(&chain(&*error));
                self.degraded = Some(degraded);
            }
        }
    }

    /// Restores reads first, then checks that the disk has space and that a commit succeeds.
    fn try_recover(&mut self) -> Result<(), Failure> {
        if self.damaged.is_some() && self.damaged == self.opener.file_id() {
            return Err("the damaged file is still there".into());
        }
        if self.open.is_none() {
            self.reopen()?;
        }

        self.opener.probe()?;
        if self.open.as_ref().is_some_and(|open| !open.gate.is_open()) {
            self.reopen()?;
        }

        let open = self.open.as_ref().ok_or(Fault::Closed)?;
        let changes = self.commit(open, &[], &mut Vec::new())?;
        self.publish(changes);
        Ok(())
    }

    /// Opens the file again and publishes its snapshot. The former database must be closed before
    /// the new one writes, which may overwrite pages that the former one reads.
    pub(super) fn reopen(&mut self) -> Result<(), Failure> {
        self.opened = Instant::now();
        let open = self.opener.reopen()?;
        let snapshot = Snapshot::new(&open.database, &self.shared.caches)?;
        let next_event = snapshot.next_event()?;
        let before = self.shared.published.swap(Some(Arc::new(snapshot)));
        self.shared.exports.drop_all();
        // The file may have a commit whose outcome was unknown.
        self.shared.recent.restart(next_event);
        self.damaged = None;
        retire(before, self.open.replace(open));
        Ok(())
    }

    /// Publishes the last commit to reads, and wakes the watchers of its events.
    pub(super) fn publish(&mut self, changes: EventChanges) {
        let Some(open) = &self.open else { return };
        match Snapshot::new(&open.database, &self.shared.caches) {
            Ok(snapshot) => {
                self.shared.published.store(Some(Arc::new(snapshot)));
                self.shared.recent.commit(changes);
                self.watch_file();
            }
            Err(fault) => self.enter_degraded(DegradedReason::Unreadable, &chain(&fault)),
        }
    }

    /// Reports the sizes of the file and its disk, and drops the snapshots of exports that keep too
    /// much of the file.
    pub(super) fn watch_file(&self) {
        let file = self.opener.file();
        let sizes = fs::metadata(file).map(|file| (file.len(), file.blocks() * BLOCK_BYTES));
        let (size, allocated) = sizes.unwrap_or_default();
        set_file_bytes(size, allocated);
        file.parent().into_iter().for_each(disk_space::measure);
        let written = self.open.as_ref().map_or(0, |open| open.gate.written_bytes());
        self.shared.exports.drop_costly(Instant::now(), written);
    }
}

/// Closes a database once its look-ups have ended, or after a time limit.
fn retire(snapshot: Option<Arc<Snapshot>>, open: Option<Open>) {
    let end = Instant::now() + RETRY_DELAY;
    while snapshot.as_ref().is_some_and(|snapshot| Arc::strong_count(snapshot) > 1)
        && Instant::now() < end
    {
        std::thread::sleep(Duration::from_millis(1));
    }
    // A database that has panicked may panic again.
    let _ = catch_unwind(AssertUnwindSafe(|| drop((snapshot, open))));
}
