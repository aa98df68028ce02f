//! The writer's recovery: it keeps reads going if it can, opens the file again, and reports when
//! mutations are accepted again. The log lines are those of the outage.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::Writer;
use crate::store::embedded::degraded::{Degraded, RETRY};
use crate::store::embedded::error::{DegradedReason, Fault, chain};
use crate::store::embedded::open::Open;
use crate::store::embedded::read::Snapshot;

type Failure = Box<dyn std::error::Error>;

impl Writer {
    pub(super) fn cannot_read(&mut self, trouble: DegradedReason, cause: &str) {
        // A snapshot that is published again was opened after the failed read.
        if self.published.load().is_none() {
            self.enter_degraded(trouble, cause);
        }
    }

    /// Takes no mutations from here on, and writes nothing more to what is open.
    pub(super) fn enter_degraded(&mut self, trouble: DegradedReason, cause: &str) {
        if let Some(open) = &self.open {
            open.gate.shut();
            self.damaged = (trouble == DegradedReason::Damaged).then(|| open.gate.file_id());
        }

        let mut next = Instant::now() + RETRY;
        if !trouble.leaves_reads() {
            next = self.opened + RETRY;
            let before = self.published.swap(None);
            retire(before, self.open.take());
        }

        Degraded::log(trouble, cause);
        self.trouble.store(Some(Arc::new(trouble)));
        self.outage.get_or_insert_with(|| Degraded::begin(next));
    }

    /// Tries to end the outage.
    pub(super) fn mend(&mut self) {
        let tried = self.try_again();
        let Some(mut outage) = self.outage.take() else { return };
        match tried {
            Ok(()) => {
                self.trouble.store(None);
                outage.end();
            }
            Err(error) => {
                outage.go_on(&chain(&*error));
                self.outage = Some(outage);
            }
        }
    }

    /// Reads come first; then whether there is room, and whether a commit succeeds.
    fn try_again(&mut self) -> Result<(), Failure> {
        if self.damaged.is_some() && self.damaged == self.opener.file_id() {
            return Err("it is the same file".into());
        }
        if self.open.is_none() {
            self.reopen()?;
        }

        self.opener.probe()?;
        if self.open.as_ref().is_some_and(|open| !open.gate.is_open()) {
            self.reopen()?;
        }

        let open = self.open.as_ref().ok_or(Fault::Closed)?;
        self.commit(open, &[], &mut Vec::new())?;
        self.publish();
        Ok(())
    }

    /// Opens the file again and has reads go there. The database that was open so far must be gone
    /// before the new one writes: what it reads may be written over.
    pub(super) fn reopen(&mut self) -> Result<(), Failure> {
        self.opened = Instant::now();
        let open = self.opener.reopen()?;
        let snapshot = Snapshot::new(&open.database, self.opener.caches())?;
        let before = self.published.swap(Some(Arc::new(snapshot)));
        self.damaged = None;
        retire(before, self.open.replace(open));
        Ok(())
    }

    /// Lets reads see what is on disk now.
    pub(super) fn publish(&mut self) {
        let Some(open) = &self.open else { return };
        match Snapshot::new(&open.database, self.opener.caches()) {
            Ok(snapshot) => {
                self.published.store(Some(Arc::new(snapshot)));
                self.committed.send_replace(());
            }
            Err(fault) => self.enter_degraded(DegradedReason::Unreadable, &chain(&fault)),
        }
    }
}

/// Closes a database when the look-ups under way on its snapshot are through, or have had their
/// time.
fn retire(snapshot: Option<Arc<Snapshot>>, open: Option<Open>) {
    let end = Instant::now() + RETRY;
    while snapshot.as_ref().is_some_and(|snapshot| Arc::strong_count(snapshot) > 1)
        && Instant::now() < end
    {
        std::thread::sleep(Duration::from_millis(1));
    }
    // A database that has panicked may panic again.
    let _ = catch_unwind(AssertUnwindSafe(|| drop((snapshot, open))));
}
