//! Disks that fail or hang at given steps of a file.

use std::collections::HashMap;
use std::io;
use std::ops::Range;
use std::sync::{Condvar, LazyLock, Mutex, MutexGuard, PoisonError};

use crate::file::lock::FileId;

/// The faults that are injected into the steps of a file.
struct Plan {
    taken: u64,
    failing: Range<u64>,
    hangs: bool,
}

static PLANS: LazyLock<Mutex<HashMap<FileId, Plan>>> = LazyLock::new(Mutex::default);
static CHANGED: Condvar = Condvar::new();

fn plans() -> MutexGuard<'static, HashMap<FileId, Plan>> {
    PLANS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A disk that fails, or hangs, until this is dropped.
pub struct Failing(FileId);

impl Failing {
    /// Fails the steps of a file with these numbers, counted from 0.
    pub fn new(id: FileId, steps: Range<u64>) -> Self {
        plans().insert(id, Plan { taken: 0, failing: steps, hangs: false });
        Self(id)
    }

    /// Blocks every step of a file until this is dropped.
    pub fn hanging(id: FileId) -> Self {
        plans().insert(id, Plan { taken: 0, failing: 0..0, hangs: true });
        Self(id)
    }

    /// The number of steps that were taken.
    pub fn taken(&self) -> u64 {
        plans()[&self.0].taken
    }
}

impl Drop for Failing {
    fn drop(&mut self) {
        plans().remove(&self.0);
        CHANGED.notify_all();
    }
}

/// Counts a step of a file. Fails if the plan says so.
pub fn strike(id: FileId) -> io::Result<()> {
    let mut plans = plans();
    let Some(plan) = plans.get_mut(&id) else { return Ok(()) };
    plan.taken += 1;
    if plan.failing.contains(&(plan.taken - 1)) {
        return Err(io::ErrorKind::StorageFull.into());
    }
    while plans.get(&id).is_some_and(|plan| plan.hangs) {
        plans = CHANGED.wait(plans).unwrap_or_else(PoisonError::into_inner);
    }
    Ok(())
}
