//! Disks that fail: which steps of which file, counted from now.

use std::collections::HashMap;
use std::io;
use std::ops::Range;
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};

use super::FileId;

/// How many steps were taken, and which of them fail.
type Steps = (u64, Range<u64>);

static FAULTS: LazyLock<Mutex<HashMap<FileId, Steps>>> = LazyLock::new(Mutex::default);

fn faults() -> MutexGuard<'static, HashMap<FileId, Steps>> {
    FAULTS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A disk that fails until this is dropped.
pub struct Failing(FileId);

impl Failing {
    /// Has the steps of a file fail whose numbers, from 0, are in `steps`.
    pub fn new(id: FileId, steps: Range<u64>) -> Self {
        faults().insert(id, (0, steps));
        Self(id)
    }

    /// How many steps were taken.
    pub fn taken(&self) -> u64 {
        faults()[&self.0].0
    }
}

impl Drop for Failing {
    fn drop(&mut self) {
        faults().remove(&self.0);
    }
}

/// Takes the next step of a file: an error if it is to fail.
pub fn strike(id: FileId) -> io::Result<()> {
    let mut faults = faults();
    let Some((taken, failing)) = faults.get_mut(&id) else { return Ok(()) };
    *taken += 1;
    if failing.contains(&(*taken - 1)) { Err(io::ErrorKind::StorageFull.into()) } else { Ok(()) }
}
