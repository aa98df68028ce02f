//! Permits: units of pools. A pool is a count with a limit, and the share of a caller in it is
//! another count with a lower limit.

use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

/// The maximum number of methods that are counted separately.
pub const MAX_METHODS: usize = 64;

/// The number of active connections, calls or streams.
#[derive(Debug, Default)]
pub struct ActiveCount(AtomicUsize);

impl ActiveCount {
    /// The number.
    pub fn get(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }

    /// Adds one, up to `limit`. Returns whether it was added.
    pub fn try_add(&self, limit: usize) -> bool {
        let increment = |count: usize| (count < limit).then_some(count + 1);
        self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, increment).is_ok()
    }

    /// Removes one.
    pub fn remove(&self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Counts by method, created on first use.
#[derive(Default)]
pub struct MethodCounts(OnceLock<Box<[OnceLock<Arc<ActiveCount>>; MAX_METHODS]>>);

impl MethodCounts {
    /// The count of a method.
    pub fn of(&self, method: usize) -> &Arc<ActiveCount> {
        let counts = self.0.get_or_init(|| Box::new([const { OnceLock::new() }; MAX_METHODS]));
        counts[method.min(MAX_METHODS - 1)].get_or_init(Arc::default)
    }
}

impl fmt::Debug for MethodCounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("MethodCounts")
    }
}

/// The share of one holder in a pool: half, so that others find some.
pub const fn share_of(total: usize) -> usize {
    total.div_ceil(2)
}

/// A unit of each of several counts, such as a pool and the share of a caller in it, until this is
/// dropped.
#[derive(Debug)]
pub struct Permit<const N: usize>([Arc<ActiveCount>; N]);

impl<const N: usize> Permit<N> {
    /// Takes a unit of each count, up to its limit, or nothing.
    ///
    /// # Errors
    /// The position of the first count that has reached its limit.
    pub fn take(counts: [(&Arc<ActiveCount>, usize); N]) -> Result<Self, usize> {
        for (n, (count, limit)) in counts.iter().enumerate() {
            if !count.try_add(*limit) {
                counts[..n].iter().for_each(|(count, _)| count.remove());
                return Err(n);
            }
        }
        Ok(Self(counts.map(|(count, _)| count.clone())))
    }
}

impl<const N: usize> Drop for Permit<N> {
    fn drop(&mut self) {
        self.0.iter().for_each(|count| count.remove());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_have_a_limit() {
        let count = ActiveCount::default();
        assert!(count.try_add(2) && count.try_add(2) && !count.try_add(2));
        count.remove();
        assert!(count.try_add(2) && count.get() == 2);
    }

    #[test]
    fn a_permit_takes_all_counts_or_none() {
        let (pool, greedy, modest) = (Arc::default(), Arc::default(), MethodCounts::default());
        let take = |caller: &Arc<ActiveCount>| Permit::take([(&pool, 3), (caller, share_of(3))]);
        let mut taken: Vec<_> = (0..2).map(|_| take(&greedy).unwrap()).collect();
        assert_eq!(take(&greedy).unwrap_err(), 1, "its share is used up");
        assert_eq!((pool.get(), greedy.get()), (2, 2));
        let other = take(modest.of(7)).unwrap();
        assert_eq!(take(modest.of(7)).unwrap_err(), 0, "the pool is used up");
        drop(other);
        taken.clear();
        assert_eq!((pool.get(), greedy.get(), modest.of(7).get()), (0, 0, 0));
    }
}
