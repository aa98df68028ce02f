//! Disks that fail or hang: which steps of which file, counted from now.

use std::collections::HashMap;
use std::io;
use std::ops::Range;
use std::sync::{Condvar, LazyLock, Mutex, MutexGuard, PoisonError};

use super::FileId;

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
    /// Has the steps of a file fail whose numbers, from 0, are in `steps`.
    pub fn new(id: FileId, steps: Range<u64>) -> Self {
        plans().insert(id, Plan { taken: 0, failing: steps, hangs: false });
        Self(id)
    }

    /// Has every step of a file wait until this is dropped.
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

/// Takes the next step of a file: an error if it is to fail.
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
