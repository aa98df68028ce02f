//! Amounts that all sessions share, with a share for each caller.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// The maximum bytes of all kept files.
const MAX_BYTES: u64 = 1 << 30;
/// The maximum number of files that are read or imported at once.
const MAX_JOBS: u64 = 4;

/// The time for which a file is kept.
const MAX_AGE: Duration = Duration::from_secs(24 * 60 * 60);

/// What all sessions share: disk space, and work at once. A caller has half of each.
pub struct Space {
    /// The bytes of kept files.
    pub bytes: Arc<Pool>,
    /// The files that are read or imported.
    pub jobs: Arc<Pool>,
    /// The time for which a file is kept.
    pub max_age: Duration,
}

impl Default for Space {
    fn default() -> Self {
        Self { bytes: Pool::new(MAX_BYTES), jobs: Pool::new(MAX_JOBS), max_age: MAX_AGE }
    }
}

/// An amount of which callers take parts.
pub struct Pool {
    max: u64,
    taken: Mutex<Amounts>,
}

#[derive(Default)]
struct Amounts {
    total: u64,
    callers: HashMap<String, u64>,
}

/// A part of a pool, until it is dropped.
pub struct Taken {
    pool: Arc<Pool>,
    caller: String,
    amount: u64,
}

impl Pool {
    fn new(max: u64) -> Arc<Self> {
        Arc::new(Self { max, taken: Mutex::default() })
    }

    /// A part of this amount; none if the pool or the caller's half of it has not so much left.
    pub fn take(self: &Arc<Self>, caller: &str, amount: u64) -> Option<Taken> {
        let mut taken = Taken { pool: self.clone(), caller: caller.to_owned(), amount: 0 };
        taken.grow(amount).then_some(taken)
    }
}

impl Taken {
    /// Adds to the part. Returns false if there is not so much left.
    pub fn grow(&mut self, more: u64) -> bool {
        let mut guard = self.pool.taken.lock().unwrap_or_else(PoisonError::into_inner);
        let own = guard.callers.get(&self.caller).copied().unwrap_or_default();
        if guard.total + more > self.pool.max || own + more > self.pool.max / 2 {
            return false;
        }
        guard.total += more;
        guard.callers.insert(self.caller.clone(), own + more);
        self.amount += more;
        true
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        let mut guard = self.pool.taken.lock().unwrap_or_else(PoisonError::into_inner);
        guard.total -= self.amount;
        if let Some(own) = guard.callers.get_mut(&self.caller) {
            *own -= self.amount;
            if *own == 0 {
                guard.callers.remove(&self.caller);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_caller_has_half_of_a_pool() {
        let pool = Pool::new(4);
        let mut one = pool.take("ana", 1).unwrap();
        assert!(one.grow(1));
        assert!(pool.take("ana", 1).is_none());
        let other = pool.take("ben", 2).unwrap();
        assert!(pool.take("eve", 1).is_none());
        drop((one, other));
        assert!(pool.take("ana", 2).is_some());
        assert!(pool.taken.lock().unwrap().callers.is_empty());
    }
}
