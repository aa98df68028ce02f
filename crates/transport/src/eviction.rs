//! Connections and streams of clients without a credential. Their number is bounded, and a new one
//! evicts the oldest: such clients cannot keep callers, or each other, out.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

/// Connections or streams by age.
pub struct EvictionQueue {
    limit: usize,
    entries: Mutex<Entries>,
}

#[derive(Default)]
struct Entries {
    next: u64,
    by_age: BTreeMap<u64, Arc<Notify>>,
}

impl EvictionQueue {
    /// Creates a queue of at most `limit` entries.
    pub fn new(limit: usize) -> Arc<Self> {
        Arc::new(Self { limit: limit.max(1), entries: Mutex::default() })
    }

    /// Adds an entry. Evicts the oldest one if the limit is reached.
    pub fn add(self: &Arc<Self>) -> EvictionEntry {
        let mut entries = self.lock();
        if entries.by_age.len() >= self.limit
            && let Some((_, oldest)) = entries.by_age.pop_first()
        {
            oldest.notify_one();
        }
        let (number, evicted) = (entries.next, Arc::new(Notify::new()));
        entries.next += 1;
        entries.by_age.insert(number, evicted.clone());
        EvictionEntry { all: self.clone(), number, evicted }
    }

    fn lock(&self) -> MutexGuard<'_, Entries> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The entry of a connection or stream, until this is dropped.
pub struct EvictionEntry {
    all: Arc<EvictionQueue>,
    number: u64,
    evicted: Arc<Notify>,
}

impl EvictionEntry {
    /// Removes the entry: its client has a credential.
    pub fn remove(&self) {
        self.all.lock().by_age.remove(&self.number);
    }

    /// Waits until another entry evicts this one.
    pub async fn evicted(&self) {
        self.evicted.notified().await;
    }

    /// The notification of [`Self::evicted`].
    pub fn eviction(&self) -> Arc<Notify> {
        self.evicted.clone()
    }
}

impl Drop for EvictionEntry {
    fn drop(&mut self) {
        self.remove();
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    #[test]
    fn a_new_entry_evicts_the_oldest_one_that_remains() {
        let all = EvictionQueue::new(2);
        let is_evicted = |entry: &EvictionEntry| entry.evicted().now_or_never().is_some();
        let (first, second) = (all.add(), all.add());
        first.remove();
        let third = all.add();
        assert!(!is_evicted(&first) && !is_evicted(&second));
        let fourth = all.add();
        assert!(is_evicted(&second) && !is_evicted(&third));
        drop(third);
        let fifth = all.add();
        assert!(!is_evicted(&fourth) && !is_evicted(&fifth));
        assert_eq!(all.lock().by_age.len(), 2);
    }
}
